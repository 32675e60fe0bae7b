"""Optimizer steps as functions of arrays, which parameter servers apply to gradients.

Each rule changes the variable in place. A gradient is one array of the variable's shape, or the values and indices of
some of its rows, each occurring once; then only these rows of the variable and of its slots change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import numpy as np

from workbench.errors import InvalidArgumentError

Array: TypeAlias = np.ndarray[Any, Any]
Slots: TypeAlias = dict[str, Array]


class Rule(Protocol):
    """An optimizer's step."""

    @property
    def slots(self) -> dict[str, float]:
        """Name -> initial value of the state that it keeps for a variable."""

    def step(self, array: Array, slots: Slots, gradient: Sequence[Array], steps: int) -> None:
        """Changes a variable.

        Args:
          array: The variable, or a shard of it, shape `(rows, ...)`.
          slots: The rule's state for it, by name; the rule adds missing entries.
          gradient: One array of the shape of `array`, or values `(n, ...)` and indices `(n,)`.
          steps: Number of steps of this variable, including this one.
        """


def _rows(array: Array, gradient: Sequence[Array]) -> tuple[Array, Any]:
    """The gradient, and the rows to which it applies."""
    return gradient[0], gradient[1] if len(gradient) > 1 else ...


def slots_of(kept: Slots, initial: Mapping[str, float], array: Array) -> list[Array]:
    """The named slots, in order; creates missing ones.

    Args:
      kept: All slots of a variable by name; missing ones are added.
      initial: Names of the slots to return, each with its first value.
      array: The variable; a slot has its shape and dtype.
    """
    for name, value in initial.items():
        if name not in kept:
            kept[name] = np.full(array.shape, value, array.dtype)
    return [kept[name] for name in initial]


class _Range(NamedTuple):
    """The numbers that a setting accepts.

    Attributes:
      text: Description for errors.
      has: Whether a number is accepted.
    """

    text: str
    has: Callable[[float], bool]


_REAL: Final = "biufV"
"""Kinds of dtypes for real numbers; bfloat16 has kind V."""
_FINITE: Final = _Range("a number", math.isfinite)
_POSITIVE: Final = _Range("0 or more", lambda number: 0 <= number < math.inf)
_SHARE: Final = _Range("a number from 0 to 1", lambda number: 0 <= number <= 1)
_DECAY: Final = _Range("a share, from 0 to less than 1", lambda number: 0 <= number < 1)
_SWITCH: Final = _Range("True or False", lambda number: number in (0, 1))


def _settle(rule: Any, ranges: Mapping[str, _Range]) -> None:
    """Turns a rule's settings into plain numbers, which can be sent, and refuses other values.

    Args:
      rule: The new rule. Servers create it again for each update, so this must take few microseconds.
      ranges: The range of each setting, by its name.

    Raises:
      TypeError: if one is not a number.
      InvalidArgumentError: if one is out of its range.
    """
    for name, wanted in ranges.items():
        value = getattr(rule, name)
        number = value if type(value) is float else _number(value)
        if number is None or not wanted.has(number):
            what = f"{type(rule).__name__}: {name}"
            if number is None:
                raise TypeError(f"{what} must be {wanted.text}, got {value!r:.80}")
            if not math.isfinite(number):
                raise InvalidArgumentError(f"{what} must be finite, got {value!r:.80}")
            raise InvalidArgumentError(f"{what} must be {wanted.text}, got {value!r:.80}")
        object.__setattr__(rule, name, bool(number) if wanted is _SWITCH else number)


def _number(value: Any) -> float | None:
    """A value as a number; None if it is not one."""
    if isinstance(value, str | bytes | bytearray) or np.ndim(value):
        return None
    if (
        getattr(getattr(value, "dtype", None), "kind", "f") not in _REAL
    ):  # float() parses text and drops imaginary parts
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class SGD:
    """`w -= learning_rate * g`, with momentum `m = momentum * m - learning_rate * g; w += m` (as tf's SGD).

    Attributes:
      learning_rate: Step size.
      momentum: Share of the last step that is kept, from 0 (none) to 1.
      nesterov: Look ahead along the momentum.
    """

    learning_rate: float = 0.01
    momentum: float = 0.0
    nesterov: bool = False

    def __post_init__(self) -> None:
        _settle(self, {"learning_rate": _FINITE, "momentum": _SHARE, "nesterov": _SWITCH})

    @property
    def slots(self) -> dict[str, float]:
        """See `Rule.slots`."""
        return {"momentum": 0.0} if self.momentum else {}

    def step(self, array: Array, slots: Slots, gradient: Sequence[Array], steps: int) -> None:
        """See `Rule.step`."""
        change, rows = _rows(array, gradient)
        change = change * array.dtype.type(-self.learning_rate)
        if self.momentum:
            (kept,) = slots_of(slots, self.slots, array)
            share = array.dtype.type(self.momentum)
            moved = kept[rows] * share + change
            kept[rows] = moved
            change = moved * share + change if self.nesterov else moved
        array[rows] += change


@dataclass(frozen=True, slots=True)
class Adagrad:
    """`a += g²; w -= learning_rate * g / sqrt(a + epsilon)` (as tf's Adagrad).

    Attributes:
      learning_rate: Step size.
      initial_accumulator_value: Initial value of `a`.
      epsilon: Keeps the divisor from zero.
    """

    learning_rate: float = 0.001
    initial_accumulator_value: float = 0.1
    epsilon: float = 1e-7

    def __post_init__(self) -> None:
        _settle(
            self, {"learning_rate": _FINITE, "initial_accumulator_value": _POSITIVE, "epsilon": _POSITIVE}
        )

    @property
    def slots(self) -> dict[str, float]:
        """See `Rule.slots`."""
        return {"accumulator": self.initial_accumulator_value}

    def step(self, array: Array, slots: Slots, gradient: Sequence[Array], steps: int) -> None:
        """See `Rule.step`."""
        change, rows = _rows(array, gradient)
        (total,) = slots_of(slots, self.slots, array)
        summed = total[rows] + change * change
        total[rows] = summed
        scale = array.dtype.type(self.learning_rate)
        array[rows] -= scale * change / np.sqrt(summed + array.dtype.type(self.epsilon))


@dataclass(frozen=True, slots=True)
class Adam:
    """Adam (as tf's Adam). Rows that are missing in a sparse gradient also keep their moments ("lazy").

    Attributes:
      learning_rate: Step size.
      beta_1: Decay of the mean of gradients.
      beta_2: Decay of the mean of their squares.
      epsilon: Keeps the divisor from zero.
    """

    learning_rate: float = 0.001
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-7

    def __post_init__(self) -> None:
        _settle(self, {"learning_rate": _FINITE, "beta_1": _DECAY, "beta_2": _DECAY, "epsilon": _POSITIVE})

    @property
    def slots(self) -> dict[str, float]:
        """See `Rule.slots`."""
        return {"m": 0.0, "v": 0.0}

    def step(self, array: Array, slots: Slots, gradient: Sequence[Array], steps: int) -> None:
        """See `Rule.step`."""
        change, rows = _rows(array, gradient)
        number = array.dtype.type
        first, second = slots_of(slots, self.slots, array)
        m = first[rows] + (change - first[rows]) * number(1 - self.beta_1)
        v = second[rows] + (change * change - second[rows]) * number(1 - self.beta_2)
        first[rows], second[rows] = m, v
        scale = self.learning_rate * (1 - self.beta_2**steps) ** 0.5 / (1 - self.beta_1**steps)
        array[rows] -= number(scale) * m / (np.sqrt(v) + number(self.epsilon))


_RULES: Final[Mapping[str, Callable[..., Rule]]] = {"SGD": SGD, "Adagrad": Adagrad, "Adam": Adam}


def rule_fields(rule: SGD | Adagrad | Adam) -> dict[str, Any]:
    """Encodes a rule for a request."""
    return {"kind": type(rule).__name__, **asdict(rule)}


def rule_of(described: Mapping[str, Any]) -> Rule:
    """Decodes a rule encoded by `rule_fields`.

    Raises:
      InvalidArgumentError: if there is no rule with that name.
    """
    options = dict(described)
    make = _RULES.get(options.pop("kind"))
    if make is None:
        raise InvalidArgumentError(
            f"a parameter server has no rule {described['kind']!r}; it has {', '.join(_RULES)}"
        )
    return make(**options)
