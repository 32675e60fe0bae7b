"""`wb.diagnose` while a step hangs in another thread, and of processes that do not answer."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from tests.ui.conftest import Tags
from workbench.telemetry.feed.stuck import stuck_text
from workbench.ui.cluster import diagnosis


@pytest.fixture
def hung(strategy: wb.MirroredStrategy, tmp_path: Path) -> Iterator[None]:
    """A step in another thread whose replica 1 does not come to the second collective until the test has ended."""
    go_on = tmp_path / "go_on"

    def step() -> None:
        context = wb.distribute.get_replica_context()
        context.all_reduce("sum", np.ones(3))
        if context.replica_id_in_sync_group == 1:
            while not go_on.exists():  # user code must be waiting, so that the test sees where the replica is
                time.sleep(0.005)
        context.all_reduce("sum", np.ones(3))

    thread = threading.Thread(target=strategy.run, args=(step,))
    thread.start()
    yield
    go_on.touch()
    thread.join(30)
    assert not thread.is_alive()


def eventually(found: Callable[[], diagnosis.Diagnosis], text: str) -> str:
    """The verdict once it contains `text`."""
    end = time.monotonic() + 30
    while text not in (verdict := repr(found())):
        assert time.monotonic() < end, verdict
    return verdict


@pytest.mark.usefixtures("hung")
def test_a_step_that_hangs_is_diagnosed_from_another_thread() -> None:
    verdict = eventually(
        wb.diagnose,
        "all_reduce #2: waiting for replicas {1}; it last did all_reduce #1 at test_diagnosis.py:",
    )

    assert "replica 1 runs user code at test_diagnosis.py:" in verdict
    assert len(verdict.splitlines()) <= 5


@pytest.mark.usefixtures("hung")
def test_the_banner_says_where_a_missing_replica_is_and_for_how_long(cluster: wb.Cluster) -> None:
    end = time.monotonic() + 30
    while True:  # as the pane does while the cell is busy
        stuck = next((group.stuck for group in cluster.feed.snapshot().groups if group.stuck), None)
        if stuck is not None and stuck.last and stuck.last[0].now:
            break
        assert time.monotonic() < end, stuck
        time.sleep(0.05)
    assert re.fullmatch(r"test_diagnosis\.py:\d+ in step, for \d+ s", stuck.last[0].now)
    assert (
        f"waiting for replicas {{1}}; it is at {stuck.last[0].now}; it last did all_reduce #1"
        in stuck_text(stuck)
    )


@pytest.mark.usefixtures("hung")
def test_details_have_stacks_and_collectives_and_can_be_saved(tmp_path: Path) -> None:
    eventually(wb.diagnose, "all_reduce #2: waiting for")
    found = wb.diagnose()
    saved = json.loads(found.save(tmp_path / "dump.json").read_text())
    replica = saved["groups"][-1]["replicas"][1]

    assert replica["flight"][-1]["op"] == "all_reduce"
    assert "in step" in replica["place"]
    assert all("Thread" in worker["stacks"] or "thread" in worker["stacks"] for worker in saved["workers"])
    assert "script" not in Tags(found._repr_html_()).tags


@pytest.mark.usefixtures("hung")
def test_the_timings_of_a_step_that_hangs_can_be_looked_at(strategy: wb.MirroredStrategy) -> None:
    eventually(wb.diagnose, "all_reduce #2: waiting for")

    assert wb.collectives(strategy).silent == ()


@pytest.mark.usefixtures("hung")
def test_a_stopped_process_is_named_in_time(cluster: wb.Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "DEADLINE_SECONDS", 0.2)
    eventually(wb.diagnose, "all_reduce #2: waiting for")
    pid = cluster.gang.workers["1"].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        verdict = eventually(wb.diagnose, "state T")
    finally:
        os.kill(pid, signal.SIGCONT)

    assert f"worker 1 (a, pid {pid}) does not answer: its process is stopped (state T)" in verdict


def test_an_idle_cluster_is_said_to_be_idle(strategy: wb.MirroredStrategy) -> None:
    strategy.run(lambda: 1)

    assert ": idle, step " in repr(wb.diagnose())


def test_a_closed_cluster_is_said_to_be_closed() -> None:
    with wb.connect(replicas=1, processes=False, replace=True) as other:
        pass

    assert "closed" in repr(wb.diagnose(other))


def test_parameter_servers_and_the_functions_on_their_workers_are_told(tmp_path: Path) -> None:
    go = tmp_path / "go"
    with wb.connect(replicas=3, replace=True) as cluster:
        strategy = wb.distribute.ParameterServerStrategy(servers=1)
        with strategy.scope():
            table = wb.Variable(np.zeros((100, 4)), name="table")
        coordinator = wb.distribute.coordinator.ClusterCoordinator(strategy)

        def step(go: str) -> None:
            table.read_value()
            while not os.path.exists(go):
                time.sleep(0.005)
            table.assign_add(np.ones((100, 4)))

        results = [coordinator.schedule(step, (str(go),)) for _ in range(4)]
        coordinator.schedule(lambda value: None, (results[-1],))
        eventually(
            wb.diagnose, "functions: 2 wait for a worker and 1 for results, 2 run, 0 done; worker:0 0 done"
        )
        found = wb.diagnose()
        _, general, held, functions = found.verdict
        assert "5 functions under way" in general
        assert re.match(r"ps:0 holds 3\.12 KiB in 1 variable, 0 updates, journal \d\S* KiB in /\S+$", held)
        assert re.search(r"; worker:1 0 done, 0(\.\d+)?/s, runs \S*step for \S+ s$", functions)
        go.touch()
        coordinator.join()

        assert re.search(r", 4 updates, staleness \d \(median \d\), journal", repr(wb.diagnose()))
        (name,) = strategy.hosting.servers[0]._group.worker_names
        os.kill(cluster.gang.workers[name].pid, signal.SIGKILL)
        lost = eventually(wb.diagnose, "ps:0 is lost: was killed by SIGKILL. The next function that needs it")
        assert "ps:0 (lost) held 3.12 KiB in 1 variable, 4 updates" in lost
        details = json.loads(json.dumps(wb.diagnose().details))
        assert details["servers"][0]["status"]["servers"][0]["variables"][0]["name"] == "table"
        strategy.close()
        assert wb.diagnose().servers == ()
