"""Runs JAX programs operation by operation, so that each can be examined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

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
"""Operations that contain others, and the parameter that holds these."""

Frames = tuple[tuple[str, int, str], ...]
"""File, line and function of the calls that led to an operation, innermost first."""


def interpreted(
    closed: Any,
    values: Sequence[Any],
    run: Callable[[Any, list[Any]], list[Any]],
    *,
    lifted: Callable[[Any], Any] = lambda value: value,
) -> list[Any]:
    """The results of a program. Each loop or branch is one operation.

    Args:
      closed: The program, from `jax.make_jaxpr`.
      values: Its arguments, in the form that `run` takes.
      run: Performs an operation: `run(operation, inputs) -> outputs`; see `performed`.
      lifted: Converts an array in the program to that form.
    """
    known: dict[Any, Any] = {}
    program = closed.jaxpr
    for variable, value in zip(program.constvars, closed.consts, strict=True):
        known[variable] = lifted(value)
    known.update(zip(program.invars, values, strict=True))

    def read(atom: Any) -> Any:
        return lifted(atom.val) if isinstance(atom, Literal) else known[atom]

    for operation in program.eqns:
        inputs = [read(atom) for atom in operation.invars]
        inside = inner_program(operation.primitive.name, operation.params)
        if inside is None:
            outputs = run(operation, inputs)
        else:
            outputs = interpreted(inside, inputs, run, lifted=lifted)
        known.update(zip(operation.outvars, outputs, strict=True))
    return [read(atom) for atom in program.outvars]


def inner_program(name: str, params: dict[str, Any]) -> Any:
    """The program inside an operation, None if it has none."""
    inside = params.get(_INLINED.get(name, ""))
    return inside if inside is not None and hasattr(inside, "consts") else None


def performed(operation: Any, values: Sequence[Any]) -> list[Any]:
    """The results of an operation for these arrays."""
    bound = operation.primitive.get_bind_params(operation.params)
    functions, params = bound if isinstance(bound, tuple) else ((), bound)  # before JAX 0.10 it was a tuple
    with operation.ctx.manager:
        found = operation.primitive.bind(*functions, *values, **params)
    return list(found) if operation.primitive.multiple_results else [found]


def frames_of(operation: Any) -> Frames:
    """The calls that led to an operation."""
    called = operation.source_info.traceback
    frames = () if called is None else called.frames
    return tuple((each.file_name, each.line_num, each.function_name.rpartition(".")[2]) for each in frames)
