"""Rows 4 and 19 (memory), which need clusters of their own."""

from __future__ import annotations

import threading

import pytest

from tests.faults.conftest import Training, kill, until
from tests.leaks import Resources
from workbench import runtime
from workbench.errors import ReplicaLost
from workbench.runtime.replica.env import ReplicaEnv


def test_row_04_the_nanny_goes_with_its_worker() -> None:
    """An embedded nanny is a thread of the driver; killing a worker, again and again, leaves no orphan."""
    before = Resources.now().processes
    with runtime.connect(replicas=1) as cluster:
        training = Training(cluster)
        first = training.step(0)
        kill(training.pids()[0])
    until(lambda: Resources.now().processes <= before, "the end of all workers")
    assert len(first) == 1


def test_row_19_over_the_memory_limit_is_said() -> None:
    def grow(env: ReplicaEnv) -> None:
        if env.rank == 1:
            import numpy as np

            kept = [np.ones(80_000_000)]
            threading.Event().wait(60)
            del kept

    with runtime.connect(replicas=2, memory_limit="500MB") as cluster:
        training = Training(cluster)
        first = training.step(0)
        with pytest.raises(ReplicaLost, match="out of memory") as caught:
            training.step(1, grow)
        assert caught.value.replica == 1
        training.run(lambda env: env.store.clear())
        assert len(training.step(0)) == len(first)
