"""Kinds that build one local pipeline and read it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from tests.reference.interpreter.codec import Json, decode
from tests.reference.interpreter.pipelines import build, function
from tests.reference.interpreter.world import World
from tests.reference.observation import Observed
from tests.reference.outcomes import answer, api


def pipeline(given: Json, world: World, observed: Observed) -> None:
    observed.phase = "build"
    dataset = build(given["pipeline"], world.scratch)
    observed.fields["element_spec"] = dataset.element_spec
    observed.fields["cardinality"] = cardinality(dataset)
    observed.phase = "iterate"
    if "epochs" in given:
        observed.fields["epochs"] = [
            list(itertools.islice(dataset, given.get("limit"))) for _ in range(given["epochs"])
        ]
        return
    elements: list[Any] = []
    observed.fields["elements"] = elements
    elements.extend(itertools.islice(dataset, given.get("limit")))  # those before an error stay in it


def dataset_len(given: Json, world: World, observed: Observed) -> None:
    observed.phase = "build"
    dataset = build(given["pipeline"], world.scratch)
    observed.phase = "call"
    observed.fields["cardinality"] = cardinality(dataset)
    observed.fields["len"] = answer(lambda: len(dataset))
    observed.fields["bool"] = answer(lambda: bool(dataset))


def dataset_reduce(given: Json, world: World, observed: Observed) -> None:
    observed.phase = "build"
    dataset = build(given["pipeline"], world.scratch)
    observed.phase = "call"
    fold = function(given["fn"], given["arg_names"])
    observed.fields["result"] = dataset.reduce(decode(given["initial_state"]), fold)


def optional_iteration(given: Json, world: World, observed: Observed) -> None:
    observed.phase = "build"
    iterator = iter(build(given["pipeline"], world.scratch))
    observed.fields["element_spec"] = iterator.element_spec
    observed.phase = "iterate"
    observed.fields["results"] = [answer(getattr(iterator, name)) for name in given["calls"]]


def shuffle_invariants(given: Json, world: World, observed: Observed) -> None:
    if "global_seed" in given:
        api("data.set_seed", "random.set_seed")(given["global_seed"])
    dataset = _shuffled(given)
    first, second = ([int(x) for x in dataset] for _ in range(2))
    if "global_seed" in given:
        api("data.set_seed", "random.set_seed")(given["global_seed"])
    again = [int(x) for x in _shuffled(given)]
    observed.fields |= {
        "cardinality": cardinality(dataset),
        "every_epoch_is_a_permutation": all(
            sorted(order) == list(range(given["n"])) for order in (first, second)
        ),
        "element_never_earlier_than_buffer_allows": all(
            position >= element - given["buffer_size"] + 1
            for order in (first, second)
            for position, element in enumerate(order)
        ),
        "second_epoch_same_order": first == second,
        "recreated_dataset_same_first_epoch": first == again,
        "order": first,
    }


def cardinality(dataset: Any) -> int | str:
    """The number of elements of `dataset`, or "INFINITE" or "UNKNOWN"."""
    count = int(dataset.cardinality())
    return {-1: "INFINITE", -2: "UNKNOWN"}.get(count, count)


def _shuffled(given: Json) -> Iterable[Any]:
    options = {key: given[key] for key in ("seed", "reshuffle_each_iteration") if key in given}
    dataset: Iterable[Any] = api("data.Dataset").range(given["n"]).shuffle(given["buffer_size"], **options)
    return dataset


KINDS = {
    fn.__name__: fn for fn in (pipeline, dataset_len, dataset_reduce, optional_iteration, shuffle_invariants)
}
