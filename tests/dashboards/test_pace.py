"""Soon, but not too often, and never unasked: by the event loop's own clock."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from workbench.dashboards.pace import REST_SECONDS, Pace


def test_many_requests_become_few_calls_with_a_rest_between_them() -> None:
    async def look() -> list[float]:
        loop = asyncio.get_running_loop()
        calls: list[float] = []
        third = asyncio.Event()

        def call() -> None:
            calls.append(loop.time())
            if len(calls) < 3:
                for _ in range(100):
                    pace.ask()
            else:
                third.set()

        pace = Pace(call)
        for _ in range(100):
            pace.ask()
        await asyncio.wait_for(third.wait(), 60)
        pace.stop()
        pace.ask()
        return calls

    calls = asyncio.run(look())
    assert len(calls) == 3
    resolution = 1e-3
    assert all(later - sooner >= REST_SECONDS - resolution for sooner, later in pairwise(calls))


def test_nothing_is_called_after_it_was_stopped() -> None:
    async def look() -> list[str]:
        calls: list[str] = []
        pace = Pace(lambda: calls.append("call"))
        pace.ask()
        pace.stop()
        pace.ask()
        done = asyncio.Event()
        asyncio.get_running_loop().call_later(2 * REST_SECONDS, done.set)
        await asyncio.wait_for(done.wait(), 60)
        return calls

    assert asyncio.run(look()) == []
