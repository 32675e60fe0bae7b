"""FunctionOptimizer: an optimizer step written by the user, and how a parameter server runs it."""

from __future__ import annotations

import pickle
import traceback
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from workbench.errors import CaptureError, InvalidArgumentError, UnknownError
from workbench.runtime.comm.messages import dumps

Array: TypeAlias = np.ndarray[Any, Any]
Step: TypeAlias = Callable[[Array, Array, dict[str, Array], int], tuple[Array, Mapping[str, Array]]]
_MOST_BYTES: Final = 256 * 1024
_MOST_FUNCTIONS: Final = 64


class FunctionOptimizer:
    """An optimizer whose step is a function of arrays that you write; the parameter servers call it.

    A server calls `function(values, gradient, slots, step)`, which returns new values and new slots of the same
    shapes. For a sparse gradient it gets only the affected rows, each once, and the same rows of the slots, so one
    function serves both cases. It may change its arguments. While it runs, its server answers no other requests.

    Attributes:
      function: The step. The values that it captures are taken when the optimizer is made.
      slots: Name -> initial value of the state that the server keeps for each element of a variable, in the variable's
        dtype.
      name: The name of the function.

    Args:
      function: See the attribute. `step` counts the steps of this variable or shard from 1, including this one.
      slots: See the attribute.

    Raises:
      CaptureError: if the function cannot travel, or is larger than 256 KiB including its captured values.

    >>> def rmsprop(values, gradient, slots, step):
    ...     mean = 0.9 * slots["mean"] + 0.1 * gradient**2
    ...     return values - 0.01 * gradient / np.sqrt(mean + 1e-7), {"mean": mean}
    >>> wb.distribute.server_optimizers.FunctionOptimizer(rmsprop, slots={"mean": 0.0})
    FunctionOptimizer(rmsprop, slots={'mean': 0.0})
    """

    def __init__(self, function: Step, slots: Mapping[str, float] | None = None) -> None:
        self.name = getattr(function, "__name__", type(function).__name__)
        self.slots = {name: float(value) for name, value in (slots or {}).items()}
        try:
            self.pickled = dumps(function)
        except Exception as error:
            raise CaptureError(f"the step {self.name} cannot travel to parameter servers: {error}") from error
        if len(self.pickled) > _MOST_BYTES:
            raise CaptureError(
                f"the step {self.name} has {len(self.pickled):,} bytes with what it captures, and travels with each "
                f"update; keep arrays of the variable's shape in slots, and others out of it"
            )

    def fields(self) -> dict[str, Any]:
        """The fields of a request, besides the function itself."""
        return {"name": self.name, "slots": self.slots}

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_pickled, (self.name, self.slots, self.pickled)

    def __repr__(self) -> str:
        return f"FunctionOptimizer({self.name}, slots={self.slots})"


def _of_pickled(name: str, slots: dict[str, float], pickled: bytes) -> FunctionOptimizer:
    """Recreates a pickled optimizer; only a server needs the function."""
    made = object.__new__(FunctionOptimizer)
    made.name, made.slots, made.pickled = name, slots, pickled
    return made


class Steps:
    """The functions that a server has received, and their calls."""

    def __init__(self) -> None:
        self._functions: OrderedDict[bytes, Step] = OrderedDict()

    def call(
        self,
        pickled: bytes,
        name: str,
        where: str,
        values: Array,
        gradient: Array,
        slots: dict[str, Array],
        step: int,
    ) -> tuple[Array, dict[str, Array]]:
        """Calls a function; returns new values and slots, with the shapes and dtypes of the old ones.

        Args:
          pickled: The function.
          name: Its name.
          where: Variable and update, for messages.
          values: See `FunctionOptimizer`.
          gradient: See `FunctionOptimizer`.
          slots: See `FunctionOptimizer`.
          step: See `FunctionOptimizer`.

        Raises:
          UnknownError: if it raises.
          InvalidArgumentError: if it returns something else.
        """
        try:
            if pickled not in self._functions:
                self._functions[pickled] = pickle.loads(pickled)
                while len(self._functions) > _MOST_FUNCTIONS:
                    self._functions.popitem(last=False)
            returned = self._functions[pickled](values.copy(), gradient, dict(slots), step)
        except Exception as error:
            raise UnknownError(
                f"the step {name} on {where} raised {type(error).__name__}: {error}{_line(error)}; the variable is as "
                f"before"
            ) from error
        said = f"the step {name} on {where} must return (values, slots)"
        if not isinstance(returned, tuple) or len(returned) != 2 or not isinstance(returned[1], Mapping):
            raise InvalidArgumentError(f"{said}, got {type(returned).__name__}")
        made, kept = returned
        if set(kept) != set(slots):
            raise InvalidArgumentError(f"{said} with the slots {sorted(slots)}, got {sorted(kept)}")
        return _like(made, values, f"{said}: values"), {
            slot: _like(kept[slot], before, f"{said}: slot {slot!r}") for slot, before in slots.items()
        }


def _like(new: Any, old: Array, what: str) -> Array:
    array = np.asarray(new)
    if array.shape != old.shape or not np.can_cast(array.dtype, old.dtype, "same_kind"):
        raise InvalidArgumentError(
            f"{what} of shape {old.shape} and dtype {old.dtype.name} are needed, got {array.shape}, {array.dtype.name}"
        )
    return array.astype(old.dtype, copy=False)


def _line(error: BaseException) -> str:
    """The line where the function raised, "" for errors outside it."""
    frames: Sequence[traceback.FrameSummary] = traceback.extract_tb(error.__traceback__)[1:]
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
