"""The line that makes a NaN in an array of CuPy, with arrays that are made up."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.backends import cupy as backend
from workbench.backends import cupy_contents
from workbench.debugging import numerics
from workbench.errors import NotFinite

PLACE = "on replica 1 at step 17"


class Array(np.ndarray):
    """An array of CuPy; what is done with it has no line in Python, and adding `NAN` or `INF` makes no noise."""

    __module__ = "cupy"


NAN, INF = np.float32("nan"), np.float32("inf")


def array(*elements: float) -> Array:
    return np.array(elements, np.float32).view(Array)


@pytest.fixture(autouse=True)
def used(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process computes on a GPU; nothing else follows its lines."""
    monkeypatch.setattr(backend, "in_use", lambda: True)
    monkeypatch.setattr(cupy_contents, "finite", lambda arrays: [bool(np.isfinite(x).all()) for x in arrays])
    monkeypatch.setattr(backend, "to_host", lambda x: np.array(x))
    before = sys.gettrace()
    sys.settrace(None)
    yield
    assert sys.gettrace() is None
    sys.settrace(before)


def stopped(function: Callable[..., Any], *args: Any) -> str:
    with pytest.raises(NotFinite) as caught, numerics.checking(PLACE):
        function(*args)
    return str(caught.value)


def line_of(function: Callable[..., Any], text: str) -> str:
    lines, first = inspect.getsourcelines(function)
    return f"test_gpu_lines.py:{first + next(k for k, line in enumerate(lines) if text in line)}"


def test_the_first_line_that_makes_one_is_named() -> None:
    def step(x: Array) -> Array:
        hidden = x + 1
        hidden[1] = hidden[1] + NAN
        loss = hidden + 1
        return loss * 2

    said = stopped(step, array(1.0, -3.0))
    where = line_of(step, "+ NAN")
    assert said.startswith(
        f"`hidden[1] = hidden[1] + NAN` gives a NaN in `hidden` {PLACE}, at {where} in step: 1 NaN"
    )
    assert "1 NaN and 0 infinite of 2 elements of float32[2], the first at [1]" in said


def test_infinity_in_place_in_a_container_and_in_what_is_returned() -> None:
    def in_place(x: Array) -> Array:
        x -= INF
        return x + 1

    def in_a_list(x: Array) -> None:
        layers = [x, x + NAN]
        del layers

    assert "`x -= INF` gives an infinity in `x`" in stopped(in_place, array(1.0))
    assert "`layers = [x, x + NAN]` gives a NaN in `layers`" in stopped(in_a_list, array(1.0))
    assert "gives an infinity in its result" in stopped(lambda x: x + INF, array(1.0))


def test_functions_that_the_function_calls_are_followed() -> None:
    def loss(x: Array) -> Array:
        total = x + NAN
        return total * 2

    def step(x: Array) -> Array:
        return loss(x) + 1

    assert f"in `total` {PLACE}, at {line_of(loss, '+ NAN')} in loss" in stopped(step, array(1.0))


def test_what_is_meant_stays() -> None:
    def masked() -> Array:
        with np.errstate(all="ignore"):
            mask = array(1.0, 2.0) - INF
        return np.exp(mask)

    with numerics.checking(PLACE):
        assert masked().tolist() == [0.0, 0.0]


def test_what_was_so_before_is_not_made_here() -> None:
    def step(x: Array, y: Array) -> Array:
        del x
        return y + 1

    before = array(np.nan), array(1.0)
    with numerics.checking(PLACE):
        assert step(*before).tolist() == [2.0]


def test_an_error_of_the_function_stays_as_it_is() -> None:
    def step(x: Array) -> Any:
        return [y := x + NAN, y.nothing]

    with pytest.raises(AttributeError), numerics.checking(PLACE):
        step(array(1.0))


def test_what_else_follows_lines_is_left_alone() -> None:
    def step(x: Array) -> Array:
        loss = x + NAN
        return loss * 2

    def debugger(*event: Any) -> None:
        pass

    sys.settrace(debugger)
    try:
        with numerics.checking(PLACE):
            step(array(1.0))
        assert sys.gettrace() is debugger
    finally:
        sys.settrace(None)


def test_check_numerics_takes_arrays_of_cupy() -> None:
    fine = array(1.0)

    assert wb.debugging.check_numerics(fine, "loss") is fine
    with pytest.raises(NotFinite, match="loss: 1 NaN and 0 infinite of 1 elements"):
        wb.debugging.check_numerics(array(np.nan), "loss")
