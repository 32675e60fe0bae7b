"""How long a worker of the data service may be silent: from the dispatcher's answer to its next request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from workbench.data.service.dispatch import placement
from workbench.data.service.dispatch.coordinator import Coordinator, Limits
from workbench.data.service.server import Session

LIMIT = 9.0


class Clock:
    """Goes on where a test says so, and while a request waits for news."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.meanwhile: Callable[[], object] = lambda: None
        monkeypatch.setattr(placement, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(Coordinator, "_keep_house", lambda coordinator: None)
        monkeypatch.setattr(Coordinator, "_wait_for_news", self.wait)

    def wait(self, fields: dict[str, Any]) -> None:
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        self.now += fields["wait"]
        meanwhile()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def coordinator(clock: Clock) -> Iterator[Coordinator]:
    made = Coordinator(None, Limits(10.0, 300.0, LIMIT), ())
    yield made
    made.stop()


def ask(coordinator: Coordinator, session: Session, wait: float, elements: int = 0) -> None:
    fields = {"worker": "w", "address": "127.0.0.1:1", "elements": elements, "version": 0, "wait": wait}
    coordinator.answer("tasks", fields, b"", session)


def lose_silent(coordinator: Coordinator) -> int:
    with coordinator._news:
        coordinator._placement.lose_silent(LIMIT)
    return coordinator.num_workers


def test_a_worker_has_the_whole_time_after_an_answer_that_took_long(
    coordinator: Coordinator, clock: Clock
) -> None:
    ask(coordinator, Session(), wait=LIMIT / 3)
    clock.now += 0.9 * LIMIT
    assert lose_silent(coordinator) == 1
    clock.now += 0.2 * LIMIT
    assert lose_silent(coordinator) == 0


def test_a_worker_that_asks_often_is_not_silent(coordinator: Coordinator, clock: Clock) -> None:
    session = Session()
    for elements in range(100):
        ask(coordinator, session, wait=0.05, elements=elements)
    clock.now += 0.999 * LIMIT
    assert lose_silent(coordinator) == 1


def test_the_answer_to_a_cut_connection_does_not_make_a_worker_silent(
    coordinator: Coordinator, clock: Clock
) -> None:
    def late_answer() -> None:
        coordinator._placement.workers["w"].answered(cut)
        clock.now += 2 * LIMIT
        assert lose_silent(coordinator) == 1

    cut = Session()
    ask(coordinator, cut, wait=0.0)
    clock.meanwhile = late_answer
    ask(coordinator, Session(), wait=0.0)
    assert clock.now > 1000.0
