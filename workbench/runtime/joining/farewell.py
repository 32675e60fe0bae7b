"""Informs tasks that the chief has ended the cluster, whatever their workers are doing.

Dask's scheduler informs the workers, and each worker its nanny. A task with workers that are just starting, or hang,
would not get that message and would wait for a chief that does not come back; so each task has its own connection.
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
    """The chief's side: connections to all tasks that are informed of the end."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._comms: list[Any] = []
        scheduler.handlers[_OPERATION] = self._add

    async def say(self) -> None:
        """Informs the tasks that the cluster has ended."""

        async def tell(comm: Any) -> None:
            with contextlib.suppress(OSError, TimeoutError):
                await asyncio.wait_for(comm.write(_OPERATION), _SAY_SECONDS)

        await asyncio.gather(*map(tell, self._comms))

    def _add(self, comm: Any) -> None:
        self._comms = [other for other in self._comms if not other.closed()] + [comm]


class Hearing:
    """The task's side: a connection that is open as long as the scheduler is.

    Attributes:
      over: Done when the connection has ended; its result is whether the chief has ended the cluster. Otherwise the
        scheduler is lost or unreachable.
    """

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self.over: asyncio.Future[bool] = asyncio.ensure_future(self._hear())

    @classmethod
    async def of(cls, address: str, security: Security) -> Hearing:
        """Connects to a scheduler.

        Raises:
          OSError: if that is unreachable.
        """
        comm = await connect(address, timeout=_CONNECT_SECONDS, **security.get_connection_args("worker"))
        try:
            await comm.write({"op": _OPERATION, "reply": False})
        except BaseException:
            comm.abort()
            raise
        return cls(comm)

    async def ended(self, seconds: float) -> bool:
        """Whether the chief has ended the cluster, or does so within `seconds`."""
        await asyncio.wait({self.over}, timeout=seconds)
        return self.over.done() and self.over.result()

    def close(self) -> None:
        """Closes the connection."""
        self._comm.abort()

    async def _hear(self) -> bool:
        with contextlib.suppress(OSError):
            return bool(await self._comm.read() == _OPERATION)
        return False
