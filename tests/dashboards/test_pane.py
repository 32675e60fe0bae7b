"""A pane sends what its view needs, no more than the page takes, and nothing while nobody looks."""

from __future__ import annotations

import json
from collections import deque
from typing import Any

import pytest

from workbench.dashboards.pane import Pane
from workbench.ui.widgets.sources import Message


class Counting:
    """A source whose model is a number."""

    view = "log"
    interval_seconds = 0.1
    ended = False

    def __init__(self) -> None:
        self.count = 0
        self._sent = 0

    def model(self) -> Message:
        self._sent = self.count
        return {"count": self.count}

    def change(self) -> Message | None:
        return None if self._sent == self.count else {"kind": "model", "model": self.model()}

    def answer(self, request: Message) -> Message | None:
        if request["kind"] == "refuse":
            raise ValueError("no <b>such</b> thing")
        return {"kind": "model", "model": {"answer": request}}


class Browser:
    """A page with one pane."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
        self.source = Counting()
        self.told: list[bool] = []
        self.received: deque[Message] = deque()
        self.pane = Pane(self.source, on_watched=lambda: self.told.append(self.pane.watched), **options)
        monkeypatch.setattr(self.pane, "_send_msg", lambda text: self.received.append(json.loads(text)))

    def send(self, **message: Any) -> None:
        self.pane._handle_msg(message)

    def next(self) -> Message:
        (message,) = self.received
        self.received.clear()
        return message


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> Browser:
    return Browser(monkeypatch)


def test_nothing_is_sent_before_the_page_asks(browser: Browser) -> None:
    browser.pane.push()
    assert not browser.received
    browser.send(kind="resync")
    assert browser.next() == {"kind": "model", "model": {"count": 0}}
    assert browser.told == [True]


def test_a_slow_page_gets_the_newest_state_only(browser: Browser) -> None:
    browser.send(kind="resync")
    browser.received.clear()
    for browser.source.count in range(1, 1001):
        browser.pane.push()
    assert not browser.received
    assert browser.pane.waits

    browser.send(kind="taken")
    browser.pane.push()
    assert browser.next() == {"kind": "model", "model": {"count": 1000}}
    browser.send(kind="taken")
    browser.pane.push()
    assert not browser.received


def test_a_view_out_of_sight_costs_nothing(browser: Browser) -> None:
    browser.send(kind="resync")
    browser.send(kind="taken")
    browser.send(kind="visible", visible=False)
    browser.received.clear()
    browser.source.count = 7
    browser.pane.push()
    assert not browser.received

    browser.send(kind="visible", visible=True)
    browser.send(kind="visible", visible=True)
    browser.pane.push()
    assert browser.next() == {"kind": "model", "model": {"count": 7}}
    assert browser.told == [True, False, True]


def test_what_is_missing_is_said_once_until_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = "nothing yet"
    browser = Browser(monkeypatch, missing=lambda: missing)
    browser.send(kind="resync")
    assert browser.next() == {"kind": "note", "text": "nothing yet"}
    browser.send(kind="taken")
    browser.pane.push()
    assert not browser.received

    missing = ""
    browser.pane.push()
    assert browser.next() == {"kind": "model", "model": {"count": 0}}


def test_requests_are_answered_and_what_is_wrong_with_them_is_told(browser: Browser) -> None:
    browser.send(kind="what_if", batch_size=3)
    assert browser.next()["model"] == {"answer": {"kind": "what_if", "batch_size": 3}}
    browser.send(kind="refuse")
    assert browser.next() == {"kind": "problem", "text": "no <b>such</b> thing"}


def test_a_view_goes_on_after_a_fault_of_its_source(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    browser.send(kind="resync")
    browser.send(kind="taken")
    browser.received.clear()
    browser.source.count = 7
    with monkeypatch.context() as faulty:
        faulty.setattr(browser.source, "change", lambda: [][0])
        browser.pane.push()
    assert browser.next()["kind"] == "problem"
    assert "IndexError" in caplog.text

    browser.send(kind="taken")
    browser.pane.push()
    assert browser.next() == {"kind": "model", "model": {"count": 7}}


@pytest.mark.parametrize(
    "message", [None, 3, "taken", [], {}, {"kind": 3}, {"visible": True}, {"kind": None}]
)
def test_what_is_no_message_is_ignored(browser: Browser, message: Any) -> None:
    browser.pane._handle_msg(message)
    assert not browser.received
    assert not browser.told
