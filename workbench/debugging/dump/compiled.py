"""CompiledDump: dumps the results of operations in compiled functions.

A compiled program cannot report its operations while it runs. So it returns their results as additional results, which
are written after the step.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.debugging.dump.dump_file import dump_file
from workbench.debugging.dump.facts import facts
from workbench.debugging.dump.options import DumpOptions
from workbench.debugging.dump.recording import thread, users_lines
from workbench.runtime.comm.failure_report import is_users

if TYPE_CHECKING:
    from workbench.backends.jax.watch import Given

_WITHOUT_ELEMENTS = ("NO_TENSOR", "SHAPE")


@dataclass(frozen=True, slots=True)
class CompiledDump:
    """An `OperationDump` for the operations that the user's lines led to.

    Attributes:
      options: The options of the dump.
    """

    options: DumpOptions

    @property
    def elements(self) -> bool:
        """Whether elements must be read."""
        return self.options.mode not in _WITHOUT_ELEMENTS

    def wants(self, op: str, frames: tuple[tuple[str, int, str], ...], dtype: np.dtype[Any]) -> bool:
        """Whether results of an operation with this dtype are dumped."""
        return any(is_users(each[0]) for each in frames) and self.options.wants(op, dtype)

    @contextlib.contextmanager
    def tracing(self) -> Iterator[None]:
        """Marks collectives and assignments in the traced program."""
        outer = thread.recording
        thread.recording = _Marks()
        try:
            yield
        finally:
            thread.recording = outer

    def take(
        self,
        given: Sequence[Given],
        arrays: Sequence[np.ndarray[Any, Any]],
        *,
        host: str,
        replica: int,
        step: int,
    ) -> None:
        """Writes the rows of one step.

        Args:
          given: The results of operations.
          arrays: The elements; empty if they are not read.
          host: Name of the host.
          replica: The replica.
          step: The user's step.
        """
        file = dump_file(self.options)
        for index, each in enumerate(given):
            array = arrays[index] if self.elements else np.broadcast_to(np.zeros((), each.dtype), each.shape)
            lines, files = users_lines(each.frames)
            row = {
                "time": time.time(),
                "host": host,
                "replica": replica,
                "step": step,
                "number": each.number,
                "op": each.op,
                "name": each.name,
                "output": each.output,
                "line": lines[0],
                "stack": "\n".join(lines),
            }
            file.add(row | facts(array, self.options.mode), files)


class _Marks:
    """The `Recorder` of a function that JAX is tracing."""

    def add(self, op: str, outputs: Sequence[Any], name: str = "") -> None:
        """Marks these values in the program as the results of `op`."""
        from workbench.backends.jax.watch import marked  # JAX is loaded, because it is tracing

        for output in outputs:
            marked(output, op, name)
