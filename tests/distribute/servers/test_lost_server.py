"""A parameter server whose process is killed comes back with every update that was answered."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench import distribute
from workbench.distribute.servers.client import ServerClient
from workbench.distribute.servers.streams import Stream, in_stream
from workbench.errors import ClusterClosed, UnavailableError
from workbench.runtime.services import hosted
from workbench.runtime.services.service import Connection


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


def test_variables_outlive_their_journal_that_somebody_removed(tmp_path: Path) -> None:
    with wb.connect(replicas=2, replace=True):
        strategy = distribute.ParameterServerStrategy(servers=1, journal_folder=str(tmp_path))
        with strategy.scope():
            v = wb.Variable(0.0)
        v.assign_add(1.0)
        (folder,) = tmp_path.iterdir()
        shutil.rmtree(folder)

        assert float(v) == 1
        v.assign_add(1.0)
        assert float(v) == 2
        assert strategy.hosting.servers[0].restarts == 0


def test_an_attempt_to_start_a_server_that_fails_lets_go_of_its_lease_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[Any] = []

    class Failing(Connection):
        def ask(self, *args: Any) -> Any:
            super().ask(*args)
            tried.append(self)
            raise ValueError("as a fault of its own")

    with wb.connect(replicas=2, replace=True):
        strategy = distribute.ParameterServerStrategy(servers=1)
        (server,) = strategy.hosting.servers
        former = server._lease
        monkeypatch.setattr(server, "_answers", lambda: False)
        monkeypatch.setattr(hosted, "Connection", Failing)

        with pytest.raises(ValueError, match="fault of its own"):
            server.restored(server.address)

        assert server.restarts == 0
        assert server._lease is former
        assert [lease._sock.fileno() for lease in tried] == [-1]


def test_a_server_that_is_stopped_while_it_is_restored_keeps_no_lease(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with wb.connect(replicas=2, replace=True):
        strategy = distribute.ParameterServerStrategy(servers=1)
        (server,) = strategy.hosting.servers
        former: Any = server._lease
        monkeypatch.setattr(server, "_answers", lambda: False)

        def stopped() -> Any:
            strategy.close()
            raise ClusterClosed("stopped")

        monkeypatch.setattr(server, "_started", stopped)
        with pytest.raises(ClusterClosed):
            server.restored(server.address)

        assert server._lease is None
        assert former._sock.fileno() == -1


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
