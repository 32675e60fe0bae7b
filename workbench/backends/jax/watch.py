"""Makes a traced program check or dump the results of its operations.

A function is traced into its operations, which are reassembled with a check of each result. XLA fuses most checks for
NaN and infinity with the operation before them; dumped results become results of the program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.ad_checkpoint import checkpoint_name

from workbench.backends.jax.interpreter import Frames, frames_of, interpreted, performed

_MARK: Final = "workbench/"


@dataclass(frozen=True, slots=True)
class Seen:
    """An observed operation.

    Attributes:
      name: Its name, such as "log"; or a description of a value that the function only passes on.
      frames: The calls that led to it.
    """

    name: str
    frames: Frames


@dataclass(frozen=True, slots=True)
class Given:
    """An array that an operation returns.

    Attributes:
      op: The operation, such as "log".
      name: The variable that it is assigned to, or "".
      number: The number of the operation, in the program.
      output: The index of the result.
      frames: The calls that led to it.
      shape: Shape on one replica.
      dtype: The dtype of its elements.
    """

    op: str
    name: str
    number: int
    output: int
    frames: Frames
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class Wanted(Protocol):
    """What to dump from a program."""

    @property
    def elements(self) -> bool:
        """Whether to dump elements, or only what is known about each array without them."""

    def wants(self, op: str, frames: Frames, dtype: np.dtype[Any]) -> bool:
        """Whether to dump an operation's results with this dtype."""


class Watched(NamedTuple):
    """The results of a function and of its operations.

    Attributes:
      results: The function's results.
      new: New values of variables.
      first: An int32 scalar: the number in `seen` of the first operation that made a non-finite value from finite ones;
        -1 for none.
      seen: The observed operations, followed by "what the replica function returned" and "a variable", for values that
        were not finite from the beginning.
      arrays: The dumped arrays, if elements are dumped.
      given: The operations that returned them.
    """

    results: list[Any]
    new: list[Any]
    first: Any
    seen: tuple[Seen, ...]
    arrays: list[Any]
    given: tuple[Given, ...]


def watched(
    function: Callable[..., tuple[list[Any], list[Any]]], *args: Any, checked: bool, wanted: Wanted | None
) -> Watched:
    """Runs a function, and returns its results with those of its operations.

    Args:
      function: Returns results and new values of variables; traced once.
      *args: Its arguments.
      checked: Whether to check for NaN and infinity.
      wanted: What to dump, None for nothing.
    """
    closed, shape = jax.make_jaxpr(function, return_shape=True)(*args)
    looks = _Looks(checked, wanted)
    outputs = interpreted(
        closed, [looks.lifted(x) for x in jax.tree.leaves(args)], looks.run, lifted=looks.lifted
    )
    results, new = jax.tree.unflatten(jax.tree.structure(shape), [value for value, _ in outputs])
    for name, values in (
        ("what the replica function returned", results),
        ("what a variable was assigned", new),
    ):
        fine = [fine for _, fine in map(looks.lifted, values) if fine is not True]
        if fine:
            looks.seen.append(Seen(name, ()))
            looks.bad.append(~jnp.stack(fine).all())
    first = jnp.int32(-1)
    if looks.bad:
        found = jnp.stack(looks.bad)
        first = jnp.where(found.any(), jnp.argmax(found).astype(jnp.int32), first)
    return Watched(results, new, first, tuple(looks.seen), looks.arrays, tuple(looks.given))


def marked(value: Any, op: str, name: str) -> None:
    """Marks a value in the traced program as the result of `op`, such as "assign_add" for the variable `name`."""
    if isinstance(value, jax.core.Tracer):
        checkpoint_name(value, f"{_MARK}{op}/{name}")


@dataclass(slots=True)
class _Looks:
    """The findings of one pass over a program.

    Its values are pairs: a value, and whether all its elements are finite.
    """

    checked: bool
    wanted: Wanted | None
    seen: list[Seen] = field(default_factory=list)
    bad: list[Any] = field(default_factory=list)
    arrays: list[Any] = field(default_factory=list)
    given: list[Given] = field(default_factory=list)
    _count: int = 0

    def lifted(self, value: Any) -> tuple[Any, Any]:
        """The pair for a value: whether all elements are finite, computed by the program.

        True if nothing is checked.
        """
        dtype = getattr(value, "dtype", None)
        if not self.checked or dtype is None or not jnp.issubdtype(dtype, jnp.inexact):
            return value, True
        return value, jnp.isfinite(value).all()

    def run(self, operation: Any, inputs: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Performs an operation and checks its results."""
        outputs = [self.lifted(value) for value in performed(operation, [value for value, _ in inputs])]
        looks = [fine for _, fine in outputs if fine is not True]
        if looks:
            before = [fine for _, fine in inputs if fine is not True]
            made = ~jnp.stack(looks).all()
            self.bad.append(made & jnp.stack(before).all() if before else made)
            self.seen.append(Seen(operation.primitive.name, frames_of(operation)))
        if self.wanted is not None:
            self._dump(self.wanted, operation, [value for value, _ in outputs])
        return outputs

    def _dump(self, wanted: Wanted, operation: Any, outputs: list[Any]) -> None:
        op, name = operation.primitive.name, ""
        if op == "name" and operation.params["name"].startswith(_MARK):
            op, name = operation.params["name"].removeprefix(_MARK).split("/", 1)
        self._count += 1
        frames = frames_of(operation)
        for index, value in enumerate(outputs):
            dtype = getattr(value, "dtype", None)
            if isinstance(dtype, np.dtype) and wanted.wants(
                op, frames, dtype
            ):  # random keys have an extended dtype
                self.given.append(Given(op, name, self._count, index, frames, value.shape, dtype))
                if wanted.elements:
                    self.arrays.append(value)
