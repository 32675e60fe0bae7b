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
