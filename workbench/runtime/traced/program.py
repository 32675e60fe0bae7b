"""Traced: marks a program that a worker compiles once for all of its replicas."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from workbench.errors import TracingError
from workbench.runtime.traced.arguments import PartialBatch

if TYPE_CHECKING:
    from workbench.runtime.replica.env import ReplicaEnv


class Traced:
    """Marks a program that is traced and compiled, once for all replicas, instead of called on each.

    Attributes:
      program: Called as `program(env, *args, **kwargs)` with a `TracedEnv`.
      user_function: What the user wrote, for messages.
      partial_batch: What becomes of components with fewer rows than others.
      timeout_seconds: Longest time that a step may take, None for any.
      checked: Whether NaN and infinity are an error.
    """

    __slots__ = ("checked", "partial_batch", "program", "timeout_seconds", "user_function")

    def __init__(
        self,
        program: Callable[..., Any],
        user_function: Callable[..., Any],
        *,
        partial_batch: PartialBatch = "recompile",
        timeout_seconds: float | None = None,
        checked: bool = False,
    ) -> None:
        self.program = program
        self.user_function = user_function
        self.partial_batch = partial_batch
        self.timeout_seconds = timeout_seconds
        self.checked = checked

    def __call__(self, env: ReplicaEnv, *args: Any, **kwargs: Any) -> Any:
        """Not without a worker that traces it."""
        raise TracingError("this program runs on TPU devices only")

    def __reduce__(self) -> tuple[Any, ...]:
        how = {
            "partial_batch": self.partial_batch,
            "timeout_seconds": self.timeout_seconds,
            "checked": self.checked,
        }
        return _traced, (self.program, self.user_function, how)


def _traced(program: Any, user_function: Any, how: dict[str, Any]) -> Traced:
    return Traced(program, user_function, **how)
