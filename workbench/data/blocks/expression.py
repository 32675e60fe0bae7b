"""A function's computation for one row, in a form that computes many rows at once."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from workbench.data.blocks.exact import fits
from workbench.data.structure import Array
from workbench.data.tables import Leaves

Place = int
"""The position of a value: the components of a row come first, then the results of the steps."""
_WARNINGS: Final = ("divide", "over", "under", "invalid")
_BOUNDS: Final[dict[Any, Callable[..., Any]]] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.negative: operator.neg,
    np.absolute: abs,
    np.square: lambda x: x * x,
    np.power: operator.pow,
}


@dataclass(frozen=True, slots=True)
class Constant:
    """A number that the function computes with or returns.

    Attributes:
      number: The number; one of Python's takes the dtype of the arrays that it is combined with.
    """

    number: Any


@dataclass(frozen=True, slots=True)
class Step:
    """One operation on whole arrays.

    Attributes:
      function: The function of the operands.
      operands: Places and constants.
      may_wrap: Whether the result may exceed its dtype; single numbers then warn.
      dtype: The dtype of the result.
    """

    function: Callable[..., Any]
    operands: tuple[Place | Constant, ...]
    may_wrap: bool
    dtype: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class Expression:
    """Steps, and the places of the results.

    Attributes:
      steps: The steps, in the order of the function.
      outputs: One per component of the result.
    """

    steps: tuple[Step, ...]
    outputs: tuple[Place | Constant, ...]

    def of_rows(self, columns: Leaves) -> Leaves | None:
        """The results for the rows stacked in `columns`, as new arrays of shape `(n, ...)`.

        None if NumPy would warn or raise for one of the rows: calling the function row by row then shows which.
        """
        values: list[Any] = list(columns)
        told = np.geterr()
        strict: Any = {name: "ignore" if told[name] == "ignore" else "raise" for name in _WARNINGS}
        try:
            with np.errstate(**strict):
                for step in self.steps:
                    operands = [_value(operand, values) for operand in step.operands]
                    if step.may_wrap and _wraps(step, operands):
                        return None
                    values.append(step.function(*operands))
        except FloatingPointError:
            return None
        own = range(len(columns), len(values))
        results: Leaves = []
        for number, output in enumerate(self.outputs):
            if isinstance(output, Constant):
                results.append(np.full(len(columns[0]), output.number))
            elif output in own and output not in self.outputs[:number]:
                results.append(np.ascontiguousarray(values[output]))
            else:  # a copy: changing one result in place must not change another result or the input
                results.append(np.array(values[output], order="C"))
        return results


def _value(operand: Place | Constant, values: list[Any]) -> Any:
    return operand.number if isinstance(operand, Constant) else values[operand]


def _wraps(step: Step, operands: list[Any]) -> bool:
    """Whether a result may exceed its dtype.

    Checks the extremes only, because extreme results come from extreme operands.
    """
    extremes = [_extremes(operand) for operand in operands]
    bound = _BOUNDS[step.function]
    return not all(fits(bound(*corner), step.dtype) for corner in itertools.product(*extremes))


def _extremes(operand: Array | int) -> tuple[int, ...]:
    return (operand,) if isinstance(operand, int) else (int(operand.min()), int(operand.max()))
