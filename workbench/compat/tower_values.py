"""Values with a component per tower: which count as one value, how they are copied, and which are rejected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from workbench import tree
from workbench.distribute.arrays.reduce_op import ReduceOp
from workbench.distribute.values.distributed_values import Mirrored, PerReplica

PLAIN: Final = (bool, int, float, complex, str, bytes)


def collapsed(leaf: Any) -> Any:
    """A plain Python value if all towers have the same; other leaves stay unchanged."""
    if type(leaf) is not PerReplica and type(leaf) is not Mirrored:
        return leaf
    if leaf.handle is not None and any(spec is not None for spec in leaf.handle.specs()):
        return leaf  # they are arrays, so nothing is fetched
    values = leaf.values
    first = values[0]
    same = type(first) in PLAIN and all(type(value) is type(first) and value == first for value in values)
    return first if same else leaf


def copied(value: Any, where: Any) -> Any:
    """A value on each device of a list; other destinations already have it."""
    if isinstance(where, (list, tuple)) and len(where) > 1:
        return Mirrored([value] * len(where))
    return value


def require_mirrored(what: str, destinations: str, arguments: Any) -> None:
    """Rejects arguments that differ by tower.

    Args:
      what: The function that they were passed to.
      destinations: Where they should be reduced to instead.
      arguments: A structure of them.

    Raises:
      TypeError: if one has components that differ.
    """
    for leaf in tree.flatten(arguments)[0]:
        if isinstance(leaf, PerReplica):
            raise TypeError(
                f"{what} got a value that differs by tower, {leaf!r}; combine it first: "
                f"distribution.reduce('sum', value, destinations={destinations})"
            )


def reduce_op(method: str) -> ReduceOp:
    """The operation of a method, "sum" or "mean".

    Raises:
      ValueError: for another one.
    """
    if method not in ("sum", "mean"):
        raise ValueError(f"the method must be 'sum' or 'mean', got {method!r}")
    return ReduceOp[method.upper()]


class MapOutput:
    """The results of `MirroredStrategy.map` on one tower."""

    def __init__(self, results: Sequence[Any]) -> None:
        self._results = list(results)

    def get(self) -> list[Any]:
        """The results, in the order of the items."""
        return self._results

    def __repr__(self) -> str:
        return f"MapOutput({self._results!r})"


def mapped_here(
    fn: Callable[..., Any], items: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> MapOutput:
    """Calls a function of `MirroredStrategy.map` for the items of one tower.

    Args:
      fn: The function.
      items: The first argument of each call.
      args: Arguments that are the same for all calls.
      kwargs: Likewise.
    """
    return MapOutput([fn(item, *args, **kwargs) for item in items])
