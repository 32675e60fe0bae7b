"""The first operation of a traced function that makes a NaN or an infinity, found by the program itself.

A function is traced into its operations, and these are put together again with a look at what each of them gives. XLA
fuses most looks with the operation before them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import jax
import jax.numpy as jnp
from jax.extend.core import Literal

_INLINED: Final = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "remat2": "jaxpr",
    "checkpoint": "jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
}
"""Operations that stand for several, and where they have them."""


@dataclass(frozen=True, slots=True)
class Seen:
    """An operation that is looked at.

    Attributes:
      name: Such as "log"; what a value is, for one that the function only hands on.
      frames: File, line and function of the calls that led to it, the innermost first.
    """

    name: str
    frames: tuple[tuple[str, int, str], ...]


def watched(
    function: Callable[..., tuple[list[Any], list[Any]]], *args: Any
) -> tuple[list[Any], list[Any], Any, tuple[Seen, ...]]:
    """What a function returns, and which operation first made something that is not finite out of what was.

    Args:
      function: Gives results and new values of variables; is traced once.
      *args: Its arguments.

    Returns:
      Results and new values; an int32 scalar, the number of the operation, or -1; and the operations by number. Behind
      them come "what the replica function returned" and "a variable", for what was not finite from the beginning.
    """
    closed, shape = jax.make_jaxpr(function, return_shape=True)(*args)
    seen: list[Seen] = []
    bad: list[Any] = []
    flat = jax.tree.leaves(args)
    outputs = _evaluated(closed, flat, [_fine(value) for value in flat], seen, bad)
    results, new = jax.tree.unflatten(jax.tree.structure(shape), [value for value, _ in outputs])
    for name, values in (
        ("what the replica function returned", results),
        ("what a variable was assigned", new),
    ):
        looks = [fine for fine in map(_fine, values) if fine is not True]
        if looks:
            seen.append(Seen(name, ()))
            bad.append(~jnp.stack(looks).all())
    if not bad:
        return results, new, jnp.int32(-1), ()
    found = jnp.stack(bad)
    first = jnp.where(found.any(), jnp.argmax(found).astype(jnp.int32), jnp.int32(-1))
    return results, new, first, tuple(seen)


def _evaluated(
    closed: Any, values: Sequence[Any], fine: Sequence[Any], seen: list[Seen], bad: list[Any]
) -> list[tuple[Any, Any]]:
    """What a program gives, each with whether it is finite: a bool array, or True where it cannot be otherwise."""
    known: dict[Any, tuple[Any, Any]] = {}
    program = closed.jaxpr
    for variable, value in zip(program.constvars, closed.consts, strict=True):
        known[variable] = value, _fine(value)
    known.update(zip(program.invars, zip(values, fine, strict=True), strict=True))

    def read(atom: Any) -> tuple[Any, Any]:
        return (atom.val, _fine(atom.val)) if isinstance(atom, Literal) else known[atom]

    for operation in program.eqns:
        inputs = [read(atom) for atom in operation.invars]
        inside = operation.params.get(_INLINED.get(operation.primitive.name, ""))
        if inside is not None and hasattr(inside, "consts"):
            outputs = _evaluated(
                inside, [value for value, _ in inputs], [good for _, good in inputs], seen, bad
            )
        else:
            outputs = _run(operation, inputs, seen, bad)
        known.update(zip(operation.outvars, outputs, strict=True))
    return [read(atom) for atom in program.outvars]


def _run(
    operation: Any, inputs: list[tuple[Any, Any]], seen: list[Seen], bad: list[Any]
) -> list[tuple[Any, Any]]:
    bound = operation.primitive.get_bind_params(operation.params)
    functions, params = bound if isinstance(bound, tuple) else ((), bound)  # before JAX 0.10 it was a tuple
    with operation.ctx.manager:
        found = operation.primitive.bind(*functions, *(value for value, _ in inputs), **params)
    outputs = [
        (value, _fine(value)) for value in (found if operation.primitive.multiple_results else [found])
    ]
    looks = [good for _, good in outputs if good is not True]
    if looks:
        before = [good for _, good in inputs if good is not True]
        made = ~jnp.stack(looks).all()
        bad.append(made & jnp.stack(before).all() if before else made)
        called = operation.source_info.traceback
        frames = () if called is None else called.frames
        seen.append(
            Seen(
                operation.primitive.name,
                tuple(
                    (each.file_name, each.line_num, each.function_name.rpartition(".")[2]) for each in frames
                ),
            )
        )
    return outputs


def _fine(value: Any) -> Any:
    """Whether all elements are finite, as the program knows it; True for what has none that could be otherwise."""
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        return True
    if not jnp.issubdtype(dtype, jnp.inexact):
        return True
    return jnp.isfinite(value).all()
