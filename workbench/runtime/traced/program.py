"""Traced: marks a program that a worker compiles once for all of its replicas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from workbench.errors import TracingError
from workbench.runtime.traced.arguments import PartialBatch

if TYPE_CHECKING:
    from workbench.backends.jax.watch import Given
    from workbench.runtime.replica.env import ReplicaEnv


class OperationDump(Protocol):
    """Takes the results of a compiled program's operations; travels with it to the workers. See also `Wanted`."""

    @property
    def elements(self) -> bool:
        """Whether it takes elements, or only what is known about an array without them."""

    def wants(self, op: str, frames: tuple[tuple[str, int, str], ...], dtype: np.dtype[Any]) -> bool:
        """Whether it takes the results of an operation with a dtype.

        Args:
          op: Name of the operation.
          frames: File, line and function of the calls that led to it.
          dtype: Dtype of the array.
        """

    def tracing(self) -> AbstractContextManager[None]:
        """A context in which this thread traces the function."""

    def take(
        self,
        given: Sequence[Given],
        arrays: Sequence[np.ndarray[Any, Any]],
        *,
        host: str,
        replica: int,
        step: int,
    ) -> None:
        """Takes the results of one step's operations on one replica; no arrays if it takes no elements.

        Args:
          given: The operation that made each array.
          arrays: The arrays.
          host: Name of the host.
          replica: Rank of the replica.
          step: Number of the step.
        """


class Traced:
    """Marks a program that is traced and compiled, once for all replicas, instead of called on each.

    Attributes:
      program: Called as `program(env, *args, **kwargs)` with a `TracedEnv`.
      user_function: The user's function, for messages.
      partial_batch: How to handle components with fewer rows than others.
      timeout_seconds: Longest time that a step may take, None for no limit.
      checked: Whether NaN and infinity are an error.
      dump: Takes the results of its operations, or None.
    """

    __slots__ = ("checked", "dump", "partial_batch", "program", "timeout_seconds", "user_function")

    def __init__(
        self,
        program: Callable[..., Any],
        user_function: Callable[..., Any],
        *,
        partial_batch: PartialBatch = "recompile",
        timeout_seconds: float | None = None,
        checked: bool = False,
        dump: OperationDump | None = None,
    ) -> None:
        self.program = program
        self.user_function = user_function
        self.partial_batch = partial_batch
        self.timeout_seconds = timeout_seconds
        self.checked = checked
        self.dump = dump

    def __call__(self, env: ReplicaEnv, *args: Any, **kwargs: Any) -> Any:
        """Raises: it can run only on a worker that traces it."""
        raise TracingError("this program runs on TPU devices only")

    def __reduce__(self) -> tuple[Any, ...]:
        how = {
            "partial_batch": self.partial_batch,
            "timeout_seconds": self.timeout_seconds,
            "checked": self.checked,
            "dump": self.dump,
        }
        return _traced, (self.program, self.user_function, how)


def _traced(program: Any, user_function: Any, how: dict[str, Any]) -> Traced:
    return Traced(program, user_function, **how)
