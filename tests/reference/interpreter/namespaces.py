"""The names that programs over a strategy see (section 5 of the format)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.reference.interpreter.array_functions import PROGRAMS
from tests.reference.interpreter.clusters import distributed
from tests.reference.interpreter.programs import Namespace, names_in
from tests.reference.outcomes import api, exists

_PUBLIC = {
    "Sync": ("VariableSynchronization",),
    "Agg": ("VariableAggregation",),
    "Dataset": ("data.Dataset",),
    "IndexedSlices": ("IndexedSlices",),
    "errors": ("errors",),
    "CommunicationOptions": (
        "distribute.experimental.CommunicationOptions",
        "distribute.CommunicationOptions",
    ),
    "CommunicationImplementation": (
        "distribute.experimental.CommunicationImplementation",
        "distribute.CommunicationImplementation",
    ),
    "CollectiveHints": ("distribute.experimental.CollectiveHints", "distribute.CollectiveHints"),
    "ValueContext": ("distribute.experimental.ValueContext", "distribute.ValueContext"),
    "PerReplica": ("distribute.PerReplica",),
    "Variable": ("Variable",),
}
_IN_DISTRIBUTE = [
    "ReduceOp",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
    "experimental_set_strategy",
    "InputContext",
    "InputOptions",
    "ReductionToOneDevice",
    "HierarchicalCopyAllReduce",
    "MirroredStrategy",
    "DistributedValues",
    "DistributedDataset",
    "DistributedIterator",
]


def array_names() -> dict[str, Callable[[], Any]]:
    """The array functions, and NumPy itself."""
    names: dict[str, Any] = {"np": np, **PROGRAMS}
    return {name: functools.partial(_same, value) for name, value in names.items()}


def strategy_names(strategy: Any) -> dict[str, Callable[[], Any]]:
    """The namespace of a program over `strategy`."""
    public = {**_PUBLIC, **{name: (f"distribute.{name}",) for name in _IN_DISTRIBUTE}}
    return {
        **array_names(),
        **{name: functools.partial(api, *spellings) for name, spellings in public.items()},
        "strategy": lambda: strategy,
        "run": lambda: strategy.run,
        "local": lambda: strategy.experimental_local_results,
        "per_replica": lambda: functools.partial(distributed, strategy),
        "function": lambda: function,
    }


def function(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The library's `function` for replica functions; a function that itself calls `run` stays as it is."""
    if "run" in names_in(fn.__code__) or not exists("function"):
        return fn
    decorated: Callable[..., Any] = api("function")(fn)
    return decorated


def _same(value: Any) -> Any:
    return value


__all__ = ["Namespace", "array_names", "function", "strategy_names"]
