"""How a task learns that the chief has ended the cluster, whatever its workers are doing.

Dask's scheduler tells the workers, and each of them its nanny. A task whose workers are just starting, or hang, would
hear nothing that way, and wait for a chief that is not coming back; so it keeps a connection of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Final

from distributed import Scheduler
from distributed.comm.core import connect
from distributed.security import Security

_OPERATION: Final = "workbench_farewell"
_CONNECT_SECONDS: Final = 5.0
_SAY_SECONDS: Final = 1.0


class Farewell:
    """The chief's side: all tasks that shall hear of the end."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._comms: list[Any] = []
        scheduler.handlers[_OPERATION] = self._add

    async def say(self) -> None:
        """Tells them that the cluster has ended."""

        async def tell(comm: Any) -> None:
            with contextlib.suppress(OSError, TimeoutError):
                await asyncio.wait_for(comm.write(_OPERATION), _SAY_SECONDS)

        await asyncio.gather(*map(tell, self._comms))

    def _add(self, comm: Any) -> None:
        self._comms = [other for other in self._comms if not other.closed()] + [comm]


class Hearing:
    """The task's side: open as long as the scheduler is there.

    Attributes:
      over: Done when nothing more will be heard; its result is whether the chief has ended the cluster. Otherwise the
        scheduler is lost, or out of reach.
    """

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self.over: asyncio.Future[bool] = asyncio.ensure_future(self._hear())

    @classmethod
    async def of(cls, address: str, security: Security) -> Hearing:
        """Connects to a scheduler.

        Raises:
          OSError: if that is out of reach.
        """
        comm = await connect(address, timeout=_CONNECT_SECONDS, **security.get_connection_args("worker"))
        try:
            await comm.write({"op": _OPERATION, "reply": False})
        except BaseException:
            comm.abort()
            raise
        return cls(comm)

    async def ended(self, seconds: float) -> bool:
        """Whether the chief has ended the cluster, or does so within some time."""
        await asyncio.wait({self.over}, timeout=seconds)
        return self.over.done() and self.over.result()

    def close(self) -> None:
        """Hears no more."""
        self._comm.abort()

    async def _hear(self) -> bool:
        with contextlib.suppress(OSError):
            return bool(await self._comm.read() == _OPERATION)
        return False
