"""What takes long is done in a thread, in order, and what follows from it on the event loop."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable

import pytest

from workbench.dashboards.aside import Aside, at_once
from workbench.dashboards.pane import Pane
from workbench.errors import DataCorruption
from workbench.ui.widgets.sources import Given, Message

PATIENCE_SECONDS = 60.0


def on(loop: asyncio.AbstractEventLoop) -> Callable[[Callable[[], None]], None]:
    return lambda what: void(loop.call_soon_threadsafe(what))


def void(handle: object) -> None:
    """As Bokeh's documents do, which give nothing back that could be awaited."""


def test_what_takes_no_time_is_done_at_once() -> None:
    found: list[int] = []
    at_once(lambda: 3, found.append)
    assert found == [3]


def test_the_event_loop_goes_on_meanwhile_and_what_follows_keeps_its_order() -> None:
    release = threading.Event()
    found: list[tuple[str, bool]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        done = asyncio.Event()
        aside = Aside(on(loop))

        def slow() -> str:
            assert release.wait(PATIENCE_SECONDS)
            return "slow"

        def then(what: str) -> None:
            found.append((what, threading.current_thread() is threading.main_thread()))
            if what == "quick":
                done.set()

        aside(slow, then)
        aside(lambda: "quick", then)
        for _ in range(10):  # the loop is free
            await asyncio.sleep(0)
        assert found == []
        release.set()
        await asyncio.wait_for(done.wait(), PATIENCE_SECONDS)

    asyncio.run(main())
    assert found == [("slow", True), ("quick", True)]


def test_nothing_follows_after_the_page_was_closed() -> None:
    begun, release = threading.Event(), threading.Event()
    found: list[int] = []

    async def main() -> None:
        aside = Aside(on(asyncio.get_running_loop()))

        def slow() -> int:
            begun.set()
            assert release.wait(PATIENCE_SECONDS)
            return 3

        aside(slow, found.append)
        await asyncio.to_thread(begun.wait, PATIENCE_SECONDS)
        aside.close()
        release.set()

    asyncio.run(main())  # waits for the thread
    assert found == []


@pytest.mark.parametrize("damaged", [False, True])
def test_a_pane_shows_what_was_made_in_a_thread(monkeypatch: pytest.MonkeyPatch, damaged: bool) -> None:
    received: list[Message] = []
    made_by: list[threading.Thread] = []

    def make() -> Message:
        made_by.append(threading.current_thread())
        if damaged:
            raise DataCorruption("the run is damaged")
        return {"runs": []}

    async def main() -> None:
        came = asyncio.Event()

        def receive(text: str) -> None:
            received.append(json.loads(text))
            came.set()

        pane = Pane(Given("runs", make), work=Aside(on(asyncio.get_running_loop())))
        monkeypatch.setattr(pane, "_send_msg", receive)
        pane._handle_msg({"kind": "resync"})
        pane.push()
        assert received == []
        await asyncio.wait_for(came.wait(), PATIENCE_SECONDS)

    asyncio.run(main())
    assert made_by[0] is not threading.main_thread()
    expected = {"kind": "problem", "text": "the run is damaged"}
    assert received == [expected if damaged else {"kind": "model", "model": {"runs": []}}]
