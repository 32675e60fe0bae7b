"""Options of a pipeline, as tf.data.Options."""

from __future__ import annotations

import copy
import enum
from contextlib import suppress
from typing import Any, ClassVar, Final

from workbench.arguments import flag, whole_number
from workbench.backends.users_line import warn
from workbench.data.cost.statistics import StatsAggregator
from workbench.errors import InvalidArgumentError

AUTOTUNE: Final = -1
"""Requests, instead of a number, the value that a measurement finds."""


class AutoShardPolicy(enum.IntEnum):
    """How the hosts that read a dataset share it.

    AUTO is FILE if the data comes from files, otherwise DATA. With FILE, each host reads whole files. With DATA, every
    host reads everything and keeps its part. With OFF, every host reads and keeps everything. HINT fills in
    `shard(SHARD_HINT, SHARD_HINT)`.
    """

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class ExternalStatePolicy(enum.IntEnum):
    """What happens to the state of functions that a dataset's description cannot hold."""

    WARN = 0
    IGNORE = 1
    FAIL = 2


class AutotuneAlgorithm(enum.IntEnum):
    """How the reference searches for the best settings; workbench has one algorithm for all."""

    DEFAULT = 0
    HILL_CLIMB = 1
    GRADIENT_DESCENT = 2
    MAX_PARALLELISM = 3
    STAGE_BASED = 4


class WorkerKind(enum.IntEnum):
    """What calls the functions of parallel stages.

    THREADS suit functions that wait, or that compute in libraries which release the GIL. PROCESSES suit computations in
    Python: they copy the function and the objects that it refers to, so changes to these are lost. AUTO means threads,
    or with `AUTOTUNE` what a measurement finds; it never uses processes for functions that refer to mutable objects,
    such as lists and dicts.
    """

    AUTO = 0
    THREADS = 1
    PROCESSES = 2


class _Settings:
    """Attributes with defaults, None if the default may change.

    Rejects unknown names and values of a wrong type, so that mistakes do not go unnoticed. The options of a dataset
    cannot be changed.
    """

    __slots__ = ("__dict__", "_frozen")  # not a setting, so it has a slot of its own
    _kinds: ClassVar[dict[str, type]] = {}
    _aliases: ClassVar[dict[str, str]] = {}

    def __init__(self) -> None:
        object.__setattr__(self, "_frozen", False)
        for name, kind in self._kinds.items():
            object.__setattr__(self, name, self._default(name, kind))

    def _default(self, name: str, kind: type) -> Any:
        return kind() if issubclass(kind, _Settings | list) else None

    def __getattr__(self, name: str) -> Any:
        if name not in self._aliases:
            raise AttributeError(self._unknown(name))
        return getattr(self, self._aliases[name])

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_frozen":  # copying sets attributes one by one
            object.__setattr__(self, name, value)
            return
        if self._frozen:
            raise InvalidArgumentError(
                f"setting {name!r} on the options of a dataset would have no effect; set it on a new Options(), "
                "and use dataset.with_options(options), which returns another dataset"
            )
        name = self._aliases.get(name, name)
        if name not in self._kinds:
            raise AttributeError(self._unknown(name))
        kind = self._kinds[name]
        given = self._default(name, kind) if value is None else self._checked(name, value)
        object.__setattr__(self, name, given)

    def _unknown(self, name: str) -> str:
        known = ", ".join(sorted((*self._kinds, *self._aliases)))
        return f"{type(self).__name__} has no option {name!r}; it has {known}"

    def _checked(self, name: str, value: Any) -> Any:
        kind = self._kinds[name]
        if issubclass(kind, enum.Enum):
            try:
                if isinstance(value, str):
                    return kind[value]
                return value if isinstance(value, kind) else kind(whole_number(value, name))
            except (KeyError, TypeError, ValueError):
                names = ", ".join(kind.__members__)
                raise InvalidArgumentError(f"unknown {name} {value!r}; use one of {names}") from None
        with suppress(TypeError):  # rejected below
            if kind is int:
                return whole_number(value, name)
            if kind is bool:
                return flag(value, name)
        if not isinstance(value, kind) or kind is int:
            raise TypeError(
                f"option {name} of {type(self).__name__} takes {kind.__name__}, got {value!r:.80}"
            )
        return value

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # options are mutable

    def __repr__(self) -> str:
        fresh = type(self)()
        changed = ", ".join(f"{k}={v!r}" for k, v in vars(self).items() if v != getattr(fresh, k))
        return f"{type(self).__name__}({changed})"

    def frozen(self) -> Any:
        """A read-only copy."""
        return self._copy(True)

    def _copy(self, frozen: bool) -> Any:
        result = copy.deepcopy(self)
        for part in (result, *vars(result).values()):
            if isinstance(part, _Settings):
                object.__setattr__(part, "_frozen", frozen)
        return result

    def merge(self, options: _Settings) -> Any:
        """A new object with the settings of both, lists joined; where they conflict, `options` wins, with a warning."""
        result = self._copy(False)
        fresh = type(self)()
        for name, new in vars(options).items():
            old = getattr(result, name)
            if isinstance(new, _Settings):
                object.__setattr__(result, name, old.merge(new))
            elif isinstance(new, list):
                object.__setattr__(result, name, [*old, *new])
            elif new != getattr(fresh, name):
                if old not in (getattr(fresh, name), new):
                    told = f"option {name} was {old!r} and becomes {new!r}"
                    warn(told, UserWarning)
                object.__setattr__(result, name, new)
        return result


class DistributeOptions(_Settings):
    """How a dataset is distributed.

    Attributes:
      auto_shard_policy: An `AutoShardPolicy` (or its name).
      num_devices: Number of devices that read the dataset, if it is known.
    """

    _kinds: ClassVar[dict[str, type]] = {"auto_shard_policy": AutoShardPolicy, "num_devices": int}
    auto_shard_policy: AutoShardPolicy
    num_devices: int | None

    def _default(self, name: str, kind: type) -> Any:
        return AutoShardPolicy.AUTO if name == "auto_shard_policy" else None


class ThreadingOptions(_Settings):
    """Threads of a pipeline.

    Attributes:
      max_intra_op_parallelism: The most threads within one function, or None.
      private_threadpool_size: The most calls at a time that AUTOTUNE may choose for a stage, or None for no bound.
      worker_kind: A `WorkerKind` (or its name): whether threads or processes call functions in parallel; None for AUTO.
    """

    _kinds: ClassVar[dict[str, type]] = {
        "max_intra_op_parallelism": int,
        "private_threadpool_size": int,
        "worker_kind": WorkerKind,
    }
    max_intra_op_parallelism: int | None
    private_threadpool_size: int | None
    worker_kind: WorkerKind | None


class AutotuneOptions(_Settings):
    """What `AUTOTUNE` may choose.

    Attributes:
      autotune_algorithm: An `AutotuneAlgorithm`; without effect.
      cpu_budget: The most threads for all stages together, or None for the machine's cores.
      enabled: Whether it chooses at all (default True).
      initial_parallelism: Calls at a time to start with; without effect.
      min_parallelism: The fewest calls at a time; without effect.
      ram_budget: The most bytes that may wait between two stages, whatever `prefetch` says; None for 256 MiB. One
        element may always wait.
    """

    _kinds: ClassVar[dict[str, type]] = {
        "autotune_algorithm": AutotuneAlgorithm,
        "cpu_budget": int,
        "enabled": bool,
        "initial_parallelism": int,
        "min_parallelism": int,
        "ram_budget": int,
    }
    autotune_algorithm: AutotuneAlgorithm | None
    cpu_budget: int | None
    enabled: bool | None
    initial_parallelism: int | None
    min_parallelism: int | None
    ram_budget: int | None


class OptimizationOptions(_Settings):
    """Graph rewrites of the reference.

    Most are only stored: workbench runs a pipeline as written. Two have an effect, the same one: whether `map` computes
    many rows of arrays at a time with functions whose results are provably the same, bit for bit (`Dataset.map` says
    which functions these are).

    Attributes:
      map_vectorization: Whether `map` does so; None for True, unless `apply_default_optimizations` is False.
      apply_default_optimizations: Whether optimizations without a setting are applied (default True).
    """

    _kinds: ClassVar[dict[str, type]] = dict.fromkeys(
        (
            "apply_default_optimizations",
            "autotune",
            "autotune_buffers",
            "filter_fusion",
            "filter_parallelization",
            "filter_with_random_uniform_fusion",
            "hoist_random_uniform",
            "inject_prefetch",
            "map_and_batch_fusion",
            "map_and_filter_fusion",
            "map_fusion",
            "map_parallelization",
            "map_vectorization",
            "noop_elimination",
            "parallel_batch",
            "reorder_data_discarding_ops",
            "seq_interleave_prefetch",
            "shuffle_and_repeat_fusion",
            "warm_start",
        ),
        bool,
    )


class StatsOptions(_Settings):
    """Statistics of a pipeline. With an aggregator, iterators count the elements of each stage.

    Attributes:
      aggregator: A `StatsAggregator`, or None.
      prefix: Prepended to the names of statistics, with "::" between.
      counter_prefix: Prepended to the names of counters, with "::" between.
      latency_all_edges: Whether the source and every stage are timed, element by element (default False).
    """

    _kinds: ClassVar[dict[str, type]] = {
        "aggregator": StatsAggregator,
        "prefix": str,
        "counter_prefix": str,
        "latency_all_edges": bool,
    }
    aggregator: StatsAggregator | None
    prefix: str
    counter_prefix: str
    latency_all_edges: bool | None

    def _default(self, name: str, kind: type) -> Any:
        return "" if kind is str else None


class Options(_Settings):
    """Options of a whole dataset; later transformations keep them. None means the default.

    Attributes:
      autotune: `AutotuneOptions`.
      dataset_name: A name for readers.
      experimental_deterministic: Whether order must be kept (default True); also spelled `deterministic`.
      experimental_distribute: `DistributeOptions`.
      experimental_external_state_policy: An `ExternalStatePolicy` (or its name); kept for the caller.
      experimental_optimization: `OptimizationOptions`; workbench never rewrites a pipeline on its own.
      experimental_slack: Kept for the caller (default False).
      experimental_stats: `StatsOptions`.
      experimental_symbolic_checkpoint: Kept for the caller: iterators are always saved by position.
      experimental_threading: `ThreadingOptions`; also spelled `threading`.
      experimental_warm_start: Kept for the caller: a pass starts when its iterator is created.
      framework_type: Names of frameworks, for readers.

    >>> options = wb.data.Options()
    >>> options.experimental_distribute.auto_shard_policy = wb.data.AutoShardPolicy.DATA
    >>> dataset = wb.data.Dataset.range(8).batch(4).with_options(options)
    """

    _kinds: ClassVar[dict[str, type]] = {
        "autotune": AutotuneOptions,
        "dataset_name": str,
        "experimental_deterministic": bool,
        "experimental_distribute": DistributeOptions,
        "experimental_external_state_policy": ExternalStatePolicy,
        "experimental_optimization": OptimizationOptions,
        "experimental_slack": bool,
        "experimental_stats": StatsOptions,
        "experimental_symbolic_checkpoint": bool,
        "experimental_threading": ThreadingOptions,
        "experimental_warm_start": bool,
        "framework_type": list,
    }
    _aliases: ClassVar[dict[str, str]] = {
        "deterministic": "experimental_deterministic",
        "threading": "experimental_threading",
    }
    autotune: AutotuneOptions
    dataset_name: str | None
    experimental_deterministic: bool | None
    experimental_distribute: DistributeOptions
    experimental_external_state_policy: ExternalStatePolicy | None
    experimental_optimization: OptimizationOptions
    experimental_slack: bool | None
    experimental_stats: StatsOptions
    experimental_symbolic_checkpoint: bool | None
    experimental_threading: ThreadingOptions
    experimental_warm_start: bool | None
    framework_type: list[str]

    def keeps_order(self, deterministic: bool | None) -> bool:
        """Whether a stage with parallel calls keeps the order; `deterministic`, if given, wins over these options."""
        return self.experimental_deterministic is not False if deterministic is None else deterministic
