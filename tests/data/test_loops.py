"""Which functions count as such with a `while`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from workbench.data.stages.computing.loops import has_while


def _down(x: Any) -> Any:
    while x != 5:
        x = x - 1
    return x


def _goes_on(x: Any) -> Any:
    while True:
        if x > 3:
            return x
        x += 1


def _sums(x: Any) -> Any:
    total = 0
    for part in range(int(x)):
        for other in [2 * each for each in range(part)]:
            if other == 7:
                continue
            total += sum(number for number in range(other))
    try:
        return total
    finally:
        del total


def _in_a_loop(x: Any) -> Any:
    for part in range(3):
        while x < part:
            x += 1
    return x


def _inside(x: Any) -> Any:
    def inner(y: Any) -> Any:
        while y:
            y -= 1
        return y

    return inner(x)


class _Called:
    def __call__(self, x: Any) -> Any:
        return _down(x)

    def method(self, x: Any) -> Any:
        return _down(x)


class _Plain:
    def __call__(self, x: Any) -> Any:
        return _sums(x)


@pytest.mark.parametrize(
    "function",
    [
        _down,
        _goes_on,
        _in_a_loop,
        _inside,
        lambda x: _down(x),
        functools.partial(lambda a, x: _down(x), 1),
        _Called(),
        _Called().method,
        (lambda held: lambda x: held(x))(_down),
    ],
)
def test_a_while_is_found_wherever_it_is(function: Callable[..., Any]) -> None:
    assert has_while(function)


@pytest.mark.parametrize(
    "function", [_sums, lambda x: x * 2, _Plain(), np.sqrt, abs, int, functools.partial(_sums, 1)]
)
def test_a_loop_over_something_is_none(function: Callable[..., Any]) -> None:
    assert not has_while(function)
