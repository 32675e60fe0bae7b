"""Ctrl-C while a cluster closes: what it waits for then is given up, and the rest is closed."""

from __future__ import annotations

import signal
from types import SimpleNamespace
from typing import Any

import pytest

from workbench.runtime import Cluster
from workbench.runtime.deploy.delayed_interrupt import delayed_interrupt
from workbench.runtime.driver.gang.control_requests import Question


def _cluster_of_a_silent_worker() -> Any:
    worker = SimpleNamespace(address="tcp://silent:1")

    def ask(worker: Any, kind: int) -> Question:
        signal.raise_signal(signal.SIGINT)
        return Question(worker, kind)

    gang = SimpleNamespace(living=lambda: [worker], urgent=SimpleNamespace(ask=ask))
    return SimpleNamespace(gang=gang, _tell_results=lambda: None)


def test_ctrl_c_ends_the_wait_for_last_writes() -> None:
    reached = False
    with pytest.raises(KeyboardInterrupt), delayed_interrupt():  # noqa: PT012
        with pytest.warns(RuntimeWarning, match="has not written all that it kept.*Ctrl-C ended the wait"):
            Cluster._await_last_writes(_cluster_of_a_silent_worker())
        reached = True
    assert reached


def test_ctrl_c_ends_the_wait_for_the_last_records() -> None:
    silent: tuple[str, ...] = ()
    with pytest.raises(KeyboardInterrupt), delayed_interrupt():
        silent = Cluster.flush_telemetry(_cluster_of_a_silent_worker(), 1000.0)
    assert silent == ("tcp://silent:1",)
