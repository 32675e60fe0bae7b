"""What the views and texts of a cluster say of the process that reads the input of a host."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.until import until
from workbench.runtime.process.beside import BesideStatus
from workbench.runtime.process.fork_server import AVAILABLE
from workbench.ui.cluster.cluster_model import topology_model
from workbench.ui.cluster.verdict import beside_text

BATCH, WIDTH = 64, 100


@pytest.fixture(scope="module")
def cluster() -> Iterator[wb.Cluster]:
    """Two replicas in processes of their own."""
    with wb.connect(replicas=2, processes=True, replace=True) as cluster:
        yield cluster


def told(cluster: wb.Cluster) -> list[BesideStatus]:
    """What the last heartbeats of all workers say."""
    return [status for worker in cluster.gang.workers.values() for status in worker.beside]


def says(cluster: wb.Cluster, **fields: Any) -> bool:
    return any(status._asdict() | fields == status._asdict() for status in told(cluster))


@pytest.mark.skipif(not AVAILABLE, reason="processes are forked on Linux only")
def test_the_input_process_shows_whom_it_feeds_and_that_it_was_started_again(cluster: wb.Cluster) -> None:
    strategy = wb.MirroredStrategy()
    rows = wb.data.Dataset.range(10_000).map(lambda x: np.full(WIDTH, x))
    options = wb.data.InputOptions(input_process=True)
    steps = iter(strategy.distribute_dataset(rows.batch(BATCH), options))
    next(steps)
    until(lambda: any(status.given_bytes for status in told(cluster)), "a heartbeat with the input process")
    (status,) = told(cluster)
    assert (status.purpose, status.replicas, status.starts) == ("input", (0, 1), 1)
    assert status.given_bytes >= BATCH * WIDTH * 8
    assert status.pid not in {worker.pid for worker in cluster.gang.workers.values()}

    assert f"input process (pid {status.pid}) feeds replicas 0 1, " in repr(wb.diagnose())
    text = repr(wb.topology())
    assert f"input process (pid {status.pid})" in text
    assert max(map(len, text.splitlines())) <= 88
    details = [worker.detail for host in topology_model(cluster).hosts for worker in host.workers]
    assert sum(f"input process (pid {status.pid}) feeds" in detail for detail in details) == 1
    json.dumps(wb.diagnose().details)

    os.kill(status.pid, signal.SIGSTOP)
    until(lambda: says(cluster, state="T"), "a heartbeat with the process stopped")
    assert "its process is stopped (state T)" in repr(wb.diagnose())
    os.kill(status.pid, signal.SIGKILL)
    assert sum(1 for _ in steps) == -(-10_000 // BATCH) - 1
    until(lambda: says(cluster, starts=2), "a heartbeat with the new process")
    assert "; started 2 times, as it has ended before" in repr(wb.diagnose())
    assert told(cluster)[0].pid != status.pid

    del steps
    strategy.group.close()
    until(lambda: told(cluster) == [], "a heartbeat without the process")
    assert "input process" not in repr(wb.diagnose()) + repr(wb.topology())


def test_what_is_said_of_a_process_fits_its_state() -> None:
    status = BesideStatus("input", 7, "S", 1, (0, 3), 3 << 20)
    assert beside_text(status) == "input process (pid 7) feeds replicas 0 3, 3 MiB"
    assert beside_text(status._replace(state="T")).endswith("; its process is stopped (state T)")
    assert beside_text(status._replace(starts=3)).endswith("; started 3 times, as it has ended before")
