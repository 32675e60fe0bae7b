"""Starts and ends dumps in the notebook."""

from __future__ import annotations

import contextlib
import json
import os
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from workbench.backends.users_line import warn
from workbench.debugging.dump.dump_file import close_all, close_file, dump_file, known_file
from workbench.debugging.dump.options import DumpOptions, dump_options
from workbench.errors import FailedPreconditionError, WrongType
from workbench.io.storage import absolute

DEFAULT_MODE = "NO_TENSOR"
DEFAULT_BUFFER = 1000


class Dumping(Protocol):
    """Runs functions that are dumped elsewhere, such as a strategy."""

    def flush_dumps(self, root: str, *, sources: bool, executions: bool, close: bool) -> None:
        """Makes its replicas write what they keep; see `flush_here`."""


class DebugEventsWriter:
    """Writes what processes keep of a dump; `enable_dump_debug_info` returns it.

    Its method names are those of the reference.
    """

    def __init__(self, options: DumpOptions) -> None:
        """Writes the facts about the dump itself."""
        self.options = options
        self._elsewhere: weakref.WeakSet[Any] = weakref.WeakSet()
        dump_file(options)
        dtypes = options.dtypes if isinstance(options.dtypes, tuple | None) else repr(options.dtypes)
        described = {
            "format": 1,
            "mode": options.mode,
            "circular_buffer_size": options.buffer,
            "op_regex": options.op_regex,
            "tensor_dtypes": dtypes,
            "began": time.time(),
        }
        Path(options.root, "dump.json").write_text(json.dumps(described), encoding="utf-8")

    def FlushNonExecutionFiles(self) -> None:
        """Writes copies of the source files that were involved."""
        self._flush(sources=True, executions=False, close=False)

    def FlushExecutionFiles(self) -> None:
        """Writes the operations that are kept in circular buffers, on all replicas."""
        self._flush(sources=False, executions=True, close=False)

    def close(self) -> None:
        """Writes everything, and ends the dump."""
        self._flush(sources=True, executions=True, close=True)

    def runs_on(self, elsewhere: Dumping) -> None:
        """Registers a place that also runs functions to dump."""
        self._elsewhere.add(elsewhere)

    def _flush(self, *, sources: bool, executions: bool, close: bool) -> None:
        what = {"sources": sources, "executions": executions, "close": close}
        with contextlib.ExitStack() as stack:  # every replica writes, even if another one cannot
            stack.callback(flush_here, self.options.root, **what)
            for each in list(self._elsewhere):
                stack.callback(each.flush_dumps, self.options.root, **what)


_writer: DebugEventsWriter | None = None


def current_writer() -> DebugEventsWriter | None:
    """The writer of the current dump, None without one."""
    return _writer


def flush_here(root: str, *, sources: bool, executions: bool, close: bool) -> None:
    """Writes what this process keeps.

    Args:
      root: The folder of the dump.
      sources: Whether to write copies of source files.
      executions: Whether to write operations.
      close: Whether to write everything, and end the dump.
    """
    if close:
        close_file(root)
        return
    file = known_file(root)
    if file is not None and sources:
        file.flush_sources()
    if file is not None and executions:
        file.flush()


def end_here() -> None:
    """Ends every dump in this process, except, in the notebook's process, the current one."""
    close_all(besides="" if _writer is None else _writer.options.root)


def enable_dump_debug_info(
    dump_root: str | os.PathLike[str],
    tensor_debug_mode: str = DEFAULT_MODE,
    circular_buffer_size: int = DEFAULT_BUFFER,
    op_regex: str | None = None,
    tensor_dtypes: Sequence[Any] | Callable[[np.dtype[Any]], bool] | None = None,
) -> DebugEventsWriter:
    """Dumps the results of operations into a folder (as tf.debugging.experimental.enable_dump_debug_info).

    From the next `strategy.run` on, this records NumPy operations on arguments of replica functions, of functions that
    a `ClusterCoordinator` schedules (their number is the step) and of functions of local datasets, and on values
    computed from these; all JAX operations in these functions; results of collectives; and values assigned to
    variables, also on GPUs. Each record has its line, stack, replica and step. `wb.open_dump(dump_root)` shows them,
    without executing anything. NumPy operations on scalars or on arrays that a function creates itself, and operations
    of other libraries such as CuPy, cannot be recorded.

    Functions of a `TPUStrategy` are compiled again, and return the results of their operations as additional results,
    which stay in memory until the step ends. `op_regex` leaves out what is not needed; "NO_TENSOR" and "SHAPE" keep
    nothing. The dump includes operations inside the user's own `jax.jit` functions; a function of `jax.numpy` is one
    operation, and so is a loop or branch of `jax.lax`.

    Args:
      dump_root: The folder. If hosts do not share it, each writes into its own folder of that name.
      tensor_debug_mode: How much of each array: "NO_TENSOR" nothing; "CURT_HEALTH" whether there are NaN or infinity,
        "CONCISE_HEALTH" how many, "FULL_HEALTH" also how many elements are negative, zero and positive, of floating
        dtypes; "SHAPE" dtype and shape; "FULL_NUMERICS" also minimum, maximum, mean and variance; "FULL_TENSOR" all
        elements.
      circular_buffer_size: How many of the newest results each process keeps until `FlushExecutionFiles`, or until
        dumping ends; with 0 or less, it writes each immediately.
      op_regex: Only operations whose name this matches from the beginning, such as "^(matmul|log)$".
      tensor_dtypes: Only arrays of these dtypes: dtypes or names, or a function from dtype to bool.

    Returns:
      A writer, whose `FlushNonExecutionFiles` and `FlushExecutionFiles` write what is kept. A dump into another folder
      ends once this one has begun; a warning reports what cannot be written of it.

    Raises:
      ValueError: for an unknown mode, or if a dump into the same folder with other options is active.
      TypeError: for a root that is not a path, a size that is not a number, or invalid dtypes.
      CaptureError: for a function of dtypes that cannot be sent to workers.
      FailedPreconditionError: if the folder cannot be created or written.
    """
    global _writer
    if not isinstance(dump_root, str | os.PathLike) or not os.fspath(dump_root):
        raise WrongType(f"dump_root is the path of a folder, got {dump_root!r}")
    options = dump_options(
        absolute(dump_root),
        mode=tensor_debug_mode,
        buffer=circular_buffer_size,
        op_regex=op_regex,
        dtypes=tensor_dtypes,
    )
    if _writer is not None and _writer.options.root == options.root:
        if _writer.options != options:
            raise ValueError(
                f"a dump into {options.root!r} is already running with {_writer.options}, got {options}; end it first: "
                f"wb.debugging.experimental.disable_dump_debug_info()"
            )
        return _writer
    former = _writer
    try:
        _writer = DebugEventsWriter(options)
    except OSError as error:
        close_file(options.root)
        raise FailedPreconditionError(
            f"the folder of the dump {options.root!r} cannot be written: {error}; give a folder, which need not exist, "
            f"where this process may write"
        ) from error
    if former is not None:  # only now, because a failure to write it concerns no other dump
        try:
            former.close()
        except Exception as error:
            warn(
                f"the dump into {former.options.root!r} has ended, and what was left of it was not written: "
                f"{type(error).__name__}: {error}",
                RuntimeWarning,
            )
    return _writer


def disable_dump_debug_info() -> None:
    """Writes the rest of a dump, and ends it (as tf.debugging.experimental.disable_dump_debug_info).

    It waits at most a minute for functions that a `ClusterCoordinator` scheduled before, and warns if they take longer,
    or if a worker cannot write. A strategy that closes earlier also warns about the latter.
    """
    global _writer
    ended, _writer = _writer, None
    if ended is not None:
        ended.close()
