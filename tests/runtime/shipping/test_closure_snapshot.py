"""Snapshots of functions: what counts as a change, what is never trusted, and that nothing is kept alive."""

from __future__ import annotations

import gc
import math
import sys
import weakref
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import cloudpickle
import numpy as np
import pytest

from workbench import tree
from workbench.runtime.shipping.closure_snapshot import snapshot
from workbench.runtime.shipping.main_module import carry_main


class _ById:
    travels_by_id = True


@pytest.fixture
def cell() -> dict[str, Any]:
    """The globals of functions made by `_defined`, as those of a notebook."""
    return {"__name__": "__main__", "np": np, "tree": tree, "math": math}


def _defined(cell: dict[str, Any], source: str) -> Callable[..., Any]:
    exec(source, cell)
    function: Callable[..., Any] = cell["step"]
    return function


def _is_same(function: Callable[..., Any], change: Callable[[], Any]) -> bool:
    before = snapshot(function)
    assert before is not None
    change()
    after = snapshot(function)
    return after is not None and after.key == before.key


_STEP = """
rate, parts, names = 0.5, [1, (2, 3)], {"a": 1}
def inner(x): return x * rate
def step(x, scale=2): return np.linalg.norm(inner(x)) * scale + math.sqrt(parts[0]) + names["a"]
"""


def test_a_function_that_nobody_touched_is_the_same(cell: dict[str, Any]) -> None:
    assert _is_same(_defined(cell, _STEP), lambda: None)


@pytest.mark.parametrize(
    "change",
    [
        "rate = 0.25",
        "parts[0] = 5",
        "parts.append(4)",
        "parts[1] = (2, 4)",
        "names['b'] = 1",
        "names['a'] = 2",
        "math = tree",
        "step.__defaults__ = (3,)",
        "step.note = 1",
        "step.__code__ = inner.__code__",
        "def inner(x): return x * rate + 1",
        "inner.__kwdefaults__ = {'x': 1}",
        "del rate",
    ],
)
def test_a_change_anywhere_in_what_travels_is_seen(cell: dict[str, Any], change: str) -> None:
    function = _defined(cell, _STEP)
    assert not _is_same(function, lambda: exec(change, cell))


def test_what_a_closure_holds_is_looked_at() -> None:
    value = 1

    def step() -> int:
        return value

    def change() -> None:
        nonlocal value
        value = 2

    assert _is_same(step, lambda: None)
    assert not _is_same(step, change)


def test_nested_and_recursive_functions_are_followed(cell: dict[str, Any]) -> None:
    function = _defined(
        cell, "rate = 1.0\ndef step(n): return n if n < 1 else (lambda: step(n - 1) * rate)()"
    )
    assert _is_same(function, lambda: None)
    assert not _is_same(function, lambda: cell.update(rate=2.0))


@pytest.mark.parametrize("value", [np.ones(3), {1, 2}, object(), bytearray(b"x"), iter([]), [np.ones(1)]])
def test_what_may_change_in_place_is_never_trusted(cell: dict[str, Any], value: Any) -> None:
    cell["held"] = value
    assert snapshot(_defined(cell, "def step(): return held")) is None


def test_methods_and_instances_are_never_trusted(cell: dict[str, Any]) -> None:
    for value in ([].append, object().__repr__, _defined(cell, "class step:\n def __call__(self): pass")()):
        assert snapshot(value) is None


def test_a_function_that_is_defined_again_alike_is_the_same() -> None:
    def made(value: Any) -> Callable[[], Any]:
        return lambda: value

    one, again, other = (snapshot(made(value)) for value in (1, 1, 2))
    assert one is not None
    assert again is not None
    assert other is not None
    assert one.key == again.key != other.key


def test_what_travels_by_id_counts_as_itself(cell: dict[str, Any]) -> None:
    cell["held"] = [_ById()]
    function = _defined(cell, "def step(): return held")
    assert _is_same(function, lambda: None)
    assert not _is_same(function, lambda: cell.update(held=[_ById()]))


def test_a_class_of_the_notebook_is_never_trusted(cell: dict[str, Any]) -> None:
    assert snapshot(_defined(cell, "class Model: pass\ndef step(): return Model()")) is None


def test_a_module_made_by_hand_is_never_trusted(cell: dict[str, Any]) -> None:
    cell["made"] = ModuleType("made")
    assert snapshot(_defined(cell, "def step(): return made.x")) is None


@pytest.fixture
def by_value() -> Iterator[None]:
    """The user has asked for modules of their own to travel by value."""
    cloudpickle.register_pickle_by_value(tree)
    yield
    cloudpickle.unregister_pickle_by_value(tree)


@pytest.mark.usefixtures("by_value")
def test_modules_that_travel_by_value_are_never_trusted(cell: dict[str, Any]) -> None:
    assert snapshot(_defined(cell, _STEP)) is None


def test_a_snapshot_keeps_nothing_alive(cell: dict[str, Any]) -> None:
    cell["held"] = [_ById()]
    function = _defined(cell, "def step(): return held, step")
    taken, gone = snapshot(function), [weakref.ref(function), weakref.ref(cell["held"][0])]
    assert taken is not None
    del function
    cell.clear()
    gc.collect()
    assert [reference() for reference in gone] == [None, None]


def test_the_script_of_a_spawned_child_travels_by_value_and_is_compared_as_any_other(
    cell: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = ModuleType("__mp_main__")
    vars(script).update(cell, __name__=script.__name__)
    monkeypatch.setitem(sys.modules, script.__name__, script)
    carry_main()
    try:
        step = _defined(vars(script), _STEP)
        assert _is_same(step, lambda: None)
        assert not _is_same(step, lambda: exec("rate = 0.25", vars(script)))
        assert b"rate" in cloudpickle.dumps(step)
    finally:
        cloudpickle.unregister_pickle_by_value(script)
