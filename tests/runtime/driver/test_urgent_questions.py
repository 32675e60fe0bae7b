"""Questions to workers that may stand still."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from workbench.errors import WorkbenchError
from workbench.runtime.comm.links import LinkClosed, UnixLink
from workbench.runtime.comm.messages import DUMP, LAST_WRITES, TELEMETRY
from workbench.runtime.driver.gang.control_requests import UrgentQuestions


@pytest.fixture
def ends() -> Iterator[tuple[Any, UnixLink]]:
    """A worker that reads nothing, and its end of the link."""
    ours, theirs = socket.socketpair()
    worker = SimpleNamespace(lost=None, address="unix://worker", signals=UnixLink(ours))
    end = UnixLink(theirs)
    yield worker, end
    worker.signals.close()
    end.close()


def test_a_worker_that_stands_still_can_be_asked_for_ever(ends: tuple[Any, UnixLink]) -> None:
    worker, end = ends
    questions = UrgentQuestions()
    asked = [questions.ask(worker, (DUMP, TELEMETRY)[k % 2]) for k in range(2_000)]
    asked.append(questions.ask(worker, LAST_WRITES))  # the first of its kind

    with pytest.raises(WorkbenchError, match=r"did not answer in 0\.01 s"):
        asked[-2].answer(0.01)
    sent = end.receive()
    while len(sent) < 17:
        sent += end.receive()
    assert len(sent) == 17
    for kind, number in sent:
        questions.settled(number, True, f"answer to {kind}")
    assert [question.answer(1.0) for question in asked[-3:]] == [
        f"answer to {kind}" for kind in (DUMP, TELEMETRY, LAST_WRITES)
    ]


def test_a_worker_that_answers_is_asked_each_time(ends: tuple[Any, UnixLink]) -> None:
    worker, end = ends
    questions = UrgentQuestions()
    for _ in range(100):
        question = questions.ask(worker, DUMP)
        (message,) = end.receive()
        questions.settled(message[1], True, "here")
        assert question.answer(1.0) == "here"


def test_others_are_asked_meanwhile(ends: tuple[Any, UnixLink]) -> None:
    worker, _ = ends
    questions = UrgentQuestions()
    for _ in range(100):
        questions.ask(worker, DUMP)

    def refuse(message: Any) -> None:
        raise LinkClosed("it is gone")

    other: Any = SimpleNamespace(lost=None, address="unix://other", signals=SimpleNamespace(send=refuse))
    with pytest.raises(WorkbenchError, match="worker unix://other is gone: it is gone"):
        questions.ask(other, DUMP).answer(1.0)
