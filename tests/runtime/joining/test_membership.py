"""How a task's nanny ends: with its worker, whoever closed that."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from distributed.core import Status

from workbench.runtime.joining.membership import _TaskNanny


def nanny() -> Any:
    """What `close_gracefully` looks at, of a nanny whose worker runs."""
    return SimpleNamespace(
        ended=False, leaving=asyncio.Event(), status=Status.running, address_safe="tls://127.0.0.1:1"
    )


@pytest.mark.parametrize("reason", ["scheduler-close", "worker-handle-scheduler-connection-broken"])
def test_a_nanny_does_not_start_a_worker_again_that_has_closed(reason: str) -> None:
    """It would look for a scheduler that is gone, and the task would end ten seconds later, or not at all."""
    one = nanny()
    _TaskNanny.close_gracefully(one, reason)

    assert one.status is Status.closing_gracefully
    assert one.leaving.is_set()


def test_a_task_has_heard_that_the_cluster_was_ended_whatever_breaks_afterwards() -> None:
    one = nanny()
    for reason in ("scheduler-close", "worker-handle-scheduler-connection-broken"):
        _TaskNanny.close_gracefully(one, reason)

    assert one.ended
