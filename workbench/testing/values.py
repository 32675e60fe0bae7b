"""Checks values that replicas hold: copies in sync, results equal everywhere, no NaN."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import numpy as np

from workbench.backends.summary import Summary
from workbench.distribute.strategies.strategy import Strategy
from workbench.distribute.values.distributed_values import DistributedValues
from workbench.distribute.values.local_values import flatten_distributed
from workbench.distribute.variables.variable import Variable
from workbench.ui.inspect.inspection import Inspection, inspect, name_in
from workbench.ui.models.inspected import InspectedValue


def assert_in_sync(value: Any) -> None:
    """Checks that the copies of variables are equal, bit by bit; replicas compare them where they are.

    Args:
      value: A mirrored variable or value, a nested structure of them, or a strategy: all of its mirrored variables.

    Raises:
      AssertionError: if copies differ; it names each such variable, the first replica that differs, by how much, and
        since when.
      TypeError: if `value` contains nothing whose copies must be equal.
    """
    __tracebackhide__ = True
    found = _inspected(value, sys._getframe(1))
    compared = [each for each in found.values if each.agreement is not None]
    # A central variable has one copy.
    others = [each for each in found.values if each.agreement is None and each.kind != "CentralVariable"]
    if others and not (compared and isinstance(value, Strategy)):
        raise TypeError(
            f"assert_in_sync compares copies that must be equal, those of mirrored variables; {_named(others[0])} "
            f"is a {others[0].kind}. Use assert_same_on_all for values that replicas may hold differently"
        )
    if apart := [_parting(each) for each in compared if each.agreement and not each.agreement.in_sync]:
        raise AssertionError("\n".join([*apart, str(Inspection(tuple(compared)))]))


def assert_same_on_all(value: Any, *, rtol: float = 0.0, atol: float = 0.0) -> None:
    """Checks that every replica holds the same; fetches the components.

    Args:
      value: A result of `strategy.run`, a variable of any kind, or a nested structure of them.
      rtol: Relative tolerance, as for `numpy.isclose`; NaN equals NaN.
      atol: Absolute tolerance.

    Raises:
      AssertionError: naming the first replica and element that differ from replica 0's.
      TypeError: if a leaf of `value` has no component per replica.

    >>> wb.testing.assert_same_on_all(strategy.run(lambda: np.array([1.0, 2.0])))
    """
    __tracebackhide__ = True
    leaves, _ = flatten_distributed(value)
    base = name_in(sys._getframe(1), value)
    for leaf in leaves:
        if not isinstance(leaf, DistributedValues):
            raise TypeError(
                f"assert_same_on_all compares components on replicas, got {type(leaf).__name__}, of which there is "
                f"one; give it what strategy.run returned, or a variable of a strategy"
            )
        name = _name_of(leaf, base if leaf is value else "")
        first, *rest = [np.asarray(component) for component in leaf.values]
        for replica, other in enumerate(rest, 1):
            if difference := _difference(first, other, rtol, atol):
                raise AssertionError(
                    f"{name} is not the same on all replicas: replica {replica} {difference}"
                )


def assert_finite(value: Any) -> None:
    """Checks that there is no NaN and no infinity on any replica; each replica checks its own arrays.

    Args:
      value: A PerReplica, a variable, an array, a nested structure of them, or a strategy: all of its variables.

    Raises:
      AssertionError: if there is one; it names the replicas, the number of elements and, if known, the first step.

    >>> wb.testing.assert_finite(strategy.run(lambda: np.array([1.0, 2.0])))
    """
    __tracebackhide__ = True
    found = _inspected(value, sys._getframe(1))
    if bad := [line for each in found.values for line in _not_finite(each)]:
        raise AssertionError("\n".join([*bad, str(found)]))


def _inspected(_value: Any, caller: FrameType) -> Inspection:
    """The result of `inspect`, under the name in the caller's code rather than ours, which the underscore hides."""
    return inspect(_value, name=name_in(caller, _value), exact=True)


def _name_of(leaf: DistributedValues, name: str) -> str:
    if isinstance(leaf, Variable):
        return f"variable {leaf.name!r}"
    return repr(name) if name else f"the {type(leaf).__name__}"


def _named(value: InspectedValue) -> str:
    return repr(value.name) if value.name else "the value"


def _parting(value: InspectedValue) -> str:
    agreement = value.agreement
    assert agreement is not None
    since = f" {agreement.since}" if agreement.since else ""
    return (
        f"{_named(value)} is not in sync: it diverged{since}, replica {agreement.first_replica} is the first that "
        f"differs from replica 0, max|Δ|={agreement.max_abs_difference:.3g}"
    )


def _not_finite(value: InspectedValue) -> list[str]:
    lines = []
    for each in value.replicas:
        if isinstance(each.summary, Summary) and (each.summary.nan or each.summary.inf):
            where = f"on replica {each.replica}" if each.replica >= 0 else "here"
            since = each.note.partition(" ")[2]
            counts = f"{each.summary.nan} NaN and {each.summary.inf} infinite elements"
            lines.append(f"{_named(value)} is not finite {where}: {counts}{f', {since}' if since else ''}")
    return lines


def _difference(first: np.ndarray, other: np.ndarray, rtol: float, atol: float) -> str:
    """How `other` differs from replica 0's array, in words; "" if it does not."""
    if (first.shape, first.dtype) != (other.shape, other.dtype):
        return f"has {_kind(other)}, replica 0 has {_kind(first)}"
    if rtol or atol:
        unequal = ~np.isclose(other, first, rtol=rtol, atol=atol, equal_nan=True)
    else:
        unequal = ~((first == other) | ((first != first) & (other != other)))  # NaN is not equal to itself
    if not unequal.any():
        return ""
    at = tuple(np.argwhere(unequal)[0].tolist())
    place = f" at {list(at)}" if at else ""
    return f"has {other[at]}{place} where replica 0 has {first[at]} ({unequal.sum()} of {first.size} elements differ)"


def _kind(array: np.ndarray) -> str:
    return f"{array.dtype.name}[{','.join(map(str, array.shape))}]"
