"""A step that JAX computes while another host fails: it may end, and is given up only if it does not."""

from __future__ import annotations

import types
from typing import Any

import pytest

from workbench.backends.jax import program
from workbench.errors import CollectiveAborted, DeadlineExceededError
from workbench.runtime.traced import pending_step

NEVER = 1e9


class _Clock:
    """Time that advances with each sleep."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += 0.1  # polling for seconds takes fewer turns than this


def _step(
    monkeypatch: pytest.MonkeyPatch, ready_at: float, aborted: bool, deadline_seconds: float | None
) -> tuple[Any, _Clock]:
    clock = _Clock()
    monkeypatch.setattr(pending_step, "time", clock)
    monkeypatch.setattr(program, "ready", lambda rows: clock.now >= ready_at)
    monkeypatch.setattr(program, "wait", lambda rows: None)
    step: Any = object.__new__(pending_step.Started)
    step.known = types.SimpleNamespace(alone=False)
    step.group = types.SimpleNamespace(aborted=aborted, epoch=3)
    step.program = types.SimpleNamespace(site="train.py:7")
    step.waits_for, step.deadline_seconds = [], deadline_seconds
    return step, clock


@pytest.mark.parametrize("aborted", [False, True])
def test_a_step_ends_whose_collectives_were_over_when_another_host_failed(
    monkeypatch: pytest.MonkeyPatch, aborted: bool
) -> None:
    host: Any = types.SimpleNamespace(poisoned=False)
    step, clock = _step(monkeypatch, 1.5, aborted, None)
    step.wait(host)
    assert not host.poisoned
    assert clock.now == pytest.approx(1.5)


def test_a_step_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    host: Any = types.SimpleNamespace(poisoned=False)
    step, clock = _step(monkeypatch, NEVER, True, None)
    with pytest.raises(CollectiveAborted, match="the step cannot end: another host has failed"):
        step.wait(host)
    assert host.poisoned
    assert 2.0 < clock.now < 2.3


def test_a_deadline_counts_also_where_another_host_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    host: Any = types.SimpleNamespace(poisoned=False)
    step, _ = _step(monkeypatch, NEVER, True, 0.5)
    with pytest.raises(DeadlineExceededError, match=r"'train.py:7' did not end within 0.5 s"):
        step.wait(host)
    assert host.poisoned
