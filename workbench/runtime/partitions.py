"""Partitions of Dask collections: read in the process that holds them, fetched from there, or computed here."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from dask import core
from distributed import Client, Future, Worker
from distributed.utils_comm import gather_from_workers

from workbench.errors import InvalidArgumentError, UnavailableError
from workbench.runtime.deploy.plugin import IN_PROCESS

_CHECK_SECONDS: Final = 1.0
_RECOMPUTED_SECONDS: Final = 60.0


class Partition(Protocol):
    """One partition of a collection; it travels to the process that reads it."""

    def read(self) -> Any:
        """Its value: a block of an array, a data frame, or a list of items."""


@dataclass(frozen=True, slots=True)
class Held:
    """A partition that a worker of a cluster holds or will hold.

    Attributes:
      key: The cluster's key for it.
      scheduler: Address of the cluster's scheduler.
      future: Keeps the partition on the cluster; the future stays in the process that has the collection.
    """

    key: Any
    scheduler: str
    future: Future[Any] | None = field(default=None, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return Held, (self.key, self.scheduler)

    def read(self) -> Any:
        """Its value: without a copy if this process holds it, otherwise fetched from the worker that does.

        Raises:
          UnavailableError: if it no longer exists, or this process belongs to another cluster.
        """
        if self.future is not None:
            return _result(self.future)
        workers = [side.dask_worker for side in tuple(IN_PROCESS.values())]
        for worker in workers:
            if self.key in worker.data:
                return worker.data[self.key]
        for worker in workers:
            if worker.scheduler.address == self.scheduler:
                return _fetched(self.key, worker)
        raise UnavailableError(
            f"partition {self.key!r} is held by the cluster at {self.scheduler}, and this process is not one "
            f"of its workers; "
            "persist it on the cluster that the replicas run on, wb.current_cluster().client.persist(collection), and "
            "leave InputOptions.input_process to its default"
        )


@dataclass(frozen=True, slots=True)
class Computed:
    """A partition that is computed on each read, in the reading process.

    Attributes:
      delayed: Its tasks.
    """

    delayed: Any

    def read(self) -> Any:
        """Its value."""
        return self.delayed.compute(scheduler="synchronous")


def partitions_of(collection: Any) -> list[Partition]:
    """The partitions of a collection, in order.

    Raises:
      InvalidArgumentError: if some of its tasks need data that a cluster holds.
    """
    keys = list(core.flatten(collection.__dask_keys__()))  # type: ignore[no-untyped-call]
    graph = dict(collection.__dask_graph__())
    futures = [_future_behind(key, graph) for key in keys]
    held = [future for future in futures if future is not None]
    if len(held) == len(keys):
        return [Held(future.key, future.client.scheduler.address, future) for future in held]
    if any(isinstance(node, Future) for node in graph.values()):
        raise InvalidArgumentError(
            "from_dask: the collection is computed from partitions that a cluster holds; persist it, too: "
            "collection.persist()"
        )
    delayed = collection.to_delayed()
    return [Computed(part) for part in (delayed if isinstance(delayed, list) else delayed.ravel())]


def wait_for(parts: Iterable[Partition]) -> None:
    """Waits until workers hold the requested partitions.

    Raises:
      Exception: if computing a partition raises it.
      UnavailableError: if the cluster ends first.
    """
    for part in parts:
        if isinstance(part, Held) and part.future is not None:
            _done(part.future)


def holders(parts: Iterable[Partition]) -> list[frozenset[str]]:
    """The addresses of the workers that hold each partition; empty for computed ones."""
    found = []
    known: dict[Client, Mapping[Any, Any]] = {}
    for part in parts:
        future = part.future if isinstance(part, Held) else None
        if future is None:
            found.append(frozenset[str]())
            continue
        if future.client not in known:
            known[future.client] = future.client.who_has()
        found.append(frozenset(known[future.client].get(future.key, ())))
    return found


def _future_behind(key: Any, graph: Mapping[Any, Any]) -> Future[Any] | None:
    """The future for a key, even through aliases."""
    node = graph[key]
    while not isinstance(node, Future):
        target = getattr(node, "target", None)
        if target is None or target not in graph:
            return None
        node = graph[target]
    return node


def _fetched(key: Any, worker: Worker) -> Any:
    """A partition that another worker of the cluster holds."""
    asked = asyncio.run_coroutine_threadsafe(
        _fetch(key, worker),
        worker.loop.asyncio_loop,  # type: ignore[attr-defined]  # tornado's own, of every loop on asyncio
    )
    return asked.result(timeout=2 * _RECOMPUTED_SECONDS)


async def _fetch(key: Any, worker: Worker) -> Any:
    for _ in range(int(_RECOMPUTED_SECONDS / _CHECK_SECONDS)):
        who_has = await worker.scheduler.who_has(keys=[key])
        if who_has.get(key):
            found = await gather_from_workers(who_has, rpc=worker.rpc, who=worker.address)
            if key in found[0]:
                return found[0][key]
        await asyncio.sleep(_CHECK_SECONDS)  # its worker was lost; Dask recomputes it elsewhere
    raise UnavailableError(
        f"partition {key!r} has been on no worker of the cluster for {_RECOMPUTED_SECONDS:.0f} s"
    )


def _done(future: Future[Any]) -> None:
    # A partition may take any time to compute; only the end of its cluster ends the wait.
    while future.status == "pending":
        try:
            future.exception(timeout=_CHECK_SECONDS)
        except TimeoutError:
            if future.client.status != "running":
                raise UnavailableError(
                    f"partition {future.key!r} is not there yet, and its cluster is {future.client.status}"
                ) from None
    if future.status == "error":
        future.result(timeout=_RECOMPUTED_SECONDS)
    if future.status != "finished":
        raise UnavailableError(f"partition {future.key!r} is {future.status}; persist the collection again")


def _result(future: Future[Any]) -> Any:
    _done(future)
    return future.result(timeout=_RECOMPUTED_SECONDS)
