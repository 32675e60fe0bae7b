"""The areas, and what counts as a difference between an outcome of TensorFlow and ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.differential.cases import (
    assertions,
    checkpoints,
    collectives,
    contexts,
    dumps,
    extended,
    places,
    resolvers,
    servers,
    sharding,
    variable_kinds,
    variables,
    worker_contexts,
    workers,
)
from tests.differential.cases.values import Values
from tests.reference.decisions import decided
from tests.reference.interpreter.codec import Json
from tests.reference.interpreter.world import World
from tests.reference.kinds import observe
from tests.reference.outcomes import Mismatch, Missing, NotExpressible

AREAS: dict[str, Callable[[Values], Json]] = {
    "assertions": assertions.case,
    "checkpoints": checkpoints.states,
    "checks": places.checks,
    "collectives": collectives.case,
    "contexts": contexts.case,
    "dumps": dumps.case,
    "extended": extended.extended,
    "legacy": extended.legacy,
    "managers": checkpoints.managers,
    "resolvers": resolvers.case,
    "scheduling": servers.functions,
    "scopes": places.scopes,
    "servers": servers.variables,
    "sharding": sharding.case,
    "variable_kinds": variable_kinds.case,
    "variables": variables.case,
    "worker_contexts": worker_contexts.case,
    "worker_variables": variable_kinds.of_workers,
    "workers": workers.case,
}
_ALIKE = ["TypeError", "ValueError", "InvalidArgumentError", "IndexError", "AttributeError", "AssertionError"]
_VALUES = ["ValueError", "InvalidArgumentError"]


def random_cases(area: str, seed: int, count: int) -> list[Json]:
    """Inputs of vectors, the same ones for the same seed."""
    values = Values(seed)
    return [AREAS[area](values) for _ in range(count)]


def difference(given: Json, outcome: Json, world: World, *, exact: bool = False) -> str:
    """How what happens here differs from `outcome`; "" if it does not.

    Args:
      given: The input.
      outcome: TensorFlow's.
      world: Where it happens here.
      exact: Errors about arguments have to be of the same class, too.
    """
    try:
        observe(given, world).check(decided(given, _with_like_errors(outcome, _VALUES if exact else _ALIKE)))
    except (Mismatch, Missing, NotExpressible) as error:
        return str(error)
    return ""


def _with_like_errors(outcome: Any, alike: list[str]) -> Any:
    """The outcome as an expectation. Similar errors stand for each other."""
    match outcome:
        case {"error": {"kind": kind, "classes": classes, **rest}}:
            accepted = [*classes, *(alike if kind in alike else ())]
            others = {
                name: _with_like_errors(value, alike) for name, value in outcome.items() if name != "error"
            }
            return {**others, "error": {"kind": kind, "also_accept": accepted, **rest}}
        case dict():
            return {name: _with_like_errors(value, alike) for name, value in outcome.items()}
        case list():
            return [_with_like_errors(value, alike) for value in outcome]
        case _:
            return outcome
