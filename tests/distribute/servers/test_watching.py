"""Parameter servers tell what they hold and do: while they work, when one is gone, and after they have ended."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.until import until
from workbench import distribute
from workbench.distribute.coordinator.cluster_coordinator import ClusterCoordinator
from workbench.distribute.server_optimizers import SGD, apply_gradients


def test_servers_tell_their_variables_slots_and_updates(in_three: Any) -> None:
    with in_three.scope():
        table = wb.Variable(np.zeros((6, 4), np.float32), name="table")
        wb.Variable(0.0, name="count")
    apply_gradients(SGD(0.1, momentum=0.9), [(np.ones((6, 4)), table)])
    table.scatter_add(wb.IndexedSlices(np.ones((1, 4)), [0]))

    now = in_three.status()

    held = {each.name: each for server in now.servers for each in server.variables}
    assert [server.name for server in now.servers] == ["ps:0", "ps:1"]
    assert sorted(held) == ["count", "table/part_0", "table/part_1", "table/part_2"]
    first = held["table/part_0"]
    assert (first.shape, first.dtype, first.size_bytes, first.slot_bytes, first.updates) == (
        (2, 4),
        "float32",
        32,
        32,
        2,
    )
    assert sum(server.updates for server in now.servers) == 4
    assert sum(server.size_bytes for server in now.servers) == 3 * 64 + held["count"].size_bytes
    assert now.sentence == "196 B of variables on 2 servers; no ClusterCoordinator schedules functions yet."
    assert {server.state for server in now.servers} == {"live"}
    assert now.queue is None
    assert "table/part_2  float32  (2, 4)" in str(now)


def test_of_many_variables_the_largest_are_told(servers: Any) -> None:
    with servers.scope():
        kept = [wb.Variable(np.zeros(size), name=f"v{size}") for size in range(1, 81)]

    told = servers.status().servers

    assert [server.hidden_variables for server in told] == [8, 8]
    assert told[1].variables[0].name == "v80"
    assert sum(server.size_bytes for server in told) == 8 * sum(range(1, 81))
    del kept


def test_while_a_thread_waits_in_join_everything_is_told(servers: Any, tmp_path: Path) -> None:
    go = str(tmp_path / "go")
    began = str(tmp_path / "began")

    def wait(go: str, began: str) -> None:
        import os
        import time

        open(began, "w").close()
        while not os.path.exists(go):
            time.sleep(0.005)

    coordinator = ClusterCoordinator(servers)
    first, second = (coordinator.schedule(wait, args=(go, f"{began}{worker}")) for worker in range(2))
    coordinator.schedule(lambda x: x, args=(first,))
    coordinator.schedule(lambda: 0)
    joining = threading.Thread(target=coordinator.join)
    joining.start()
    try:
        for worker in range(2):
            until(lambda worker=worker: os.path.exists(f"{began}{worker}"), "beginning")
        now = servers.status()
    finally:
        open(go, "w").close()
        joining.join(60)

    assert now.queue is not None
    assert (now.queue.waiting, now.queue.blocked, now.queue.running, now.queue.done) == (1, 1, 2, 0)
    assert [(each.name, each.running.endswith("wait"), each.running_together) for each in now.workers] == [
        ("worker:0", True, 1),
        ("worker:1", True, 1),
    ]
    assert "4 functions under way" in now.sentence
    after = servers.status()
    assert after.queue is not None
    assert (after.queue.done, after.queue.running) == (4, 0)
    assert sum(worker.done for worker in after.workers) == 4
    assert sum(worker.functions_per_second for worker in after.workers) > 0
    assert second.ready


def test_staleness_is_what_others_updated_between_reading_and_updating(servers: Any, tmp_path: Path) -> None:
    with servers.scope():
        w = wb.Variable(0.0, name="w")
    read, go = str(tmp_path / "read"), str(tmp_path / "go")

    def slow(read: str, go: str) -> None:
        import os
        import time

        w.read_value()
        open(read, "w").close()
        while not os.path.exists(go):
            time.sleep(0.005)
        w.assign_add(1.0)

    coordinator = ClusterCoordinator(servers)
    coordinator.schedule(slow, args=(read, go))
    until(lambda: os.path.exists(read), "reading")
    for _ in range(3):
        w.assign_add(1.0)  # the notebook's, which has no earlier reading to compare with
    assert servers.status().servers[0].newest_staleness is None
    open(go, "w").close()
    coordinator.join()

    server = servers.status().servers[0]
    assert (server.newest_staleness, server.typical_staleness, server.updates) == (3, 3, 4)


def test_a_failure_that_nobody_was_told_yet_is_told(servers: Any) -> None:
    def fail() -> None:
        raise ValueError("no such word")

    coordinator = ClusterCoordinator(servers)
    coordinator.schedule(fail)
    until(lambda: servers.status().queue.failed, "failing")

    now = servers.status()
    assert now.sentence.startswith("A function has failed: ")
    assert "no such word" in now.sentence
    assert now.advice == "the next schedule, join or done raises it"
    with pytest.raises(ValueError, match="no such word"):
        coordinator.join()
    assert servers.status().queue.error == ""


def test_what_has_ended_keeps_its_last_figures(four: Any) -> None:
    strategy = distribute.ParameterServerStrategy(servers=1)
    with strategy.scope():
        w = wb.Variable(1.0, name="w")
    coordinator = ClusterCoordinator(strategy)
    coordinator.schedule(lambda: w.assign_add(1.0))
    coordinator.join()
    watched = strategy.hosting.watched
    watched.now()
    strategy.close()

    now = watched.now()
    assert watched.ended
    assert now.sentence == "These parameter servers have ended after 1 function."
    assert (now.status, now.servers[0].state, now.servers[0].updates) == ("stopped", "stopped", 1)
    assert {worker.state for worker in now.workers} == {"stopped"}


def test_a_lost_server_is_told_and_goes_on_with_its_figures() -> None:
    with wb.connect(replicas=2, replace=True) as cluster:
        strategy = distribute.ParameterServerStrategy(servers=1)
        with strategy.scope():
            w = wb.Variable(0.0, name="w")
        for _ in range(3):
            w.assign_add(1.0)
        assert strategy.status().servers[0].updates == 3
        server = strategy.hosting.servers[0]
        (name,) = server._group.worker_names
        os.kill(cluster.gang.workers[name].pid, signal.SIGKILL)
        until(lambda: strategy.status().servers[0].state != "live", "noticing")
        until(lambda: strategy.status().servers[0].state == "lost", "learning why")

        lost = strategy.status()
        assert lost.sentence.startswith("ps:0 is lost: ")
        assert "every answered update" in lost.advice
        assert lost.servers[0].updates == 3
        assert [each.name for each in lost.servers[0].variables] == ["w"]

        w.assign_add(1.0)
        back = strategy.status().servers[0]
        assert (back.state, back.restarts, back.updates) == ("live", 1, 4)
