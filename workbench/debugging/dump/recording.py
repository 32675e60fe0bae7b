"""Records the operations of a thread while its function is dumped."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Final, Protocol

import numpy as np

from workbench.backends.from_gpu import fetched
from workbench.backends.numpy import view
from workbench.debugging.dump.dump_file import DumpFile, dump_file
from workbench.debugging.dump.facts import facts
from workbench.debugging.dump.options import DumpOptions
from workbench.runtime.comm.failure_report import is_users
from workbench.runtime.user_code.notebook_cells import file_name

_MOST_FRAMES: Final = 30
Called = Iterable[tuple[str, int, str]]
"""File, line and function of calls."""


@dataclass(slots=True)
class Recording:
    """What a thread records.

    Attributes:
      file: The destination.
      host: Name of the host.
      replica: The replica, -1 in the notebook.
      step: The user's step, -1 outside steps.
    """

    file: DumpFile
    host: str
    replica: int
    step: int
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def add(self, op: str, outputs: Sequence[Any], name: str = "", called_from: Called = ()) -> None:
        """Records the results of an operation.

        Args:
          op: Name of the operation, such as "matmul".
          outputs: The results; those that are not arrays are ignored.
          name: The name of the variable that is assigned.
          called_from: The calls that led to it, the innermost first; by default those of this thread.
        """
        options = self.file.options
        number = next(self._numbers)
        stack: tuple[str, ...] | None = None
        files: tuple[str, ...] = ()
        for index, output in enumerate(outputs):
            array = _array(output)
            if array is None or not options.wants(op, array.dtype):
                continue
            if stack is None:
                stack, files = users_lines(called_from or _calls(sys._getframe(1)))
            row = {
                "time": time.time(),
                "host": self.host,
                "replica": self.replica,
                "step": self.step,
                "number": number,
                "op": op,
                "name": name,
                "output": index,
                "line": stack[0] if stack else "",
                "stack": "\n".join(stack),
            }
            self.file.add(row | facts(array, options.mode), files)


class Recorder(Protocol):
    """What operations report to: a `Recording`, or a program that is being traced."""

    def add(self, op: str, outputs: Sequence[Any], name: str = "") -> None:
        """Records that an operation returned `outputs`; `name` is the variable that it assigned.

        Args:
          op: Name of the operation.
          outputs: Its results.
          name: Name of the variable, "" for none.
        """


class _Thread(threading.local):
    recording: Recorder | None = None


thread = _Thread()


@contextlib.contextmanager
def recording(options: DumpOptions, *, host: str, replica: int, step: int) -> Iterator[Recording]:
    """Records what this thread computes inside the block.

    Args:
      options: The options of the dump.
      host: Name of the host.
      replica: The replica, -1 in the notebook.
      step: The user's step, -1 outside steps.
    """
    outer = thread.recording
    file = dump_file(options)
    thread.recording = made = Recording(file, host, replica, step)
    try:
        try:
            with _jax_telling(made):
                yield made
        finally:
            thread.recording = outer
    except BaseException as error:  # the user's own error takes precedence
        try:
            _close_again(file)
        except Exception as failure:
            error.add_note(f"what was left of the dump was not written: {failure}")
        raise
    _close_again(file)


def _close_again(file: DumpFile) -> None:
    if file.ended:  # another thread did it in the meantime
        file.close()


def _jax_telling(recording: Recording) -> contextlib.AbstractContextManager[None]:
    """Records JAX operations inside the block, if JAX is loaded."""
    if "jax" not in sys.modules:
        return contextlib.nullcontext()
    from workbench.backends.jax.eager import told_operations

    def add(op: str, outputs: Sequence[Any], called_from: Called) -> None:
        recording.add(op, outputs, called_from=called_from)

    return told_operations(add, is_users)


def _array(output: Any) -> np.ndarray | None:
    if type(output) is np.ndarray:
        return output
    if not hasattr(output, "dtype") or not hasattr(output, "shape"):
        return None
    try:
        return view(fetched(output))
    except Exception:  # texts, and values that JAX is tracing
        return None


def _calls(frame: FrameType | None) -> Iterator[tuple[str, int, str]]:
    while frame is not None:
        yield frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name
        frame = frame.f_back


def users_lines(calls: Called) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The user's lines among calls, and their files."""
    users = [call for call in calls if is_users(call[0])][:_MOST_FRAMES]
    lines = [f"{os.path.basename(file_name(path))}:{line} in {name}" for path, line, name in users]
    return tuple(lines), tuple(dict.fromkeys(path for path, _, _ in users))
