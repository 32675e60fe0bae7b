"""What is told of a scheduler that cannot be asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from distributed.comm import CommClosedError

from workbench.runtime.deploy.lookout import Lookout


class _Client:
    """A Dask client whose scheduler is gone, on the loop of the test."""

    def __init__(self, status: str) -> None:
        self.status = status
        self.scheduler = SimpleNamespace(address="tcp://10.0.0.1:8786", identity=self._identity)
        self.loop = SimpleNamespace(add_callback=self._add)
        self.tasks: list[asyncio.Task[Any]] = []

    async def _identity(self, n_workers: int) -> Any:
        raise CommClosedError("ConnectionPool closing.")

    def _add(self, callback: Callable[[], Any]) -> None:
        self.tasks.append(asyncio.ensure_future(callback()))


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (
            "connecting",
            "the Dask scheduler at tcp://10.0.0.1:8786 does not answer any more (CommClosedError)",
        ),
        # The client's requests end before the client itself does.
        ("closing", "the Dask scheduler has ended, or was out of reach for too long"),
        ("closed", "the Dask scheduler has ended, or was out of reach for too long"),
    ],
)
def test_a_scheduler_has_ended_once_the_client_gives_it_up(status: str, told: str) -> None:
    async def look_out() -> str:
        client: Any = _Client(status)
        lookout = Lookout(client, dict)
        lookout.begin("worker", "")
        while lookout.trouble is None:
            await asyncio.sleep(0)
        lookout.close()
        await asyncio.gather(*client.tasks)
        return str(lookout.trouble)

    assert asyncio.run(look_out()).startswith(told)
