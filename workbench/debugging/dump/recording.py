"""Where the operations of a thread are recorded, while its function is dumped."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Final

import numpy as np

from workbench.backends.from_gpu import fetched
from workbench.backends.numpy import view
from workbench.debugging.dump.dump_file import DumpFile, dump_file
from workbench.debugging.dump.facts import facts
from workbench.debugging.dump.options import DumpOptions
from workbench.runtime.comm.failure_report import is_users
from workbench.runtime.user_code.notebook_cells import file_name

_MOST_FRAMES: Final = 30


@dataclass(slots=True)
class Recording:
    """What a thread records.

    Attributes:
      file: Where it goes.
      host: Name of the host.
      replica: The replica, -1 in the notebook.
      step: The user's step, -1 outside of steps.
    """

    file: DumpFile
    host: str
    replica: int
    step: int
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def add(self, op: str, outputs: tuple[Any, ...], name: str = "") -> None:
        """Records what an operation gave.

        Args:
          op: Name of the operation, such as "matmul".
          outputs: Arrays; what is none is left out.
          name: Of the variable that is assigned.
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
                stack, files = _stack(sys._getframe(1))
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


class _Thread(threading.local):
    recording: Recording | None = None


thread = _Thread()


@contextlib.contextmanager
def recording(options: DumpOptions, *, host: str, replica: int, step: int) -> Iterator[Recording]:
    """Records what this thread computes meanwhile.

    Args:
      options: Of the dump.
      host: Name of the host.
      replica: The replica, -1 in the notebook.
      step: The user's step, -1 outside of steps.
    """
    outer = thread.recording
    thread.recording = made = Recording(dump_file(options), host, replica, step)
    try:
        yield made
    finally:
        thread.recording = outer


def _array(output: Any) -> np.ndarray | None:
    if type(output) is np.ndarray:
        return output
    if not hasattr(output, "dtype") or not hasattr(output, "shape"):
        return None
    try:
        return view(fetched(output))
    except Exception:  # texts, values that are being traced
        return None


def _stack(frame: FrameType | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The user's lines from the innermost outwards, and their files."""
    lines: list[str] = []
    files: list[str] = []
    while frame is not None and len(lines) < _MOST_FRAMES:
        code = frame.f_code
        if is_users(code.co_filename):
            lines.append(
                f"{os.path.basename(file_name(code.co_filename))}:{frame.f_lineno} in {code.co_name}"
            )
            files.append(code.co_filename)
        frame = frame.f_back
    return tuple(lines), tuple(dict.fromkeys(files))
