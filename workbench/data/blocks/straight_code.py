"""Which functions do nothing but compute with their arguments, as far as their code shows.

Code without jumps runs from beginning to end, whatever the values are. If it only loads arguments, constants, and names
of numbers, of NumPy and its functions, or of other such functions, then a call has no effect and its result depends on
nothing else. A name may be rebound later; `Captured` notices that.
"""

from __future__ import annotations

import builtins
import dis
import functools
import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from workbench.data.blocks.exact import ATTRIBUTES, DTYPES, FUNCTIONS

_OPERATIONS: Final = frozenset(
    "BINARY_OP BINARY_SUBSCR BUILD_CONST_KEY_MAP BUILD_LIST BUILD_MAP BUILD_SET BUILD_TUPLE CACHE CALL CALL_KW "
    "COMPARE_OP COPY COPY_FREE_VARS KW_NAMES LOAD_ATTR LOAD_CONST LOAD_DEREF LOAD_FAST LOAD_FAST_BORROW "
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW LOAD_FAST_CHECK LOAD_FAST_LOAD_FAST LOAD_GLOBAL LOAD_METHOD LOAD_SMALL_INT NOP "
    "POP_TOP PRECALL PUSH_NULL RESUME RETURN_CONST RETURN_VALUE STORE_FAST STORE_FAST_LOAD_FAST "
    "STORE_FAST_STORE_FAST SWAP UNARY_INVERT UNARY_NEGATIVE UNPACK_SEQUENCE".split()
)
_NO_FUNCTIONS: Final = (
    inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE
)
_MOST_FUNCTIONS: Final = 16
_NOTHING: Final = object()


@dataclass(frozen=True, slots=True, eq=False)
class _Rules:
    """What code is allowed to do.

    Attributes:
      operations: Instructions.
      builtins: Built-in functions, by name.
      attributes: Attributes that it may read.
      generators: Whether it may make generators, whose code runs only when they are read.
      arrays: Whether it may refer to arrays and tuples of numbers.
    """

    operations: frozenset[str]
    builtins: Mapping[str, Any]
    attributes: frozenset[str]
    generators: bool
    arrays: bool = False


_EXACT: Final = _Rules(
    _OPERATIONS, {"abs": abs, "bool": bool, "float": float, "int": int}, ATTRIBUTES, generators=False
)
_WITHOUT_EFFECT: Final = _Rules(
    # A function with an inner one has cells. Unpacking iterates over its operand, which may be a generator.
    (_OPERATIONS - {"UNPACK_SEQUENCE"})
    | set("GET_ITER LOAD_CLOSURE MAKE_CELL MAKE_FUNCTION SET_FUNCTION_ATTRIBUTE STORE_DEREF".split()),
    {**_EXACT.builtins, **{fn.__name__: fn for fn in (enumerate, filter, len, map, range, reversed, zip)}},
    ATTRIBUTES | {"shape", "size", "ndim", "dtype"},
    generators=True,
)

_SUBSCRIPTS: Final = frozenset(("BINARY_SUBSCR", "BINARY_SLICE"))
_BY_SIZE: Final = _OPERATIONS | _SUBSCRIPTS | {"BUILD_SLICE", "DICT_UPDATE", "STORE_SUBSCR"}


class Unprovable(Exception):
    """Why a function cannot be called for many rows at once, in a few words."""


@dataclass(frozen=True, slots=True)
class Captured:
    """The objects that the names of a function refer to.

    Attributes:
      functions: Each function with its code and the values of its defaults.
      names: Namespace, name, and its object there.
      cells: Variables of enclosing functions, with their values.
    """

    functions: tuple[tuple[types.FunctionType, types.CodeType, Any], ...] = ()
    names: tuple[tuple[dict[str, Any], str, Any], ...] = ()
    cells: tuple[tuple[types.CellType, Any], ...] = ()

    def unchanged(self) -> bool:
        """Whether every name still refers to the same object."""
        for function, code, defaults in self.functions:
            if function.__code__ is not code or function.__defaults__ is not defaults:
                return False
        for space, name, value in self.names:
            if space.get(name, _NOTHING) is not value:
                return False
        try:
            return all(cell.cell_contents is value for cell, value in self.cells) if self.cells else True
        except ValueError:  # a deleted variable
            return False

    def joined(self, other: Captured) -> Captured:
        """The objects of both."""
        return Captured(self.functions + other.functions, self.names + other.names, self.cells + other.cells)


def captured_by(function: Callable[..., Any]) -> Captured:
    """The objects that a function refers to, if it does nothing but compute with its arguments.

    Raises:
      Unprovable: if it may do something else.
    """
    return _captured(function, _EXACT)


def require_no_effect(function: Callable[..., Any]) -> None:
    """Rejects functions whose calls may have an effect; those that only make a generator have none.

    Raises:
      Unprovable: if a call may have one.
    """
    _captured(function, _WITHOUT_EFFECT)


def require_names(function: Callable[..., Any], names: frozenset[str]) -> None:
    """Rejects functions that branch, or refer to anything but numbers, arrays, and some names of NumPy and of arrays.

    Args:
      function: The function.
      names: The names, besides those of functions that are exact element by element.

    Raises:
      Unprovable: for these functions. This includes a function that refers to an array and takes parts of arrays: it
        could index that array with its arguments.
    """
    captured = _captured(function, _by_size(names))
    given = [value for _, _, defaults in captured.functions for value in defaults or ()]
    given += [value for *_, value in captured.names] + [value for _, value in captured.cells]
    has_array = any(type(value) is np.ndarray for value in given)
    if has_array and any(_takes_parts(code) for _, code, _ in captured.functions):
        raise Unprovable("it refers to an array, and takes parts of arrays")


@functools.cache
def _by_size(names: frozenset[str]) -> _Rules:
    return _Rules(_BY_SIZE, {"abs": abs, "len": len}, ATTRIBUTES | names, generators=False, arrays=True)


@functools.lru_cache(maxsize=256)
def _takes_parts(code: types.CodeType) -> bool:
    # Since Python 3.14, `BINARY_OP` does this, too.
    return any(each.opname in _SUBSCRIPTS or each.argrepr == "[]" for each in dis.get_instructions(code))


def _captured(function: Callable[..., Any], rules: _Rules) -> Captured:
    if isinstance(function, np.ufunc) and function in FUNCTIONS:
        return Captured()
    if type(function) is not types.FunctionType:
        raise Unprovable(f"it is not a plain function but of {type(function).__name__}")
    functions: dict[types.FunctionType, tuple[types.CodeType, Any]] = {}
    names: list[tuple[dict[str, Any], str, Any]] = []
    cells: list[tuple[types.CellType, Any]] = []
    waiting = [function]
    while waiting:
        here = waiting.pop()
        if here in functions:
            continue
        if len(functions) == _MOST_FUNCTIONS:
            raise Unprovable(f"it calls more than {_MOST_FUNCTIONS} other functions")
        functions[here] = here.__code__, here.__defaults__
        found = _values(here, rules, names, cells)
        waiting += [value for name, value in found if _is_function(name, value, rules)]
    return Captured(
        tuple((fn, code, given) for fn, (code, given) in functions.items()), tuple(names), tuple(cells)
    )


def _values(
    function: types.FunctionType,
    rules: _Rules,
    names: list[tuple[dict[str, Any], str, Any]],
    cells: list[tuple[types.CellType, Any]],
) -> list[tuple[str, Any]]:
    """What a function refers to, by name. Adds to `names` and `cells` where to look each of them up again."""
    if function.__kwdefaults__:
        raise Unprovable("it has defaults of keyword-only arguments")
    code = function.__code__
    found = [(f"default {index}", value) for index, value in enumerate(function.__defaults__ or ())]
    loaded, obstacle = _looked_at(code, rules)
    if obstacle:
        raise Unprovable(obstacle)
    for name in loaded:
        value = function.__globals__.get(name, _NOTHING)
        names.append((function.__globals__, name, value))
        if value is _NOTHING:
            value = rules.builtins.get(name, _NOTHING)
            if value is _NOTHING or getattr(builtins, name) is not value:
                raise Unprovable(f"it refers to {name!r}")
        found.append((name, value))
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            value = cell.cell_contents
        except ValueError:
            raise Unprovable(f"its variable {name!r} has no value yet") from None
        cells.append((cell, value))
        found.append((name, value))
    return found


def _is_function(name: str, value: Any, rules: _Rules) -> bool:
    """Whether a value is a function whose own code needs checking.

    Raises:
      Unprovable: if a function may not refer to such a value.
    """
    if type(value) is types.FunctionType:
        return not (rules.generators and inspect.isgeneratorfunction(value))
    if value is np or is_number(value) or (isinstance(value, type) and value in DTYPES):
        return False
    if any(value is allowed for allowed in rules.builtins.values()):
        return False
    if isinstance(value, np.ufunc) and value in FUNCTIONS:
        return False
    if rules.arrays and _are_numbers(value):
        return False
    kind = f"module {value.__name__}" if isinstance(value, types.ModuleType) else type(value).__name__
    raise Unprovable(f"it refers to {kind} {name!r}")


def is_number(value: Any) -> bool:
    """Whether a value is an immutable number of Python or NumPy, of a kind that blocks support."""
    return type(value) in (bool, int, float) or (isinstance(value, np.generic) and type(value) in DTYPES)


def _are_numbers(value: Any) -> bool:
    """Whether a value is an array of numbers, or a tuple of numbers."""
    if type(value) is np.ndarray:
        return value.dtype.kind in "biufc"
    return type(value) is tuple and all(map(is_number, value))


@functools.lru_cache(maxsize=256)
def _looked_at(code: types.CodeType, rules: _Rules) -> tuple[tuple[str, ...], str]:
    """The global names that code loads; and why it may do more than load, call and compute, or ""."""
    if code.co_flags & _NO_FUNCTIONS:
        return (), "it is a generator or a coroutine"
    if code.co_exceptiontable:
        return (), "it handles errors, or has a loop"
    names: dict[str, None] = {}
    for operation in dis.get_instructions(code):
        # Since Python 3.13, `TO_BOOL` precedes the jump.
        if (
            operation.opcode in dis.hasjrel
            or operation.opcode in dis.hasjabs
            or operation.opname == "TO_BOOL"
        ):
            return (), "it has branches or loops"
        if operation.opname not in rules.operations:
            return (), f"it does more than compute ({operation.opname})"
        if (
            isinstance(operation.argval, types.CodeType)
            and not operation.argval.co_flags & inspect.CO_GENERATOR
        ):
            return (), "it has an inner function"
        if operation.opname in ("LOAD_ATTR", "LOAD_METHOD") and operation.argval not in rules.attributes:
            return (), f"{operation.argval!r} is not known to be exact element by element"
        if operation.opname == "LOAD_GLOBAL":
            names[operation.argval] = None
    return tuple(names), ""
