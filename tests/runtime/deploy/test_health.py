"""How a worker ended, told by its exit code and by what its replicas ran on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from workbench.runtime.deploy.embedded import WorkerExit
from workbench.runtime.deploy.health import LocalHealth
from workbench.runtime.process.gpus import STUCK_EXIT_CODE


@pytest.mark.parametrize(
    ("device_kind", "told"),
    [
        ("GPU", "ended itself: its GPU had failed, or a replica was stuck in NCCL"),
        ("TPU", "ended itself: a replica was stuck in a traced program"),
        ("CPU", f"exited with code {STUCK_EXIT_CODE}"),
    ],
)
def test_a_worker_that_ended_itself_is_told_in_the_words_of_its_devices(device_kind: str, told: str) -> None:
    health = LocalHealth(
        worker_exit=lambda pid, timeout: WorkerExit(STUCK_EXIT_CODE, False),
        succession=SimpleNamespace(),  # type: ignore[arg-type]  # not asked
        stall_seconds=20,
    )
    worker: Any = SimpleNamespace(local=True, pid=1, device_kind=device_kind)

    end = health.end_of(worker)

    assert str(end) == told
