"""ParameterServerStrategy: variables on parameter servers, and functions on workers that run asynchronously."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from workbench import runtime
from workbench.arguments import path, whole_number
from workbench.distribute import contexts
from workbench.distribute.arrays.plain_device import HERE
from workbench.distribute.cluster_resolver.resolver import checked_resolver
from workbench.distribute.function import checked_arguments, plain_function
from workbench.distribute.identity import new_id
from workbench.distribute.replica.replica_context import DefaultReplicaContext
from workbench.distribute.servers.hosting import Hosting
from workbench.distribute.servers.on_servers import placement_of
from workbench.distribute.servers.sharded_variable import ShardedVariable
from workbench.distribute.servers.streams import current_stream
from workbench.distribute.strategies.extended import StrategyExtended
from workbench.distribute.strategies.strategy import Strategy
from workbench.distribute.strategy_description import StrategyDescription
from workbench.distribute.values.distributed_values import select
from workbench.distribute.variables.variable import DEFAULT_NAME, Variable, initial_array
from workbench.errors import InvalidArgumentError
from workbench.runtime.joining.roster import spec_of
from workbench.runtime.placement_text import counted, one_line

if TYPE_CHECKING:
    from workbench.data import Dataset
    from workbench.data.context import InputContext, InputOptions
    from workbench.device_names import Device
    from workbench.distribute.partitioners import Partitioner
    from workbench.distribute.servers.overview import ServersStatus
    from workbench.distribute.value_context import RunOptions
    from workbench.runtime.driver.gang.gang import Gang
    from workbench.runtime.driver.group import Group

_JOBS = frozenset(("chief", "worker", "ps", "evaluator"))


class ParameterServerStrategy(Strategy):
    """Variables on parameter servers, which workers read and update, each at its own pace.

    As tf.distribute.ParameterServerStrategy (V2). Devices of the cluster have two roles: workers run functions, which a
    `ClusterCoordinator` schedules; parameter servers keep variables, with whole variables or shards distributed
    round-robin. There is one replica: `run` calls its function where it is called.

    A server writes each update to a journal before it answers. If its process is lost, another one replaces it with
    every answered update; an update that is sent again is applied once.

    Attributes:
      coordinator: Its `ClusterCoordinator`, None before one is made.

    Args:
      cluster_resolver: Says how many tasks the jobs "worker" and "ps" have; None takes all devices of the cluster. If
        the cluster's tasks have these jobs (`workbench join`), their devices are used, otherwise the first and the next
        ones. If no cluster is connected, the resolver's tasks must have formed one by `workbench join`. A connected
        cluster of tasks must have those of the resolver.
      variable_partitioner: Determines the number of shards of a variable; one of
        `wb.distribute.experimental.partitioners`, or a function of shape and dtype.
      servers: Number of parameter servers, if no resolver gives it: the last devices. None takes all tasks of the job
        "ps", or a single device.
      journal_folder: Folder of the servers' journals, on their machines; None is the folder for temporary files. A
        journal is as large as the variables plus about 64 MiB, or four times the variables.

    Raises:
      FailedPreconditionError: if the connected cluster has other tasks than the resolver names.
      ValueError: if there are too few devices, or the resolver names another job, or no worker or server.
      TypeError: if `servers` is not a number, `variable_partitioner` not a function, or `cluster_resolver` not a
        resolver.

    >>> strategy = wb.distribute.ParameterServerStrategy(servers=1)
    >>> with strategy.scope():
    ...     table = wb.Variable(np.zeros((1000, 16), "float32"))
    >>> table.shape
    (1000, 16)
    """

    coordinator: Any = None
    _resolver: Any = None
    _partitioner: Callable[..., Any] | None = None
    _hosting: Hosting | None = None
    _created = 0

    def __init__(
        self,
        cluster_resolver: Any = None,
        variable_partitioner: Partitioner | Callable[..., Any] | None = None,
        *,
        servers: int | None = None,
        journal_folder: str | None = None,
    ) -> None:
        if not (variable_partitioner is None or callable(variable_partitioner)):
            raise TypeError(
                f"variable_partitioner must be one of wb.distribute.experimental.partitioners, or a function of shape "
                f"and dtype, got {type(variable_partitioner).__name__}: {variable_partitioner!r:.80}"
            )
        servers = None if servers is None else whole_number(servers, "servers")
        if journal_folder is not None:
            path(journal_folder, "journal_folder")
        workers, keepers = _roles(checked_resolver(cluster_resolver, type(self).__name__), servers)
        cluster = runtime.current_cluster()
        assert cluster is not None
        description = StrategyDescription(
            id=new_id(),
            kind=type(self),
            devices=(HERE,),
            placement_of=placement_of,
            options=None,
            cross_device_ops=None,
        )
        self._describe(description, None)
        self._resolver = cluster_resolver
        self._partitioner = variable_partitioner
        self._hosting = hosting = Hosting(
            cluster, workers, keepers, strategy=description.id, journal_folder=journal_folder
        )
        weakref.finalize(self, _close_aside, hosting).atexit = False
        for number, server in enumerate(hosting.servers):
            server.keeps(_NamesOn(weakref.ref(self), number))

    # -- what it is ---------------------------------------------------------------------------------------------

    @property
    def stands_for_another(self) -> bool:
        """Whether this is a worker's process."""
        return self._hosting is None

    @property
    def cluster_resolver(self) -> Any:
        """The given resolver, or None."""
        return self._resolver

    @property
    def hosting(self) -> Hosting:
        """The servers and the workers' devices, in the notebook.

        Raises:
          RuntimeError: in a function on a worker.
        """
        if self._hosting is None:
            raise RuntimeError(f"{self!r} can only be used like this in the notebook, not on a worker")
        return self._hosting

    @property
    def group(self) -> Group:
        """There is no group, because workers run functions independently.

        Raises:
          RuntimeError: always.
        """
        raise RuntimeError(
            f"{self!r} has no replicas that run steps together; ClusterCoordinator(strategy).schedule(fn) runs "
            f"functions on its workers"
        )

    @property
    def gang(self) -> Gang[Group]:
        """See `DescribedStrategy.gang`."""
        return self.hosting.cluster.gang

    @property
    def extended(self) -> StrategyExtended:
        """Further methods, for libraries."""
        return ParameterServerExtended(self, self.run)

    def status(self) -> ServersStatus:
        """The current state of servers and workers, even while another thread waits in `join`.

        Returns:
          A status that prints as tables; in a notebook, the strategy itself is displayed as a live view.

        Raises:
          RuntimeError: in a function on a worker.
        """
        return self.hosting.watched.now()

    def close(self) -> None:
        """Ends the servers, and with them the variables; a coordinator ends, too. Idempotent.

        This also happens when the strategy is collected, or its cluster is closed. A background save in progress
        completes, because it no longer needs the servers. Later saves are refused.
        """
        self.hosting.close()

    # -- running ------------------------------------------------------------------------------------------------

    def run(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        options: RunOptions | None = None,
    ) -> Any:
        """Calls `fn` in the calling process, in replica context; in a scheduled function, on its worker.

        Args:
          fn: A function or a `wb.function`.
          args: Its arguments; distributed values are replaced by their component.
          kwargs: Its keyword arguments, likewise.
          options: Accepted, without effect here.

        Returns:
          The result of `fn`, not wrapped, because there is one replica.

        Raises:
          RuntimeError: in a replica function, or in the scope of another strategy.
        """
        contexts.require_cross_replica(self, "strategy.run")
        plain, args = plain_function(fn), checked_arguments(args, kwargs)
        with contexts.entered(DefaultReplicaContext(self)):
            return plain(*(select(value, 0) for value in args), **select(kwargs or {}, 0))

    def distribute_dataset(self, dataset: Dataset, options: InputOptions | None = None) -> Any:
        """Returns the dataset itself, all of which a function on a worker reads; see `Strategy.distribute_dataset`."""
        return dataset

    def distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Dataset], options: InputOptions | None = None
    ) -> Any:
        """The dataset that `dataset_fn` returns for the only pipeline; for functions on workers."""
        from workbench.data.context import InputContext  # loads the data pipeline on first use

        return dataset_fn(InputContext())

    # -- variables ----------------------------------------------------------------------------------------------

    def next_server(self) -> int:
        """The servers round-robin; within `colocate_vars_with`, that of the other variable.

        Raises:
          RuntimeError: in a scheduled function.
        """
        if current_stream() is not None or self._hosting is None:
            raise RuntimeError(
                "wb.Variable(...) was called in a function that runs on a worker: each call would create another "
                "variable on the parameter servers; create it once, in strategy.scope() in the notebook"
            )
        if _thread.server is not None:
            return _thread.server
        server = self._created % len(self._hosting.servers)
        self._created += 1
        return server

    def divided(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        *,
        name: str | None = None,
        dtype: Any = None,
        **options: Any,
    ) -> Any:
        """Creates a variable in as many shards as the partitioner requests; `wb.Variable` calls it.

        Args:
          initial_value: An array, or a function that returns one; shards are cut along its first dimension.
          trainable: Whether training should change the variable.
          name: The shards are called "NAME/part_0", "NAME/part_1" and so on.
          dtype: Dtype of the variable; None takes that of the initial value.
          options: The other arguments of `wb.Variable`, for each shard.

        Returns:
          A `ShardedVariable`, or a `Variable` if one shard is enough. None without a partitioner, and within
            `undivided` and `on_server`.
        """
        if self._partitioner is None or _thread.undivided or _thread.server is not None:
            return None
        name = DEFAULT_NAME if name is None else name
        array = initial_array(initial_value, dtype)
        shards = min(
            _shards(self._partitioner, array.shape, array.dtype, name), len(array) if array.ndim else 1
        )
        with self.undivided():
            if shards <= 1:
                return Variable(array, trainable, name=name, **options)
            rows, more = divmod(len(array), shards)
            parts, begin = [], 0
            for number in range(shards):
                end = begin + rows + (number < more)
                parts.append(Variable(array[begin:end], trainable, name=f"{name}/part_{number}", **options))
                begin = end
            return ShardedVariable(parts)

    @contextmanager
    def undivided(self) -> Iterator[None]:
        """Keeps variables that this thread creates in the block whole."""
        outer, _thread.undivided = _thread.undivided, True
        try:
            yield
        finally:
            _thread.undivided = outer

    @contextmanager
    def on_server(self, server: int) -> Iterator[None]:
        """Places variables that this thread creates in the block on this server, whole."""
        outer, _thread.server = _thread.server, server
        try:
            yield
        finally:
            _thread.server = outer

    def __repr__(self) -> str:
        name = type(self).__name__
        if self._hosting is None:
            return one_line(name, "on a worker")
        hosting = self._hosting
        return one_line(
            name,
            counted(len(hosting.workers), "worker"),
            counted(len(hosting.servers), "parameter server"),
            counted(len(self.variables), "variable") if self.variables else "",
            "stopped" if hosting.cluster.closed else "live",
        )


class ParameterServerExtended(StrategyExtended):
    """`strategy.extended` for parameter servers: updates run where they are called, and their values travel."""

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The parameter servers."""
        hosting = self._servers_of.hosting
        return tuple(f"/job:ps/replica:0/task:{n}/device:CPU:0" for n in range(len(hosting.servers)))

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The workers."""
        hosting = self._servers_of.hosting
        return tuple(f"/job:worker/replica:0/task:{n}/device:CPU:0" for n in range(len(hosting.workers)))

    @property
    def _servers_of(self) -> ParameterServerStrategy:
        assert isinstance(self._strategy, ParameterServerStrategy)
        return self._strategy

    @contextmanager
    def colocate_vars_with(self, colocate_with_variable: Any) -> Iterator[None]:
        """Places variables created inside on the server of `colocate_with_variable`, undivided.

        Raises:
          ValueError: if that is not a variable of this strategy, or has several shards.
        """
        with super().colocate_vars_with(colocate_with_variable):
            if not isinstance(colocate_with_variable, Variable):
                raise ValueError(
                    f"colocate_vars_with needs one variable on one server, got {colocate_with_variable!r}; give one of "
                    f"its shards, variable.variables[0]"
                )
            with self._servers_of.on_server(colocate_with_variable.description.server):
                yield


class _Thread(threading.local):
    """How the calling thread creates variables."""

    undivided = False
    server: int | None = None


_thread = _Thread()


def _close_aside(hosting: Hosting) -> None:
    """Closes on another thread, because closing waits for threads, and one of them may be collecting garbage."""
    threading.Thread(target=hosting.close, name="wb-servers-close", daemon=True).start()


class _NamesOn:
    """Returns the names of variables on one server, without a reference to the strategy."""

    def __init__(self, strategy: weakref.ref[ParameterServerStrategy], server: int) -> None:
        self._strategy = strategy
        self._server = server

    def __call__(self) -> tuple[str, ...]:
        strategy = self._strategy()
        variables = () if strategy is None else strategy.variables
        return tuple(each.name for each in variables if each.description.server == self._server)


def _roles(resolver: Any, servers: int | None) -> tuple[tuple[Device, ...], tuple[Device, ...]]:
    """The devices of workers and servers: those of the tasks with these jobs, otherwise the first and the last ones."""
    spec = None if resolver is None else spec_of(resolver)
    workers = None if spec is None else _tasks(spec, "worker")
    wanted = servers if spec is None else _tasks(spec, "ps")
    if wanted is not None and wanted < 1:
        raise InvalidArgumentError(f"servers is {wanted}; variables need at least one parameter server")
    needed = None if workers is None else workers + (wanted or 1)
    devices = runtime.auto_connect(needed, resolver=resolver, spec=spec).devices
    keepers = tuple(device for device in devices if device.job == "ps")
    runners = tuple(device for device in devices if device.job == "worker")
    if not keepers:  # tasks without jobs
        begin = max(0, len(runners) - (wanted or 1)) if workers is None else workers
        runners, keepers = runners[:begin], runners[begin:]
    if len(runners) < (workers or 1) or len(keepers) < (wanted or 1):
        raise InvalidArgumentError(
            f"{counted(workers or 1, 'worker')} and {counted(wanted or 1, 'parameter server')} need a device each, and "
            f"the cluster has {len(devices)}; connect to more, "
            f"wb.connect(replicas={(workers or 1) + (wanted or 1)}, replace=True)"
        )
    return runners[:workers], keepers[:wanted]


def _tasks(spec: Any, job: str) -> int:
    """The number of tasks in a job of the cluster.

    Raises:
      InvalidArgumentError: if there are none, or the cluster has jobs that this strategy does not know.
    """
    if unknown := sorted(set(spec.jobs) - _JOBS):
        raise InvalidArgumentError(
            f"the cluster has jobs {', '.join(unknown)}; ParameterServerStrategy knows {', '.join(sorted(_JOBS))}"
        )
    count: int = spec.num_tasks(job) if job in spec.jobs else 0
    if not count:
        raise InvalidArgumentError(
            f"the cluster has no task in the job {job!r}, only {', '.join(spec.jobs) or 'no jobs'}; "
            f"ParameterServerStrategy needs at least one in each of 'worker' and 'ps'"
        )
    return count


def _shards(partitioner: Callable[..., Any], shape: tuple[int, ...], dtype: Any, name: str) -> int:
    """The number of shards that a partitioner requests; scalars are not divided."""
    if not shape:
        return 1
    given = partitioner(shape=shape, dtype=dtype)
    try:
        given = list(given)  # a generator yields its numbers only once
        counts = [int(count) for count in given]
        whole = all(count == number for count, number in zip(counts, given, strict=True))
    except (TypeError, ValueError, OverflowError):
        whole = False
    if not whole:
        raise InvalidArgumentError(
            f"variable {name!r} of shape {shape}: the partitioner gave {given!r:.80}; it must give a list with a "
            f"whole number of shards for each dimension"
        )
    if len(counts) != len(shape) or any(count > 1 for count in counts[1:]):
        raise InvalidArgumentError(
            f"variable {name!r} of shape {shape}: the partitioner gave {counts}; it must give a number of shards for "
            f"each dimension, and only the first one can be divided"
        )
    if counts[0] < 1 <= shape[0]:
        raise InvalidArgumentError(
            f"variable {name!r} of shape {shape}: the partitioner gave {counts}; rows need at least one shard"
        )
    return counts[0]
