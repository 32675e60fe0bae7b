"""Values that notice a function's decisions, so that every path through it can be tried.

A function may take one path for small numbers and another for large ones, with results of other sizes. `if x < 3:` asks
a `WatchedArray` for its truth value, and `Answers` provides the answer that the next trial needs.
"""

from __future__ import annotations

import dis
import functools
import sys
import types
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

import numpy as np

from workbench.data.stages.computing.trials import AnswersSpent, tried
from workbench.io.made_up import MadeUpText

_MOST_WAYS: Final = 16
_MOST_ANSWERS: Final = 1000
_CONVERSIONS: Final = frozenset(("int", "float"))


class Answers:
    """One trial's answers to the questions of a function about values.

    Attributes:
      given: The answers so far.
      escaped: Whether the function also used values in a way whose answer cannot be changed.
    """

    def __init__(self, wanted: tuple[bool, ...] = ()) -> None:
        self.given: list[bool] = []
        self.escaped = False
        self._wanted = wanted

    def answer(self, true: bool) -> bool:
        """The prescribed answer, or the values' own answer if none is prescribed."""
        place = len(self.given)
        if self._wanted and place >= _MOST_ANSWERS:
            raise AnswersSpent  # such as in a loop that the answers never end
        self.given.append(self._wanted[place] if place < len(self._wanted) else true)
        return self.given[-1]

    def number_taken(self) -> None:
        """Notes that the caller's caller converts a value to a Python number, which is not watched."""
        if _converts_and_compares(sys._getframe(2).f_code):
            self.escaped = True

    def others(self) -> Iterator[tuple[bool, ...]]:
        """The answers of trials that each leave this one's path at another decision."""
        for place in range(len(self._wanted), min(len(self.given), _MOST_ANSWERS)):
            yield (*self.given[:place], not self.given[place])


def ways(spec: Callable[[Answers], Any]) -> tuple[list[Any], bool]:
    """The results on the paths through a function, at most 16; and whether it also uses values in other ways.

    Args:
      spec: Calls the function with values that use the given `Answers`, and returns the spec of its result. An error
        ends a path that no element takes.
    """
    found: list[Any] = []
    waiting: deque[tuple[bool, ...]] = deque([()])
    escaped = False
    for _ in range(_MOST_WAYS):
        if not waiting:
            break
        answers = Answers(waiting.popleft())
        try:
            found.append(tried(functools.partial(spec, answers)))
        except Exception:  # the values, or the answers, do not suit it
            if not found:
                break
        escaped = escaped or answers.escaped
        waiting += islice(answers.others(), _MOST_WAYS)
    return found, escaped


class WatchedArray(np.ndarray[Any, np.dtype[Any]]):
    """An array, or a scalar as an array without dimensions, that lets `Answers` decide comparisons of its values."""

    answers: Answers | None

    @staticmethod
    def of(value: Any, answers: Answers) -> WatchedArray:
        """A watched copy of an array or a scalar."""
        watched = np.array(value).view(WatchedArray)
        watched.answers = answers
        return watched

    def __array_finalize__(self, source: Any) -> None:
        self.answers = getattr(source, "answers", None)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return self._watched(array)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return self._watched(super().__array_function__(func, types, args, kwargs))

    def _watched(self, result: Any) -> Any:
        """A result of NumPy, with its arrays and numbers watched as well."""
        if isinstance(result, tuple | list) and type(result) in (tuple, list):
            return type(result)(map(self._watched, result))
        if self.answers is None or not isinstance(result, np.ndarray | np.generic):
            return result
        if isinstance(result, WatchedArray) and result.answers is not None:
            return result
        return WatchedArray.of(result, self.answers)

    def __bool__(self) -> bool:
        true = bool(self.view(np.ndarray))
        return true if self.answers is None else self.answers.answer(true)

    def __contains__(self, value: Any) -> bool:
        return bool(np.any(self == value))

    def __getitem__(self, key: Any) -> Any:
        return self._watched(super().__getitem__(key))

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __hash__(self) -> int:  # type: ignore[override]  # scalars have one
        if self.answers is not None:
            self.answers.escaped = True  # a look-up, whose result depends on the values
        return hash(self.view(np.ndarray)[()])

    def __int__(self) -> int:
        if self.answers is not None:
            self.answers.number_taken()
        return int(self.view(np.ndarray))

    def __float__(self) -> float:
        if self.answers is not None:
            self.answers.number_taken()
        return float(self.view(np.ndarray))

    def item(self, *place: Any) -> Any:
        """As `ndarray.item`, but still watched."""
        return self._watched(np.asarray(super().item(*place), self.dtype))

    def tolist(self) -> Any:
        """As `ndarray.tolist`, but with watched numbers."""
        return [part.tolist() for part in self] if self.ndim else self


def _watching(name: str) -> Callable[..., Any]:
    method = getattr(np.ndarray, name)

    @functools.wraps(method)
    def watching(self: WatchedArray, *args: Any, **more: Any) -> Any:
        return self._watched(method(self, *args, **more))

    return watching


for _name in (
    "argmax",
    "argmin",
    "nonzero",
    "searchsorted",
    "std",
    "trace",
    "var",
):  # these return plain numbers
    setattr(WatchedArray, _name, _watching(_name))


class WatchedText(MadeUpText):
    """Made-up text that lets `Answers` decide whether it equals another text or contains one."""

    answers: Answers

    @staticmethod
    def of(text: bytes, answers: Answers) -> WatchedText:
        """A watched copy of a text."""
        watched = WatchedText(text)
        watched.answers = answers
        return watched

    def __hash__(self) -> int:
        self.answers.escaped = True
        return hash(bytes(self))


class _WatchedWords(str):
    """The decoded form of a watched text."""

    answers: Answers

    def __hash__(self) -> int:
        self.answers.escaped = True
        return hash(str(self))


def _watched_text(result: Any, answers: Answers) -> Any:
    """The result of a text's method; watched as well if it is a text, a number or a bool."""
    match result:
        case bool():
            return answers.answer(result)
        case int():
            return WatchedArray.of(result, answers)
        case bytes():
            return WatchedText.of(result, answers)
        case str():
            words = _WatchedWords(result)
            words.answers = answers
            return words
        case list() | tuple():
            return type(result)(_watched_text(part, answers) for part in result)
    return result


def _asking(kind: type, name: str) -> Callable[..., Any]:
    method = getattr(kind, name)

    @functools.wraps(method)
    def asking(self: Any, *args: Any, **more: Any) -> Any:
        return _watched_text(method(self, *args, **more), self.answers)

    return asking


_ASKING: Final = (
    "__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __contains__ __getitem__ count decode endswith find isalnum isalpha "
    "isdigit islower isspace isupper lower lstrip partition replace rfind rpartition rsplit rstrip split splitlines "
    "startswith strip upper"
).split()
for _kind, _watched_kind in ((bytes, WatchedText), (str, _WatchedWords)):
    for _name in _ASKING:
        if hasattr(_kind, _name):
            setattr(_watched_kind, _name, _asking(_kind, _name))


@functools.lru_cache(maxsize=256)
def _converts_and_compares(code: types.CodeType) -> bool:
    """Whether code converts to Python numbers (as NumPy may for it) and compares: possibly these."""
    return not _CONVERSIONS.isdisjoint(code.co_names) and any(
        each.opname in ("COMPARE_OP", "CONTAINS_OP") for each in dis.get_instructions(code)
    )
