"""A parameter server whose process is killed comes back with every update that was answered."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench import distribute
from workbench.distribute.servers.client import ServerClient
from workbench.distribute.servers.streams import Stream, in_stream
from workbench.errors import UnavailableError


def kill(cluster: Any, service: Any) -> None:
    """Kills the process of a service."""
    (name,) = service._group.worker_names
    os.kill(cluster.gang.workers[name].pid, signal.SIGKILL)


def test_variables_survive_their_server() -> None:
    partitioner = distribute.experimental.partitioners.FixedShardsPartitioner(2)
    with wb.connect(replicas=3, replace=True) as cluster:
        strategy = distribute.ParameterServerStrategy(None, partitioner, servers=2)
        with strategy.scope():
            table = wb.Variable(np.zeros((6, 2)), name="table")
        for _ in range(3):
            table.scatter_add(wb.IndexedSlices(np.ones((2, 2)), [0, 5]))

        for server in (0, 1, 1):
            kill(cluster, strategy.hosting.servers[server])
            table.assign_add(np.ones((6, 2)))

        assert np.asarray(table)[:, 0].tolist() == [6, 3, 3, 3, 3, 6]
        assert [server.restarts for server in strategy.hosting.servers] == [1, 2]


def test_variables_survive_a_server_that_is_killed_while_it_takes_a_place(tmp_path: Path) -> None:
    rule = {"point": "server.taken_over", "nth": 1, "action": "kill"}
    rule |= {"once": str(tmp_path / "killed")}
    with wb.connect(replicas=2, replace=True, environment={"WB_FAULTS": json.dumps([rule])}) as cluster:
        (tmp_path / "killed").touch()  # not the first one
        strategy = distribute.ParameterServerStrategy(servers=1)
        with strategy.scope():
            v = wb.Variable(0.0)
        v.assign_add(1.0)
        (tmp_path / "killed").unlink()
        kill(cluster, strategy.hosting.servers[0])
        v.assign_add(1.0)

        assert float(v) == 2
    assert (tmp_path / "killed").exists()


def test_a_server_that_was_given_up_and_lives_answers_nobody(tmp_path: Path) -> None:
    with wb.connect(replicas=2, replace=True):
        strategy = distribute.ParameterServerStrategy(servers=1, journal_folder=str(tmp_path))
        with strategy.scope():
            v = wb.Variable(0.0)
        v.assign_add(1.0)
        (server,) = strategy.hosting.servers
        former, client = server.address, ServerClient("former", [server.address], None)
        key = v.description.key
        assert client.read(0, {"method": "read", "key": key})[0] == 1
        server._answers = lambda: False  # type: ignore[method-assign]  # as behind a network that is cut
        strategy.hosting.client.move(0, server.restored(former))

        for ask in (
            lambda: client.read(0, {"method": "read", "key": key}),
            lambda: client.write(0, {"method": "update", "key": key, "how": "assign_add"}, [np.ones(())]),
        ):
            client.move(0, former)
            with pytest.raises(UnavailableError), in_stream(Stream("former")):
                ask()
        v.assign_add(1.0)
        assert float(v) == 2
        client.close()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("point", ["server.after_journal", "server.before_reply"])
def test_an_update_whose_answer_was_lost_is_applied_once(point: str, tmp_path: Path) -> None:
    rule = {"point": point, "nth": 3, "action": "kill", "once": str(tmp_path / "killed")}
    with wb.connect(replicas=2, replace=True, environment={"WB_FAULTS": json.dumps([rule])}):
        strategy = distribute.ParameterServerStrategy(servers=1)
        with strategy.scope():
            v = wb.Variable(0.0)
        for _ in range(5):
            v.assign_add(1.0)

        assert float(v) == 5
        assert strategy.hosting.servers[0].restarts == 1
    assert (tmp_path / "killed").exists()
