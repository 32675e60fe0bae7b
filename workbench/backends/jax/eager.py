"""Reports JAX operations that run eagerly, on the thread that calls them.

JAX has no public way to observe them. This module uses a trace, as JAX's own transformations do, which performs each
operation like JAX itself.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

import jax
from jax._src import core

from workbench.backends.jax.interpreter import Frames, frames_of, inner_program, interpreted, performed
from workbench.backends.users_line import PACKAGE

Add = Callable[[str, Sequence[Any], Frames], None]
"""`add(op, outputs, frames)`; only operations of a compiled function have frames."""


@contextlib.contextmanager
def told_operations(add: Add, is_users: Callable[[str], bool]) -> Iterator[None]:
    """Reports the operations that the user's lines run on this thread inside the block.

    A compiled function is one operation with its name; one of the user's is run operation by operation.

    Args:
      add: Called with each operation.
      is_users: Whether a file is the user's.
    """
    with core.set_current_trace(_Telling(add, is_users)):
        yield


@contextlib.contextmanager
def checked_operations() -> Iterator[None]:
    """Makes operations on this thread inside the block raise a FloatingPointError for NaN or infinity."""
    with jax.debug_nans(True), jax.debug_infs(True):
        yield


class _Telling(core.EvalTrace):
    """Computes like JAX, and reports each operation."""

    def __init__(self, add: Add, is_users: Callable[[str], bool]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._add = add
        self._is_users = is_users

    def process_primitive(self, primitive: Any, args: Any, params: Any, /) -> Any:
        """Called by JAX for each primitive, as for every trace."""
        inside = inner_program(primitive.name, params)
        compiled = primitive.name in ("jit", "pjit")
        with core.eval_context():
            if compiled and self._is_users(inside.jaxpr.debug_info.func_filename or ""):
                return interpreted(inside, args, self._run)
            found = super().process_primitive(primitive, args, params)  # type: ignore[no-untyped-call]
        if self._is_called_by_user(sys._getframe(1)):
            op = params["name"].lstrip("_") if compiled else primitive.name
            self._add(op, list(found) if primitive.multiple_results else [found], ())
        return found

    def process_custom_jvp_call(self, primitive: Any, fun: Any, jvp: Any, values: Any, /, **how: Any) -> Any:
        """Called by JAX for a function with its own derivative; reports the operations inside it, too."""
        with core.set_current_trace(self):
            return super().process_custom_jvp_call(primitive, fun, jvp, values, **how)  # type: ignore[no-untyped-call]

    def process_custom_vjp_call(
        self, primitive: Any, fun: Any, fwd: Any, bwd: Any, values: Any, /, **how: Any
    ) -> Any:
        """Called by JAX, as `process_custom_jvp_call`."""
        with core.set_current_trace(self):
            return super().process_custom_vjp_call(  # type: ignore[no-untyped-call]
                primitive, fun, fwd, bwd, values, **how
            )

    def _is_called_by_user(self, frame: FrameType | None) -> bool:
        """Whether the user's code led to an operation, rather than this package's own computation."""
        while frame is not None:
            path = frame.f_code.co_filename
            if self._is_users(path):
                return True
            if path.startswith(PACKAGE) and path != __file__:
                return False
            frame = frame.f_back
        return False

    def _run(self, operation: Any, inputs: list[Any]) -> list[Any]:
        found = performed(operation, inputs)
        self._add(operation.primitive.name, found, frames_of(operation))
        return found
