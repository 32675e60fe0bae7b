"""Kinds in the spellings of TensorFlow 1.x: towers, and strategies with the older method names."""

from __future__ import annotations

import ast
import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from tests.reference.interpreter.array_functions import const, identity
from tests.reference.interpreter.clusters import default_context
from tests.reference.interpreter.codec import Json, default_array
from tests.reference.interpreter.namespaces import strategy_names
from tests.reference.interpreter.programs import run_program
from tests.reference.interpreter.world import World
from tests.reference.observation import Observed
from tests.reference.outcomes import NotExpressible, api

_TOWERS = "compat.towers"


def tower_program(given: Json, world: World, observed: Observed) -> None:
    if _evaluates_again(given["code"]):
        raise NotExpressible(
            "evaluates a deferred operation twice; here operations run when they are called. Two ways to defer them "
            "were tried: see compat.towers in notebooks/guide/explanation/decisions.md"
        )
    with default_context(), _old_spellings():
        world.clusters.local(given["towers"])
        make = api(f"{_TOWERS}.MirroredStrategy")
        distribution = make(devices=[f"/cpu:{index}" for index in range(given["towers"])])
        names: dict[str, Callable[[], Any]] = {
            "distribution": lambda: distribution,
            "get_tower_context": functools.partial(api, f"{_TOWERS}.get_tower_context"),
            "const": lambda: const,
            "identity": lambda: identity,
            "get_variable": functools.partial(api, f"{_TOWERS}.get_variable"),
            "evaluate": lambda: lambda value: value,
            "dataset": lambda: lambda rows: api("data.Dataset").from_tensor_slices(default_array(rows)),
            "other": functools.partial(make, devices=["/cpu:0"]),
            "make_strategy": lambda: make,
            "trainable_variables": functools.partial(api, f"{_TOWERS}.trainable_variables"),
        }
        observed.fields["result"] = run_program(given["code"], names)


def v1_program(given: Json, world: World, observed: Observed) -> None:
    with default_context(), _old_spellings():
        world.clusters.local(given["replicas"])
        devices = [f"/cpu:{index}" for index in range(given["replicas"])]
        strategy = api("compat.v1.distribute.MirroredStrategy")(devices)
        observed.fields["result"] = run_program(given["code"], strategy_names(strategy))


@contextlib.contextmanager
def _old_spellings() -> Iterator[None]:
    """Each old spelling warns once, which these programs test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def _evaluates_again(code: Json) -> bool:
    """Whether the program evaluates one value twice: by name, or in a loop that does not create it anew."""
    tree = ast.parse(code if isinstance(code, str) else "\n".join(code))
    seen: set[str] = set()
    for call in _evaluations(tree):
        if isinstance(call.args[0], ast.Name):
            if call.args[0].id in seen:
                return True
            seen.add(call.args[0].id)
    for loop in ast.walk(tree):
        if isinstance(loop, ast.ListComp):
            own = {target.id for each in loop.generators for target in _names(each.target)}
            calls = _evaluations(loop.elt)
            if any(own.isdisjoint(name.id for name in _names(call.args[0])) for call in calls):
                return True
    return False


def _evaluations(node: ast.AST) -> list[ast.Call]:
    calls = [found for found in ast.walk(node) if isinstance(found, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "evaluate"]


def _names(node: ast.AST) -> list[ast.Name]:
    return [found for found in ast.walk(node) if isinstance(found, ast.Name)]


KINDS = {"tower_program": tower_program, "v1_program": v1_program}
