"""Kinds that distribute a pipeline over the replicas of a strategy on one host."""

from __future__ import annotations

import itertools
from typing import Any

from tests.reference.distributed import components, map_leaves
from tests.reference.interpreter.clusters import default_context, input_options, make_strategy
from tests.reference.interpreter.codec import Json
from tests.reference.interpreter.pipelines import build
from tests.reference.interpreter.world import World
from tests.reference.observation import Observed
from tests.reference.outcomes import answer


def distribute_dataset(given: Json, world: World, observed: Observed) -> None:
    with default_context():
        strategy = make_strategy(world.clusters, given.get("strategy"), given["replicas"])
        observed.phase = "build"
        dataset = build(given["pipeline"], world.scratch)
        observed.phase = "distribute"
        options = [input_options(given["input_options"])] if "input_options" in given else []
        _read(strategy.experimental_distribute_dataset(dataset, *options), given, observed)


def distribute_from_function(given: Json, world: World, observed: Observed) -> None:
    contexts: list[Any] = []

    def dataset_fn(context: Any) -> Any:
        contexts.append(context)
        return build(given["pipeline"], world.scratch, {"ctx": context})

    with default_context():
        strategy = make_strategy(world.clusters, given.get("strategy"), given["replicas"])
        observed.phase = "distribute"
        options = [input_options(given["input_options"])] if "input_options" in given else []
        distributed = strategy.distribute_datasets_from_function(dataset_fn, *options)
        _read(distributed, given, observed)
    names = ("num_input_pipelines", "input_pipeline_id", "num_replicas_in_sync")
    found = [{name: getattr(context, name) for name in names} for context in contexts]
    observed.fields["contexts"] = sorted(found, key=lambda context: context["input_pipeline_id"])


def distributed_optional(given: Json, world: World, observed: Observed) -> None:
    with default_context():
        strategy = make_strategy(world.clusters, given.get("strategy"), given["replicas"])
        dataset = build(given["pipeline"], world.scratch)
        iterator = iter(strategy.experimental_distribute_dataset(dataset))
        observed.phase = "iterate"
        observed.fields["results"] = [_call(iterator, name, given["replicas"]) for name in given["calls"]]


def per_replica(step: Any, replicas: int) -> list[Any]:
    """The tree `step` as each replica has it."""
    return [map_leaves(lambda leaf, r=r: _component(leaf, r), step) for r in range(replicas)]


def _component(leaf: Any, replica: int) -> Any:
    parts = components(leaf)
    return leaf if parts is None else parts[replica]


def _read(distributed: Any, given: Json, observed: Observed) -> None:
    observed.fields["element_spec"] = distributed.element_spec
    observed.phase = "iterate"
    if "epochs" in given:
        replicas, limit = given["replicas"], given.get("limit")
        observed.fields["epochs"] = [
            [per_replica(step, replicas) for step in itertools.islice(distributed, limit)]
            for _ in range(given["epochs"])
        ]
        observed.fields["end"] = "exhausted" if limit is None else "limit"
        return
    steps: list[Any] = []
    observed.fields["steps"] = steps
    iterator = iter(distributed)
    read = itertools.islice(iterator, given.get("limit"))
    steps.extend(per_replica(step, given["replicas"]) for step in read)  # those before an error stay in it
    limited = "limit" in given and len(steps) == given["limit"] and next(iterator, None) is not None
    observed.fields["end"] = "limit" if limited else "exhausted"


def _call(iterator: Any, name: str, replicas: int) -> Any:
    found = answer(getattr(iterator, name))
    if isinstance(found, Exception):
        return found
    if name == "get_next":
        return {"value": per_replica(found, replicas)}
    has_value = bool(found.has_value())
    return {"has_value": has_value, "value": per_replica(found.get_value(), replicas) if has_value else None}


KINDS = {fn.__name__: fn for fn in (distribute_dataset, distribute_from_function, distributed_optional)}
