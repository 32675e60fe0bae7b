"""Records what a function computes, by calling it once with stand-ins for a row of an array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from workbench import tree
from workbench.data.blocks.exact import ALLOWED, BY_CONSTANT, FUNCTIONS, WHOLE, WRAPPING, fits
from workbench.data.blocks.expression import Constant, Expression, Place, Step
from workbench.data.blocks.straight_code import Unprovable, is_number
from workbench.data.structure import Structure, convert

_MOST_STEPS = 256
_LARGEST_EXPONENT = 64


def recorded(
    call: Callable[[Any], Any], structure: Structure, rows: Sequence[tuple[tuple[int, ...], np.dtype[Any]]]
) -> Expression:
    """What a function computes from a row.

    Args:
      call: Calls the function, whose code `captured_by` has checked, with an element.
      structure: The structure of an element.
      rows: Shape and dtype of each component.

    Raises:
      Unprovable: if it does anything but compute exactly, element by element.
    """
    recorder = _Recorder(len(rows))
    inputs = [_Recorded(recorder, place, shape, dtype) for place, (shape, dtype) in enumerate(rows)]
    try:
        with np.errstate(all="raise"):
            result = call(structure.pack(list(inputs)))
    except Unprovable:
        raise
    except Exception as error:
        raise Unprovable(f"{type(error).__name__}: {error}"[:80]) from None
    leaves = tree.flatten(
        tuple(result) if isinstance(result, list) else result, is_leaf=lambda node: isinstance(node, list)
    )[0]
    return Expression(tuple(recorder.steps), tuple(_output(leaf, recorder) for leaf in leaves))


def _output(leaf: Any, recorder: _Recorder) -> Place | Constant:
    if isinstance(leaf, _Recorded):
        if leaf.place < recorder.inputs and leaf.shape:
            raise Unprovable("it returns an array unchanged")
        return leaf.place
    if not is_number(leaf):
        raise Unprovable(f"it returns {type(leaf).__name__} instead of a number or an array")
    return Constant(convert(leaf))


class _Recorder:
    """The steps so far. A step's result is numbered after the inputs and the results of earlier steps."""

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self.steps: list[Step] = []

    def add(self, step: Step, shape: tuple[int, ...], dtype: np.dtype[Any]) -> _Recorded:
        if dtype not in ALLOWED:
            raise Unprovable(f"it computes with {dtype}")
        if len(self.steps) == _MOST_STEPS:
            raise Unprovable(f"it takes more than {_MOST_STEPS} steps")
        self.steps.append(step)
        return _Recorded(self, self.inputs + len(self.steps) - 1, shape, dtype)


class _Recorded(NDArrayOperatorsMixin):
    """A stand-in for a row, or for a value computed from it.

    It has only the operations that block computation supports.
    """

    __slots__ = ("dtype", "place", "recorder", "shape")

    def __init__(
        self, recorder: _Recorder, place: Place, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        self.recorder = recorder
        self.place = place
        self.shape = shape
        self.dtype = dtype

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **more: Any) -> Any:
        if method != "__call__" or more or function not in FUNCTIONS:
            raise Unprovable(f"numpy.{function.__name__} is not known to be exact element by element")
        operands = [_operand(value) for value in inputs]
        arrays = [value for value in inputs if isinstance(value, _Recorded)]
        dtype = _checked(function, operands, arrays)
        step = Step(
            function,
            tuple(value.place if isinstance(value, _Recorded) else Constant(value) for value in operands),
            may_wrap=function in WRAPPING and dtype.kind in "iu" and not self.shape,
            dtype=dtype,
        )
        return self.recorder.add(step, self.shape, dtype)

    def __pow__(self, exponent: Any) -> Any:
        whole = self.dtype.kind in "iu"
        # For arrays, NumPy computes `x ** 2` as a square; for single floats, as a power, which is not exact.
        if type(exponent) is not int or not (
            (whole and 0 <= exponent <= _LARGEST_EXPONENT and fits(exponent, self.dtype))
            or (self.dtype.kind == "f" and self.shape and exponent == 2)
        ):
            raise Unprovable("a power is not known to be exact element by element")
        function = np.power if whole else np.square
        operands: tuple[Place | Constant, ...] = (self.place, Constant(exponent)) if whole else (self.place,)
        step = Step(function, operands, may_wrap=whole and not self.shape, dtype=self.dtype)
        return self.recorder.add(step, self.shape, self.dtype)

    def astype(self, dtype: Any) -> Any:
        """As `ndarray.astype`. Rejects floats to integers, which are not exact beyond the dtype's range."""
        wanted = np.dtype(dtype)
        if wanted not in ALLOWED or self.dtype not in ALLOWED:
            raise Unprovable(f"it converts {self.dtype} to {wanted}")
        if self.dtype.kind == "f" and wanted.kind in "iu":
            raise Unprovable("it converts fractions to whole numbers")
        step = Step(lambda array: array.astype(wanted), (self.place,), may_wrap=False, dtype=wanted)
        return self.recorder.add(step, self.shape, wanted)

    def _refused(self, *_: Any) -> NoReturn:
        raise Unprovable("it decides or converts by the value of an element")

    __bool__ = __index__ = __int__ = __float__ = __complex__ = __len__ = __iter__ = _refused
    __getitem__ = __array__ = __array_function__ = __rpow__ = __ipow__ = _refused


def _operand(value: Any) -> Any:
    if isinstance(value, _Recorded) or is_number(value):
        return np.bool_(value) if type(value) is bool else value
    raise Unprovable(f"it computes with {type(value).__name__}")


def _checked(function: np.ufunc, operands: list[Any], arrays: list[_Recorded]) -> np.dtype[Any]:
    """The dtype of a function's result.

    Raises:
      Unprovable: if, for these shapes or dtypes, computing a single row may give another result.
    """
    if len({array.shape for array in arrays}) > 1:
        raise Unprovable("it computes with rows of different shapes")
    kinds = {value.dtype.kind if isinstance(value, _Recorded) else _kind(value) for value in operands}
    if {"i", "u"} <= kinds:
        raise Unprovable("it mixes whole numbers with and without sign")
    if function in WHOLE | BY_CONSTANT and "f" in kinds:
        raise Unprovable(
            f"numpy.{function.__name__} of fractions is not known to be exact element by element"
        )
    for array in arrays:
        if array.dtype not in ALLOWED:
            raise Unprovable(f"it computes with {array.dtype}")
        for value in operands:
            if type(value) is int and array.dtype.kind in "iu" and not fits(value, array.dtype):
                raise Unprovable(f"{value} does not fit {array.dtype}")
    if function in BY_CONSTANT:
        divisor = operands[1]
        if type(divisor) is not int or divisor in (0, -1) or arrays[0].dtype.kind not in "iu":
            raise Unprovable(f"numpy.{function.__name__} needs a constant whole number")
    given = tuple(
        value.dtype
        if isinstance(value, _Recorded)
        else type(value)
        if type(value) in (int, float)
        else value.dtype
        for value in operands
    )
    found: np.dtype[Any] = function.resolve_dtypes((*given, None))[-1]
    return found


def _kind(value: Any) -> str:
    """The kind of a constant. None for a Python integer, which takes the kind of the array."""
    if type(value) is int:
        return ""
    return "f" if type(value) is float else value.dtype.kind
