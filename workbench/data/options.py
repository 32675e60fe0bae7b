"""Options of a pipeline, as tf.data.Options."""

from __future__ import annotations

import copy
import enum
import warnings
from typing import Any, ClassVar


class AutoShardPolicy(enum.IntEnum):
    """How a dataset is divided among the hosts that read it.

    AUTO takes FILE if the data comes from files, else DATA. FILE gives whole files to hosts. DATA lets every
    host read everything and keep its part. OFF gives everything to everyone. HINT fills in `shard(SHARD_HINT,
    SHARD_HINT)`.
    """

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class _Settings:
    """Attributes with defaults; unknown names are refused, so that a typing mistake is no silent no-op."""

    _defaults: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        for name, value in self._defaults.items():
            object.__setattr__(self, name, value() if isinstance(value, type) else value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._defaults:
            known = ", ".join(sorted(self._defaults))
            raise AttributeError(f"{type(self).__name__} has no option {name!r}; it has {known}")
        object.__setattr__(self, name, self._checked(name, value))

    def _checked(self, name: str, value: Any) -> Any:
        return value

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # options are mutable

    def __repr__(self) -> str:
        fresh = type(self)()
        changed = ", ".join(f"{k}={v!r}" for k, v in vars(self).items() if v != getattr(fresh, k))
        return f"{type(self).__name__}({changed})"

    def merge(self, options: _Settings) -> Any:
        """A new object with the settings of both; where they differ, `options` wins, with a warning."""
        result = copy.deepcopy(self)
        fresh = type(self)()
        for name, new in vars(options).items():
            old = getattr(result, name)
            if isinstance(new, _Settings):
                object.__setattr__(result, name, old.merge(new))
            elif new != getattr(fresh, name):
                if old not in (getattr(fresh, name), new):
                    warnings.warn(f"option {name} was {old!r} and becomes {new!r}", UserWarning, stacklevel=3)
                object.__setattr__(result, name, new)
        return result


class DistributeOptions(_Settings):
    """How a dataset is distributed.

    Attributes:
      auto_shard_policy: An `AutoShardPolicy` (or its name).
      num_devices: Number of devices that read the dataset, if it is known.
    """

    _defaults: ClassVar[dict[str, Any]] = {"auto_shard_policy": AutoShardPolicy.AUTO, "num_devices": None}
    auto_shard_policy: AutoShardPolicy
    num_devices: int | None

    def _checked(self, name: str, value: Any) -> Any:
        if name != "auto_shard_policy":
            return value
        try:
            return AutoShardPolicy[value] if isinstance(value, str) else AutoShardPolicy(value)
        except (KeyError, ValueError):
            names = ", ".join(policy.name for policy in AutoShardPolicy)
            raise ValueError(f"unknown auto_shard_policy {value!r}; use one of {names}") from None


class ThreadingOptions(_Settings):
    """Threads of a pipeline.

    Attributes:
      max_intra_op_parallelism: Most threads within one function, or None.
      private_threadpool_size: Threads of the pipeline's own pool, or None.
    """

    _defaults: ClassVar[dict[str, Any]] = {"max_intra_op_parallelism": None, "private_threadpool_size": None}
    max_intra_op_parallelism: int | None
    private_threadpool_size: int | None


class StatsOptions(_Settings):
    """Statistics of a pipeline.

    Attributes:
      aggregator: A collector of statistics, or None.
      prefix: Prepended to the names of statistics.
      counter_prefix: Prepended to the names of counters.
      latency_all_edges: Whether every stage is timed, or None for the default.
    """

    _defaults: ClassVar[dict[str, Any]] = {
        "aggregator": None,
        "prefix": "",
        "counter_prefix": "",
        "latency_all_edges": None,
    }
    aggregator: Any
    prefix: str
    counter_prefix: str
    latency_all_edges: bool | None


class Options(_Settings):
    """Options of a whole dataset; later transformations carry them on. None means the default.

    Attributes:
      experimental_deterministic: Whether order must be kept (default True).
      experimental_distribute: `DistributeOptions`.
      experimental_external_state_policy: "WARN", "IGNORE", "FAIL" or None.
      experimental_optimization: Kept for the caller; nothing is rewritten behind the user's back.
      experimental_slack: Kept for the caller (default False).
      experimental_stats: `StatsOptions`.
      experimental_threading: `ThreadingOptions`.
    """

    _defaults: ClassVar[dict[str, Any]] = {
        "experimental_deterministic": None,
        "experimental_distribute": DistributeOptions,
        "experimental_external_state_policy": None,
        "experimental_optimization": None,
        "experimental_slack": None,
        "experimental_stats": StatsOptions,
        "experimental_threading": ThreadingOptions,
    }
    experimental_deterministic: bool | None
    experimental_distribute: DistributeOptions
    experimental_external_state_policy: str | None
    experimental_optimization: Any
    experimental_slack: bool | None
    experimental_stats: StatsOptions
    experimental_threading: ThreadingOptions
