"""ClusterCoordinator: schedules functions on the workers of a parameter-server strategy."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

from workbench import by_value, tree
from workbench.backends.users_line import warn
from workbench.debugging import observing
from workbench.debugging.dump.session import current_writer
from workbench.distribute.coordinator.call_queue import Call, CallQueue
from workbench.distribute.coordinator.lane import Lane, pickled_arguments
from workbench.distribute.coordinator.per_worker import PerWorkerDataset, PerWorkerValues
from workbench.distribute.coordinator.remote_value import RemoteValue
from workbench.distribute.coordinator.shipment import Shipment, pickled_dataset
from workbench.distribute.coordinator.worker_resources import on_worker
from workbench.distribute.coordinator.worker_side import start_worker
from workbench.distribute.copied_by_reference import CopiedByReference
from workbench.distribute.function import checked_arguments
from workbench.distribute.strategies.parameter_server import ParameterServerStrategy
from workbench.errors import InvalidArgumentError
from workbench.runtime.placement_text import counted, one_line
from workbench.runtime.services.frames import Fields, raised_by
from workbench.runtime.services.hosted import HostedService
from workbench.runtime.services.service import Connection
from workbench.telemetry.formatting import significant

_CALL: Final = "coordinator.schedule"
_MOST_QUEUED: Final = 256 * 1024
_CLOSE_SECONDS: Final = 10.0
_SETTLE_SECONDS: Final = 60.0
_WRITE_SECONDS: Final = 60.0  # a dump may hold gigabytes
_LEAST_SECONDS: Final = 0.1  # kept for the last worker, if others took all of the time


class ClusterCoordinator(CopiedByReference):
    """Runs functions on whichever worker is free (as tf.distribute.coordinator.ClusterCoordinator).

    A function that is lost with its worker runs again on another one. Its earlier updates are not applied twice, as
    long as it makes the same updates again in the same order. An error that a function raises is never retried: it
    cancels the waiting functions, and the next `schedule`, `join` or `done` raises it, once. Functions are pickled
    even if workers are threads, so they share no object with the notebook.

    A strategy has one coordinator; constructing it again returns the same one.

    Args:
      strategy: A `ParameterServerStrategy`.

    Raises:
      ValueError: if it is another strategy.

    >>> strategy = wb.distribute.ParameterServerStrategy(servers=1)
    >>> coordinator = wb.distribute.coordinator.ClusterCoordinator(strategy)
    >>> with strategy.scope():
    ...     total = wb.Variable(0.0)
    >>> def step(number):
    ...     total.assign_add(number)
    >>> for number in range(4):
    ...     result = coordinator.schedule(step, args=(number,))
    >>> coordinator.join()
    >>> float(total.numpy())
    6.0
    """

    def __new__(cls, strategy: ParameterServerStrategy) -> ClusterCoordinator:
        """The coordinator of a strategy."""
        if not isinstance(strategy, ParameterServerStrategy):
            raise InvalidArgumentError(
                f"ClusterCoordinator schedules functions on the workers of a ParameterServerStrategy, got "
                f"{strategy!r}; other strategies run functions by strategy.run"
            )
        known: ClusterCoordinator | None = strategy.coordinator
        return object.__new__(cls) if known is None else known

    def __init__(self, strategy: ParameterServerStrategy) -> None:
        if strategy.coordinator is not None:
            return
        hosting = strategy.hosting
        self._strategy = strategy
        self._queue = CallQueue(_MOST_QUEUED)
        self._shipment = Shipment(secrets.token_hex(8), hosting, self._queue)
        self._lanes: list[Lane] = []
        self._observed: tuple[observing.Observation | None, bytes] = None, b""
        self._dumped: set[str] = set()  # folders of dumps for which workers keep data
        queue, lanes, dumped, description = self._queue, self._lanes, self._dumped, strategy.description
        services: list[HostedService] = []

        def close() -> None:  # references neither the strategy nor this object, so that both may be collected
            queue.close()
            for lane in lanes:  # first, because lanes would report the end of their workers as a loss
                lane.close(_CLOSE_SECONDS)
            try:
                for root in sorted(dumped):
                    _write(lanes, {"root": root, "sources": True, "executions": True, "close": False})
            finally:
                dumped.clear()  # a dump that ends later does not ask these workers
                for service in services:
                    service.close()

        hosting.before_close(close)
        for number, device in enumerate(hosting.workers):
            start = _Start(number, description, hosting.client)
            services.append(HostedService(hosting.cluster, device, f"worker:{number}", start_worker, start))
        for number, service in enumerate(services):
            lanes.append(Lane(number, service, self._queue, self._shipment, len(services)))
        strategy.coordinator = self
        hosting.watched.functions = lambda: (tuple(lane.now() for lane in lanes), queue.now())

    @property
    def strategy(self) -> ParameterServerStrategy:
        """The strategy."""
        return self._strategy

    def schedule(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> RemoteValue:
        """Queues `fn` to run on a worker, and returns immediately.

        A `wb.function` travels to each worker once; a plain function travels again when what it captures has changed.

        Args:
          fn: The function to run; it may read and update the strategy's variables.
          args: Positional arguments. Each worker gets its own component of `PerWorkerValues`, and the value of a
            `RemoteValue`, for which the function waits.
          kwargs: Keyword arguments, likewise.

        Returns:
          A handle of the result; its `fetch` waits for it.

        Raises:
          Exception: the error of a function that was scheduled earlier; `fn` is not queued then.
          CaptureError: if `fn` or an argument cannot travel.
          TypeError: if `fn` is not a function, `args` not a tuple, or `kwargs` not a dictionary.
          InvalidArgumentError: if an argument is an iterator of another coordinator.
          ClusterClosed: if the strategy was closed.

        >>> coordinator = wb.distribute.coordinator.ClusterCoordinator(wb.distribute.ParameterServerStrategy(servers=1))
        >>> later = coordinator.schedule(lambda x: 2 * x, args=(21,))
        >>> later.fetch()
        42
        """
        prepared = self._shipment.prepare(fn)
        arguments: Any = b""
        needs: list[RemoteValue] = []
        if args is not None or kwargs is not None:
            arguments = (checked_arguments(() if args is None else args, kwargs, _CALL), dict(kwargs or {}))
            for leaf in tree.flatten(arguments)[0]:
                if type(leaf) is RemoteValue:
                    needs.append(leaf)
                elif type(leaf) is PerWorkerValues:
                    self._shipment.require_own(leaf)
            if not needs:
                arguments = pickled_arguments(prepared.name, arguments)
        queue = self._queue
        result = RemoteValue(queue.changed, prepared.name)
        # It may raise, and then a number from `next_number` would stay open forever.
        observation = self._observation()
        queue.put(Call(queue.next_number(), prepared, arguments, result, observation), needs)
        return result

    def _observation(self) -> bytes:
        """How functions are checked and dumped from now on, pickled; b"" for not at all."""
        observation = observing.current()
        if observation is None:
            return b""
        if observation != self._observed[0]:
            self._observed = observation, by_value.dumps(observation)
        # On each call, because an equal observation may belong to another dump.
        if (writer := current_writer()) is not None:
            writer.runs_on(self)
            self._dumped.add(writer.options.root)
            self._strategy.hosting.cluster.expect_last_writes()
        return self._observed[1]

    def flush_dumps(self, root: str, *, sources: bool, executions: bool, close: bool) -> None:
        """Makes the workers write their data of a dump; `wb.debugging` calls it.

        Args:
          root: The folder of the dump.
          sources: Whether to write copies of source files.
          executions: Whether to write operations.
          close: Whether to write everything and end the dump. This waits for the scheduled functions, and warns if
            they take longer than a minute.
        """
        if root not in self._dumped:
            return
        left = 0
        try:
            if close and not on_worker():  # a scheduled function would wait for itself
                left = self._queue.settle(_SETTLE_SECONDS)
        finally:  # also after an interrupt
            _write(self._lanes, {"root": root, "sources": sources, "executions": executions, "close": close})
        if close and not left:
            self._dumped.discard(root)
        if left:
            warn(
                f"the dump into {root!r} has ended before {counted(left, 'function')} that had been scheduled: what is "
                f"still computed is written once it is there, at the latest when the strategy closes. To wait for it, "
                f"call coordinator.join() first",
                RuntimeWarning,
            )

    def join(self) -> None:
        """Waits until all scheduled functions have ended.

        Raises:
          Exception: the error of one of them; all errors are cleared, nothing runs any more, and functions that had
            not begun were cancelled.
        """
        self._queue.join()

    def done(self) -> bool:
        """Whether all scheduled functions have ended; raises as `join`."""
        return self._queue.done()

    def fetch(self, val: Any) -> Any:
        """Waits for a `RemoteValue`, or a structure of them, and returns the results; other values are unchanged."""
        if type(val) is RemoteValue:
            return val.fetch()
        return tree.map(lambda leaf: leaf.fetch() if type(leaf) is RemoteValue else leaf, val)

    def create_per_worker_dataset(self, dataset_fn: Any) -> PerWorkerDataset:
        """Creates the same dataset on each worker.

        Args:
          dataset_fn: A dataset, or a function that returns it. The function runs on each worker that needs it, and
            again on one that replaces a lost worker.

        Returns:
          A dataset whose `iter` returns `PerWorkerValues`, an iterator on each worker, for arguments of functions.

        Raises:
          TypeError: if it is neither a dataset nor a function.
          CaptureError: if it cannot travel to the workers.
        """
        if not (callable(dataset_fn) or hasattr(type(dataset_fn), "element_spec")):
            raise TypeError(
                f"create_per_worker_dataset takes a dataset, or a function that returns one, got "
                f"{type(dataset_fn).__name__}: {dataset_fn!r:.80}"
            )
        data = pickled_dataset(dataset_fn)
        return PerWorkerDataset(dataset_fn, lambda: self._shipment.per_worker(data))

    def __repr__(self) -> str:
        queue = self._queue.now()
        workers = [lane.now() for lane in self._lanes]
        rate = significant(sum(worker.functions_per_second for worker in workers))
        return one_line(
            type(self).__name__,
            counted(len(workers), "worker"),
            f"{queue.waiting + queue.blocked} queued, {queue.running} running, {queue.done} done",
            f"{rate} functions/s",
        )


def _write(lanes: Sequence[Lane], what: Fields) -> None:
    """Makes all workers write their data of a dump; warns about each that does not.

    Args:
      lanes: The workers' lanes.
      what: Arguments of `session.flush_here`.
    """
    deadline = time.monotonic() + _WRITE_SECONDS
    failed: list[tuple[Lane, Exception]] = []
    with contextlib.ExitStack() as open_connections:
        # In parallel, so that an unreachable worker delays no others.
        with ThreadPoolExecutor(len(lanes), "workbench-dump") as pool:
            asked = [(lane, pool.submit(lane.asked_to_flush_dumps, what, deadline)) for lane in lanes]
            for _, connecting in asked:
                open_connections.callback(_close, connecting)
        for lane, connecting in asked:
            try:
                left = max(_LEAST_SECONDS, deadline - time.monotonic())
                reply, _ = connecting.result().receive(left)
                if "error" in reply:
                    raise raised_by(reply["error"])
            except Exception as error:
                failed.append((lane, error))
    for lane, failure in failed:  # last, because a filter may turn the first warning into an error
        lane.warn_of_dump(what["root"], failure)


def _close(connecting: Future[Connection]) -> None:
    if not connecting.exception():
        connecting.result().close()


class _Start:
    """Arguments for starting a worker, with the servers' addresses at that time."""

    def __init__(self, worker: int, description: Any, client: Any) -> None:
        self._worker = worker
        self._description = description
        self._client = client

    def __call__(self) -> tuple[Any, ...]:
        return self._worker, self._description, self._client.addresses
