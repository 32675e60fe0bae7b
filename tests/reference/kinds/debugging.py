"""Kinds of the debugging area: assertions, dumps, numeric checks."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from tests.reference.interpreter.array_functions import const
from tests.reference.interpreter.codec import Json, decode
from tests.reference.interpreter.namespaces import function
from tests.reference.interpreter.programs import run_program
from tests.reference.interpreter.world import World
from tests.reference.observation import Observed
from tests.reference.outcomes import Missing, api


def debugging(given: Json, world: World, observed: Observed) -> None:
    check = api(f"debugging.{given['fn']}")
    args = [decode(arg) for arg in given["args"]]
    kwargs = {name: decode(arg) for name, arg in given.get("kwargs", {}).items()}
    if given.get("mode") == "function":
        result = api("distribute.get_strategy")().run(function(lambda: check(*args, **kwargs)))
    else:
        result = check(*args, **kwargs)
    observed.fields |= {"ok": True, "result": result}


def assert_shapes(given: Json, world: World, observed: Observed) -> None:
    shapes = [(decode(tensor), _shape(shape)) for tensor, shape in given["shapes"]]
    message = {"message": given["message"]} if "message" in given else {}
    api("debugging.assert_shapes")(shapes, **message)
    observed.fields["ok"] = True


def debug_dump_program(given: Json, world: World, observed: Observed) -> None:
    names: dict[str, Any] = {
        "enable": partial(api, "debugging.experimental.enable_dump_debug_info"),
        "disable": partial(api, "debugging.experimental.disable_dump_debug_info"),
        "get_log_device_placement": partial(api, "debugging.get_log_device_placement"),
        "set_log_device_placement": partial(api, "debugging.set_log_device_placement"),
        "path": lambda: lambda name: str(world.scratch / name),
        "listdir": lambda: os.listdir,
        "const": lambda: const,
        "add": lambda: np.add,
    }
    with _undone("debugging.experimental.disable_dump_debug_info"):
        observed.fields["result"] = run_program(given["code"], names)


def numeric_check_program(given: Json, world: World, observed: Observed) -> None:
    names: dict[str, Any] = {
        "enable_check_numerics": partial(api, "debugging.enable_check_numerics"),
        "disable_check_numerics": partial(api, "debugging.disable_check_numerics"),
        "tf_sqrt": lambda: np.sqrt,
        "tf_log": lambda: np.log,
        "divide": lambda: np.divide,
        "const": lambda: const,
    }
    with _undone("debugging.disable_check_numerics"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's warning, if the check is not enabled
        observed.fields["result"] = run_program(given["code"], names)


@contextlib.contextmanager
def _undone(switch_off: str) -> Iterator[None]:
    try:
        yield
    finally:
        with contextlib.suppress(Missing):
            api(switch_off)()


def _shape(shape: Json) -> Any:
    if isinstance(shape, str):
        return shape
    return [... if isinstance(size, dict) and size.get("ellipsis") else size for size in shape]


KINDS = {fn.__name__: fn for fn in (debugging, assert_shapes, debug_dump_program, numeric_check_program)}
