"""Pickling by value keeps what errors and call sites need, whatever cloudpickle does."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from types import CodeType
from typing import Any

import cloudpickle
import pytest

from workbench import by_value

CELL = """
def outer(x):
    def inner():
        return 1 / x
    return inner()
"""


def defined_in(filename: str) -> Callable[..., Any]:
    """A function of no module, as one of a notebook's cell."""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(CELL, filename, "exec"), names)
    return names["outer"]  # type: ignore[no-any-return]


def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """As cloudpickle 3.1.3, which names the file of no code."""
    reduced = cloudpickle.Pickler.dispatch_table[CodeType]

    def without_file(code: CodeType) -> tuple[Any, ...]:
        return reduced(code.replace(co_filename="<dynamic-code>"))  # type: ignore[no-any-return]

    monkeypatch.setitem(cloudpickle.Pickler.dispatch_table.maps[0], CodeType, without_file)


@pytest.mark.parametrize("forgets", [False, True])
def test_lines_of_functions_and_of_those_within_keep_their_file(
    monkeypatch: pytest.MonkeyPatch, forgets: bool
) -> None:
    if forgets:
        forgetful(monkeypatch)
        assert pickle.loads(cloudpickle.dumps(defined_in("In[4]"))).__code__.co_filename == "<dynamic-code>"

    function = pickle.loads(by_value.dumps(defined_in("In[4]")))
    with pytest.raises(ZeroDivisionError) as caught:
        function(0)

    frames = traceback.extract_tb(caught.value.__traceback__)[1:]
    assert [(frame.filename, frame.lineno, frame.name) for frame in frames] == [
        ("In[4]", 5, "outer"),
        ("In[4]", 4, "inner"),
    ]


def test_equal_functions_give_equal_bytes() -> None:
    first, second = (by_value.dumps(defined_in("".join(["In", "[4]"]))) for _ in range(2))
    travelled = by_value.dumps(pickle.loads(first))
    assert first == second == travelled


def test_large_buffers_stay_outside_where_asked() -> None:
    buffers: list[Any] = []
    data = by_value.dumps(pickle.PickleBuffer(bytearray(1000)), buffer_callback=buffers.append)
    assert len(data) < 100
    assert bytes(pickle.loads(data, buffers=buffers)) == bytes(1000)
