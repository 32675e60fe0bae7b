"""The line that makes a NaN in an array of CuPy, with arrays that are made up."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import pytest

import workbench as wb
from workbench.backends import cupy as backend
from workbench.backends import cupy_contents
from workbench.debugging import gpu_lines, numerics
from workbench.errors import NotFinite

PLACE = "on replica 1 at step 17"


class Array(np.ndarray):
    """An array of CuPy; what is done with it has no line in Python, and adding `NAN` or `INF` makes no noise."""

    __module__ = "cupy"


NAN, INF = np.float32("nan"), np.float32("inf")


def array(*elements: float) -> Array:
    return np.array(elements, np.float32).view(Array)


class Checks:
    """Looks at each array at once, as a GPU does that has nothing else to do, but tells only when asked to wait.

    Attributes:
      looked_at: The elements of the arrays, between one wait and the next; of all instances since a test began.
    """

    looked_at: ClassVar[list[list[list[float]]]] = []
    tells_at_once: ClassVar[bool] = False

    def __init__(self) -> None:
        self._bad: list[int] = []
        self._count = 0
        self.looked_at.append([])

    @property
    def full(self) -> bool:
        return self._count == 8

    def add(self, x: Array) -> None:
        if not np.isfinite(x).all():
            self._bad.append(self._count)
        self._count += 1
        self.looked_at[-1].append(x.tolist())

    def found_any(self) -> bool:
        return self.tells_at_once and bool(self._bad)

    def wait(self) -> list[int]:
        bad, self._bad, self._count = self._bad, [], 0
        self.looked_at.append([])
        return bad

    def close(self) -> None:
        self.wait()


@pytest.fixture(autouse=True, params=[False, True], ids=["told late", "told at once"])
def used(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[None]:
    """This process computes on a GPU; nothing else follows its lines."""
    monkeypatch.setattr(backend, "in_use", lambda: True)
    monkeypatch.setattr(cupy_contents, "finite", lambda arrays: [bool(np.isfinite(x).all()) for x in arrays])
    monkeypatch.setattr(gpu_lines, "QueuedChecks", Checks)
    monkeypatch.setattr(Checks, "looked_at", [])
    monkeypatch.setattr(Checks, "tells_at_once", request.param)
    monkeypatch.setattr(backend, "to_host", lambda x: np.array(x))
    before = sys.gettrace()
    sys.settrace(None)
    yield
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


def test_only_the_variables_that_a_line_names_are_looked_at_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def step(first: Array, second: Array) -> Array:
        third = first + 1
        fourth = np.add(
            third,
            third,
        )
        second += 1
        return fourth

    looks: list[tuple[int, int]] = []
    look = gpu_lines._Watch.look

    def counted(watch: Any, frame: Any, line: int, made: Any, others: Any) -> None:
        before = len(Checks.looked_at[0])
        look(watch, frame, line, made, others)
        looks.append((line and line - frame.f_code.co_firstlineno, len(Checks.looked_at[0]) - before))

    monkeypatch.setattr(gpu_lines._Watch, "look", counted)
    monkeypatch.setattr(Checks, "full", False)
    given = array(1.0), array(10.0)
    with numerics.checking(PLACE):
        step(*given)
    arrays = Checks.looked_at[0]
    assert arrays[:2] == [[1.0], [10.0]], "before the first line, all"
    assert looks[0] == (0, 2)
    assert dict(looks)[1] == 2, "first and third"
    assert dict(looks)[6] == 1, "second, in place"
    assert looks[-1] == (7, 4), "at the end, all"
    assert sorted(arrays[-4:]) == [[1.0], [2.0], [4.0], [11.0]]


def test_what_another_function_changes_is_charged_to_the_line_that_calls_it() -> None:
    class Model:
        """Has an array where no variable of its functions does."""

        def __init__(self, x: Array) -> None:
            self.x = x

        def spoil(self) -> None:
            self.x += NAN

    def step(x: Array, model: Model) -> Array:
        y = x + 1
        model.spoil()
        return y

    x = array(1.0)
    assert "`model.spoil()` gives a NaN in `x`" in stopped(step, x, Model(x))


def test_what_no_line_names_is_found_at_the_end() -> None:
    class Holder:
        """Changes an array in a way that no line of Python shows."""

        def __init__(self, x: Array) -> None:
            self.add = x.__iadd__

    def step(x: Array, holder: Holder) -> None:
        holder.add(NAN)
        y = 1
        del y

    x = array(1.0)
    assert "`del y`, or a line before it, leaves a NaN in `x`" in stopped(step, x, Holder(x))


def test_arrays_that_span_lines_are_charged_to_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def step(x: Array) -> None:
        np.add(
            1,
            NAN,
            out=x,
        )
        y = 1
        del y

    assert f"gives a NaN in `x` {PLACE}, at {line_of(step, 'np.add(')} in step" in stopped(step, array(1.0))


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


def test_a_line_is_named_though_others_ran_meanwhile() -> None:
    """What they overwrite, raise, or find themselves does not hide it."""

    def overwritten(x: Array) -> Array:
        x += NAN
        x[:] = 1
        return x

    def raises(x: Array) -> Array:
        x += NAN
        raise ValueError("the loss is NaN")

    def found_again(x: Array) -> None:
        loss = x + NAN
        del loss
        raise NotFinite("what goes into all_reduce is not finite")

    assert "`x += NAN` gives" in stopped(overwritten, array(1.0))
    assert "`x += NAN` gives a NaN in `x`" in stopped(raises, array(1.0))
    assert "`loss = x + NAN` gives a NaN in `loss`" in stopped(found_again, array(1.0))


def test_many_arrays_are_not_kept_for_their_checks() -> None:
    def step(x: Array) -> Array:
        for _ in range(100):
            x = x + 1
        return x

    with numerics.checking(PLACE):
        step(array(1.0))
    assert max(map(len, Checks.looked_at)) <= 8
    assert sum(map(len, Checks.looked_at)) >= 100


def test_large_arrays_are_not_kept_for_their_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_lines, "_MOST_BYTES", 4)

    def step(x: Array) -> Array:
        y = x + 1
        return y + 1

    with numerics.checking(PLACE):
        step(array(1.0, 2.0))
    assert max(map(len, Checks.looked_at)) == 1


def test_an_error_of_the_function_stays_as_it_is() -> None:
    def step(x: Array) -> Any:
        return [y := x + NAN, y.nothing]

    with pytest.raises(AttributeError), numerics.checking(PLACE):
        step(array(1.0))


def test_check_numerics_takes_arrays_of_cupy() -> None:
    fine = array(1.0)

    assert wb.debugging.check_numerics(fine, "loss") is fine
    with pytest.raises(NotFinite, match="loss: 1 NaN and 0 infinite of 1 elements"):
        wb.debugging.check_numerics(array(np.nan), "loss")


def test_arrays_that_are_passed_together_are_looked_at_together(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[int] = []

    def finite(arrays: list[Array]) -> list[bool]:
        waits.append(len(arrays))
        return [bool(np.isfinite(x).all()) for x in arrays]

    monkeypatch.setattr(cupy_contents, "finite", finite)
    gradients = array(1.0), np.ones(2), array(2.0, 3.0), "text", array(4.0)
    monkeypatch.setattr(numerics.thread, "place", PLACE)
    assert numerics.check(gradients, "what goes into all_reduce") is gradients
    assert waits == [3]
    bad = [array(1.0), array(1.0, np.nan, 2.0), np.array([np.inf])]
    with pytest.raises(NotFinite, match=r"all_reduce is not finite on replica 1 .* 1 NaN .* of 3"):
        numerics.check(bad, "what goes into all_reduce")
