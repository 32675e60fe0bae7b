"""What a worker sent before it ended counts, also if its end is noticed first, by another link."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import pytest

import workbench as wb
from workbench.runtime.comm.links import readable


def test_a_failure_that_was_reported_is_told_although_its_worker_ended_then() -> None:
    @wb.function
    def step(fails: bool) -> int:
        context: Any = wb.distribute.get_replica_context()
        if fails and context.replica_id_in_sync_group == 1:
            raise ValueError("mine")
        return 1

    with wb.connect(replicas=2) as cluster:
        strategy = wb.MirroredStrategy()
        strategy.run(step, args=(False,))
        gang = cluster.gang
        worker = list(gang.workers.values())[1]
        with gang.lock:  # so that nothing receives meanwhile
            values = strategy.run(step, args=(True,))
            assert readable(worker.steps.fileno(), 60)
            os.kill(worker.pid, signal.SIGKILL)
            pause = threading.Event()
            while worker not in gang._suspects:
                pause.wait(0.001)
            with pytest.raises(ValueError, match="mine"):
                strategy.local_results(values)

        assert strategy.local_results(strategy.run(step, args=(False,))) == (1, 1)
