"""The kind `multi_worker_program`: recorded once per worker, seen here from one controller.

The controller runs the program once per view. In the view of worker w, the results of replicas are those
on host w, and `local` and `steps` give what is there; everything else, collectives and variables included,
runs on all hosts each time. `worker` is the host of the replica that asks for it, so it exists inside replica
functions only: what each worker's own program would choose differently has no counterpart in one program.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.reference.compare import Comparison
from tests.reference.distributed import components, is_variable, local_view
from tests.reference.interpreter.clusters import default_context
from tests.reference.interpreter.codec import Json
from tests.reference.interpreter.namespaces import strategy_names
from tests.reference.interpreter.pipelines import build
from tests.reference.interpreter.programs import mentions, run_program
from tests.reference.interpreter.world import World
from tests.reference.kinds.distribution import per_replica
from tests.reference.observation import Observed
from tests.reference.outcomes import Mismatch, NotExpressible, answer, api

_OF_A_TASK = ("task_id", "task_type", "should_checkpoint", "should_save_summary")


def multi_worker_program(given: Json, world: World, observed: Observed) -> None:
    for name in _OF_A_TASK:
        if mentions(given["code"], name):
            raise NotExpressible(f"asks for `{name}`: the one controller is not a task of the cluster")
    workers = given["workers"]
    observed.fields["workers"] = _Views(
        [answer(functools.partial(_view, given, world, worker)) for worker in range(workers)]
    )


def _view(given: Json, world: World, worker: int) -> Any:
    with default_context():
        world.clusters.hosts(given["workers"])
        strategy = api("distribute.MultiWorkerMirroredStrategy")()
        names: dict[str, Any] = {
            **strategy_names(strategy),
            "worker": _Worker,
            "local": lambda: functools.partial(_local, strategy, worker),
            "pipeline": lambda: functools.partial(build, scratch=world.scratch),
            "steps": lambda: functools.partial(_steps, given["workers"], worker),
        }
        result = run_program(given["code"], names)
        return result if isinstance(result, _Steps) else local_view(result, slice(worker, worker + 1))


def _local(strategy: Any, worker: int, value: Any) -> tuple[Any, ...]:
    parts = strategy.experimental_local_results(value)
    distributed = components(value) is not None or is_variable(value)
    return tuple(parts[worker : worker + 1]) if distributed else tuple(parts)


def _steps(workers: int, worker: int, dataset: Any, limit: int | None = None) -> _Steps:
    return _Steps([per_replica(step, workers)[worker]] for step in itertools.islice(dataset, limit))


class _Steps(list[Any]):
    """What one worker's replicas got, step by step."""


class _Worker:
    """The index of the worker on which the calling replica runs. Computes and compares like that number."""

    def __index__(self) -> int:
        if not api("distribute.has_strategy")() or api("distribute.in_cross_replica_context")():
            raise NotExpressible(
                "uses `worker` outside a replica function: one program has no value of its own per worker"
            )
        return int(api("distribute.get_replica_context")().replica_id_in_sync_group)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self.__index__(), dtype)

    def __bool__(self) -> bool:
        return bool(self.__index__())

    def __hash__(self) -> int:
        return hash(self.__index__())


def _as_number(name: str) -> Callable[..., Any]:
    return lambda worker, *others: getattr(worker.__index__(), name)(*others)


_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
_OTHERS = ("eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "abs", "int", "float", "str", "repr", "format")
for _name in (*_BINARY, *(f"r{name}" for name in _BINARY), *_OTHERS):
    setattr(_Worker, f"__{_name}__", _as_number(f"__{_name}__"))


class _Views:
    """What the program left on each worker."""

    def __init__(self, results: list[Any]) -> None:
        self._results = results

    def judge(self, expected: Json, path: str, comparison: Comparison) -> None:
        """Compares worker by worker, or the one list that all share with the lists of all workers in order.

        A list that every worker's input function fills is a single list here.
        """
        wanted = [entry.get("result", entry.get("steps", entry)) for entry in expected]
        try:
            comparison.match(wanted, self._results, path)
        except Mismatch:
            if not all(isinstance(entry, dict) and "list" in entry for entry in wanted):
                raise
            together = {"list": [item for entry in wanted for item in entry["list"]]}
            comparison.match([together] * len(wanted), self._results, path)

    def __repr__(self) -> str:
        return repr(self._results)


KINDS = {"multi_worker_program": multi_worker_program}
