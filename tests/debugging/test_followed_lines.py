"""Lines of the user's functions are told of, on one thread, whatever else follows them."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple

import pytest

from workbench.debugging import followed_lines as module
from workbench.debugging.followed_lines import followed_lines

HAS_MONITORING = sys.version_info >= (3, 12)


class Told:
    """What one thread was told, with lines counted from the "def" of their function."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def enter(self, frame: FrameType) -> Call:
        self.texts.append(frame.f_code.co_name)
        return Call(self.texts)


class Call:
    def __init__(self, texts: list[str]) -> None:
        self._texts = texts

    def line(self, frame: FrameType) -> None:
        self._texts.append(f"{frame.f_code.co_name}+{frame.f_lineno - frame.f_code.co_firstlineno}")

    def returned(self, frame: FrameType, result: Any) -> None:
        self._texts.append(f"{frame.f_code.co_name} -> {result}")


@pytest.fixture(autouse=True)
def untraced() -> Iterator[None]:
    before = sys.gettrace()
    sys.settrace(None)
    yield
    assert sys.gettrace() is None
    sys.settrace(before)


def double(x: int) -> int:
    json.dumps(x)
    return 2 * x


def test_lines_calls_and_results_of_the_users_functions_are_told() -> None:
    def step(x: int) -> int:
        y = double(x)
        return y + 1

    told = Told()
    with followed_lines(told.enter):
        step(3)
    step(4)
    assert told.texts == [
        *("step", "step+1", "double", "double+1", "double+2", "double -> 6", "step+2", "step -> 7"),
    ]


def test_a_call_that_an_exception_ends_has_no_result() -> None:
    def fails() -> None:
        raise ValueError

    def step() -> str:
        with contextlib.suppress(ValueError):
            fails()
        return "on"

    told = Told()
    with followed_lines(told.enter):
        step()
        with contextlib.suppress(ValueError):
            fails()
        double(1)
    results = [text for text in told.texts if "->" in text]
    assert results == ["step -> on", "double -> 2"]
    assert told.texts.count("fails+1") == 2


def test_generators_are_told_of_up_to_each_element() -> None:
    def numbers() -> Iterator[int]:
        yield 1
        yield 2

    def step() -> int:
        return sum(numbers())

    told = Told()
    with followed_lines(told.enter):
        step()
    assert [text for text in told.texts if text.startswith("numbers ->")][:2] == [
        "numbers -> 1",
        "numbers -> 2",
    ]
    assert told.texts[-1] == "step -> 3"


def test_equal_functions_are_both_told_of() -> None:
    made: list[Any] = []
    for _ in range(2):
        names: dict[str, Any] = {}
        exec(compile("def same():\n    return 1\n", "cell.py", "exec"), names)
        made.append(names["same"])
    told = Told()
    with followed_lines(told.enter):
        for same in made:
            same()
    assert told.texts == ["same", "same+1", "same -> 1"] * 2


def test_named_tuples_are_no_functions_of_the_users() -> None:
    class Pair(NamedTuple):
        first: int
        second: int

    def step() -> int:
        return Pair(1, 2).second

    told = Told()
    with followed_lines(told.enter):
        step()
    assert told.texts == ["step", "step+1", "step -> 2"]


def test_what_is_raised_reaches_the_function() -> None:
    class Raises(Call):
        def line(self, frame: FrameType) -> None:
            if frame.f_lineno - frame.f_code.co_firstlineno == 2:
                raise KeyError("line 2")

    done: list[int] = []

    def step() -> None:
        done.append(1)
        done.append(2)

    with pytest.raises(KeyError, match="line 2"), followed_lines(lambda frame: Raises([])):
        step()
    assert done == [1]


def test_other_threads_and_what_comes_later_are_not_told_of() -> None:
    told, others = Told(), Told()

    def elsewhere() -> None:
        with followed_lines(others.enter):
            double(1)

    with followed_lines(told.enter):
        for target in (lambda: double(5), elsewhere):
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()
        double(2)
    assert told.texts == ["double", "double+1", "double+2", "double -> 4"]
    assert others.texts == ["double", "double+1", "double+2", "double -> 2"]


def test_a_block_within_a_block_changes_nothing() -> None:
    outer, inner = Told(), Told()

    def step() -> int:
        with followed_lines(inner.enter):
            double(1)
        return double(2)

    with followed_lines(outer.enter):
        step()
    assert inner.texts == []
    assert [text for text in outer.texts if "->" in text] == ["double -> 2", "double -> 4", "step -> 4"]


def test_a_debugger_goes_on() -> None:
    seen: list[str] = []

    def debugger(frame: FrameType, event: str, argument: Any) -> Any:
        seen.append(f"{event} {frame.f_code.co_name}")
        return debugger

    told = Told()
    sys.settrace(debugger)
    try:
        with followed_lines(told.enter):
            double(1)
        assert sys.gettrace() is debugger
    finally:
        sys.settrace(None)
    assert "line double" in seen
    assert ("double -> 2" in told.texts) == HAS_MONITORING


@pytest.mark.skipif(not HAS_MONITORING, reason="Python 3.11 cannot tell of single functions")
def test_nobody_is_told_of_what_nobody_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_IDLE", 20)
    told = Told()
    with followed_lines(told.enter):
        double(1)
    monitor = module._monitor()
    assert monitor is not None
    assert monitor._on
    for _ in range(20):
        double(1)
    assert not monitor._on
    assert sys.monitoring.get_events(monitor._tool) == 0
    assert sys.monitoring.get_local_events(monitor._tool, double.__code__) == 0
    with followed_lines(told.enter):
        double(3)
    assert told.texts[-1] == "double -> 6"


def test_other_threads_do_not_end_what_one_thread_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_IDLE", 20, raising=False)  # Python 3.11 has none

    def many() -> None:
        for _ in range(50):
            double(1)

    told = Told()
    with followed_lines(told.enter):
        double(1)
        thread = threading.Thread(target=many)
        thread.start()
        thread.join()
        double(3)
    assert told.texts[-1] == "double -> 6"


@pytest.mark.skipif(not HAS_MONITORING, reason="Python 3.11 has no places for tools")
def test_without_a_place_for_tools_it_follows_as_python_3_11_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_monitor", lambda: None)
    told = Told()
    with followed_lines(told.enter):
        double(2)
    assert told.texts == ["double", "double+1", "double+2", "double -> 4"]
