"""Carries any exception of a replica to the driver."""

from __future__ import annotations

import copy
import linecache
import os
import pickle
import sys
import sysconfig
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

from workbench import by_value, forks
from workbench.backends.users_line import PACKAGE, stands_in
from workbench.errors import ReplicaError, TracingError, WorkbenchError
from workbench.runtime.user_code.notebook_cells import with_cell_names, with_cells

_TEXT_LIMIT = 4_000
_TRACEBACK_LIMIT = 20_000
_PICKLE_LIMIT = 1_000_000
# linecache fails when two threads find the same file changed, as replicas of one process do after it is saved.
_reading_lines = forks.lock(threading.Lock())
_NOT_THE_USERS = (
    PACKAGE,
    "<frozen ",
    *dict.fromkeys(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib")),
)
# Other places of installed packages: for one user, by the Linux distribution, by `pip install --target`.
_INSTALLED = f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}"


@dataclass(frozen=True, slots=True)
class FailureReport:
    """One replica's failure, in a form that always pickles.

    Attributes:
      rank: The replica.
      type_name: Qualified name of the exception's class.
      text: Its message, cut to 4,000 characters.
      traceback: The replica's traceback with source lines, cut to 20,000 characters, without workbench's frames.
      pickled: The exception itself, or its class if only that can be pickled, or b"" if neither can.
      secondary: Whether it is only the effect of another replica's failure.
      overdue: Whether it reports that other replicas did not arrive in time.
    """

    rank: int
    type_name: str
    text: str
    traceback: str
    pickled: bytes
    secondary: bool
    overdue: bool = False


def report(
    rank: int, error: BaseException, *, secondary: bool = False, overdue: bool = False
) -> FailureReport:
    """Describes `error` without ever raising: it may be huge or unpicklable, and its `__str__` may raise.

    Args:
      rank: Rank of the replica.
      error: The error.
      secondary: Whether it is the effect of another replica's error.
      overdue: Whether it reports that other replicas did not arrive in time.
    """
    return FailureReport(
        rank=rank,
        type_name=f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins."),
        text=safe_text(error),
        traceback=_safe_traceback(error),
        pickled=_safe_pickle(error),
        secondary=secondary,
        overdue=overdue,
    )


def safe_text(error: BaseException) -> str:
    """Its message, cut to 4,000 characters, whatever its `__str__` does."""
    try:
        text = str(error)
    except Exception as failure:
        return f"<its __str__ raised {type(failure).__name__}>"
    return text if len(text) <= _TEXT_LIMIT else f"{text[:_TEXT_LIMIT]}… ({len(text):,} characters)"


def _safe_traceback(error: BaseException) -> str:
    """Formatted frames of user code, without calling the exception's own __str__; "" if there are none."""
    with _reading_lines:
        linecache.checkcache()
        summaries = traceback.extract_tb(error.__traceback__)
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    shown = [
        summary
        for summary, frame in zip(summaries, frames, strict=False)
        if not summary.filename.startswith(PACKAGE) and not stands_in(frame)
    ]
    text = "".join(traceback.format_list(shown))
    return text if len(text) <= _TRACEBACK_LIMIT else "…\n" + text[-_TRACEBACK_LIMIT:]


def _safe_pickle(error: BaseException) -> bytes:
    # Dask pickles an exception with its cause, which may not be picklable, and not every exception can be
    # recreated from its arguments.
    travellers: list[Callable[[], Any]] = [lambda: type(error)]
    if len(safe_text(error)) <= _TEXT_LIMIT:
        travellers = [
            lambda: error if isinstance(error, WorkbenchError) else copy.copy(error).with_traceback(None),
            lambda: _alone(error),
            *travellers,
        ]
    for traveller in travellers:
        try:
            data: bytes = by_value.dumps(traveller())
            pickle.loads(data)
        except Exception:
            continue
        if len(data) <= _PICKLE_LIMIT:
            return data
    return b""


def _alone(error: BaseException) -> BaseException:
    """A copy without cause and context.

    The error itself is unchanged, because replicas of one process may have raised it.
    """
    alone = copy.copy(error).with_traceback(None)
    alone.__cause__ = alone.__context__ = None
    return alone


def rebuild(failure: FailureReport, *, where: str = "", **fields: Any) -> WorkbenchError:
    """The error to raise in the driver: a ReplicaError that is also an instance of the user's exception type.

    Args:
      failure: What the replica reported.
      where: Where it happened, in words; by default the replica and the step.
      **fields: Fields of `WorkbenchError` that the driver knows (worker, pid, step, …).
    """
    original: BaseException | None = None
    kind: type[BaseException] | None = None
    if failure.pickled:
        try:
            travelled = pickle.loads(failure.pickled)
        except Exception:  # the class does not exist in this process
            pass
        else:
            original, kind = (
                (None, travelled) if isinstance(travelled, type) else (travelled, type(travelled))
            )
            _forget_frames(original)
    if isinstance(original, TracingError):
        return TracingError(with_cells(str(original)))  # the error shows a line, possibly of a cell
    step = fields.get("step", -1)
    where = where or f"replica {failure.rank}" + (f", step {step}" if step >= 0 else "")
    if isinstance(original, WorkbenchError):
        original.args = tuple(with_cell_names(a) if isinstance(a, str) else a for a in original.args)
        if failure.traceback:
            original.add_note(f"raised on {where}:\n{with_cells(failure.traceback)}")
        return original
    text = with_cell_names(failure.text)
    message = f"{failure.type_name} on {where}: {text}\n\n{with_cells(failure.traceback)}".rstrip()
    error = _error_class(kind)(message, replica=failure.rank, **fields)
    if original is not None:
        error.__cause__ = original
        error.__dict__.update({k: v for k, v in vars(original).items() if k not in error.__dict__})
        if isinstance(error, OSError) and isinstance(original, OSError):
            error.errno, error.strerror = original.errno, original.strerror
            error.filename = original.filename
    return error


def _forget_frames(error: BaseException | None) -> None:
    """Drops the frames that Dask pickles with an exception: each claims that its function begins at its line.

    With them, a traceback would show wrong source lines.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


def _error_class(kind: type[BaseException] | None) -> type[ReplicaError]:
    """ReplicaError combined with the user's class, so that `except ValueError` still catches it."""
    if kind is None or not issubclass(kind, Exception):
        return ReplicaError
    try:
        joined = type(
            f"ReplicaError[{kind.__name__}]", (ReplicaError, kind), {"__init__": ReplicaError.__init__}
        )
        joined("")
    except TypeError:
        return ReplicaError
    joined.__module__ = "workbench.errors"
    return joined


def is_users(file_name: str) -> bool:
    """Whether a file has the user's own code: not workbench's, Python's, or an installed package's."""
    return not (file_name.startswith(_NOT_THE_USERS) or any(folder in file_name for folder in _INSTALLED))


def user_place(frame: FrameType | None) -> str:
    """The innermost line of the user's own code, as "train.py:84 in step"; "" if there is none."""
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return ""
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno} in {frame.f_code.co_name}"


def python_stacks() -> str:
    """The Python stacks of all threads of this process, for `wb.diagnose()`."""
    import threading

    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = []
    for ident, frame in sys._current_frames().items():
        stack = "".join(traceback.format_stack(frame))
        parts.append(f"thread {names.get(ident, '?')} ({ident}):\n{stack}")
    return "\n".join(parts)
