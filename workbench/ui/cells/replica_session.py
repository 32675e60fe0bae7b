"""A replica's own namespace, in which cells run: the replica's part of `%%replica`."""

from __future__ import annotations

import ast
import builtins
import io
import linecache
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TextIO

from workbench import forks
from workbench.backends.users_line import PACKAGE
from workbench.distribute.default import get_replica_context
from workbench.errors import FailedPreconditionError
from workbench.runtime.replica.env import current_env

if TYPE_CHECKING:
    from workbench.runtime.replica.env import ReplicaEnv

KEY: Final = "namespace of replica cells"
_MAX_TEXT: Final = 100_000
_STREAMS: Final = ("stdout", "stderr")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a cell on one replica.

    Attributes:
      replica: Its number.
      ran: Whether this replica ran the cell.
      stdout: What the replica's thread printed.
      stderr: Likewise.
      result: The value of the cell's last expression as text, "" if that is None or there is none.
      error: Its exception in one line, or "".
      traceback: The frames of the cell and below, and the exception.
    """

    replica: int
    ran: bool = False
    stdout: str = ""
    stderr: str = ""
    result: str = ""
    error: str = ""
    traceback: str = ""


@dataclass(slots=True)
class Session:
    """What a replica keeps between cells. It is modified in place, because a failed cell keeps what it has assigned.

    Attributes:
      namespace: The cells' globals.
      outcome: The outcome of the latest cell.
    """

    namespace: dict[str, Any]
    outcome: Outcome = field(default_factory=lambda: Outcome(-1))


def prepare(env: ReplicaEnv) -> bool:
    """Creates the replica's namespace, in a separate step that is never undone. Returns whether it is new."""
    session = env.store.get(KEY)
    if session is not None:
        session.outcome = Outcome(env.rank)
        return False
    import workbench

    env.store[KEY] = Session(
        {"__name__": "__main__", "__builtins__": builtins, "wb": workbench, "input": _input},
        Outcome(env.rank),
    )
    return True


def _input(prompt: object = "") -> str:
    """Replaces Python's `input`, because workers have no terminal to read from."""
    raise FailedPreconditionError(
        f"input({prompt!r}): nobody can answer on a replica. Ask in the notebook, and pass the answer on: "
        f"%%replica --push NAME"
    )


def execute(source: str, filename: str, chosen: tuple[int, ...], *, push: dict[str, Any]) -> None:
    """Runs a cell in the namespace of each chosen replica, and leaves its outcome there; the others do nothing.

    Args:
      source: Valid Python code.
      filename: The cell's name in tracebacks.
      chosen: Replicas that run it.
      push: Values to assign in the namespace first.

    Raises:
      BaseException: what the cell raised, so that the step fails and its changes to variables are undone everywhere.
    """
    env = current_env()
    assert env is not None
    if env.rank not in chosen:
        return
    session: Session = env.store[KEY]
    session.namespace.update(push, ctx=get_replica_context())
    printed = {stream: io.StringIO() for stream in _STREAMS}
    result, error, told = "", "", ""
    try:
        with _captured(printed):
            result = _run(source, filename, session.namespace)
    except BaseException as raised:
        error = "".join(traceback.format_exception_only(raised)).strip()
        told = _told(raised, filename)
        raise
    finally:
        out, err = (_cut(printed[stream].getvalue()) for stream in _STREAMS)
        session.outcome = Outcome(env.rank, True, out, err, result, error, told)


def collect(env: ReplicaEnv) -> Outcome:
    """The outcome of the latest cell; for a replica that was replaced since, that it did not run."""
    session = env.store.get(KEY)
    return Outcome(env.rank) if session is None else session.outcome


def _run(source: str, filename: str, namespace: dict[str, Any]) -> str:
    lines = source.splitlines(keepends=True)
    # No modification time, so linecache does not look for it on disk.
    linecache.cache[filename] = len(source), None, lines, filename
    tree = ast.parse(source, filename)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, filename, "exec", dont_inherit=True), namespace)
    if not isinstance(last, ast.Expr):
        return ""
    value = eval(compile(ast.Expression(last.value), filename, "eval", dont_inherit=True), namespace)
    if value is None or _ends_with_semicolon(source, last):
        return ""
    namespace["_"] = value
    return _cut(repr(value))


def _ends_with_semicolon(source: str, last: ast.Expr) -> bool:
    """Whether a semicolon suppresses the value of the last expression, as in notebooks."""
    assert last.end_lineno is not None
    line = source.encode().splitlines()[last.end_lineno - 1]
    return line[last.end_col_offset :].lstrip().startswith(b";")


def _told(error: BaseException, filename: str) -> str:
    """The traceback from the cell's first frame on, without workbench's own frames."""
    frames = traceback.extract_tb(error.__traceback__)
    first = next((at for at, frame in enumerate(frames) if frame.filename == filename), len(frames))
    shown = [frame for frame in frames[first:] if not frame.filename.startswith(PACKAGE)]
    said = traceback.format_exception_only(error)
    return _cut(
        "".join(["Traceback (most recent call last):\n", *traceback.format_list(shown), *said]).rstrip()
    )


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}… ({len(text):,} characters)"


class _ThreadOutput(io.TextIOBase):
    """Replaces a stream of the process: keeps what a capturing thread prints, and passes on everything else."""

    def __init__(self, original: TextIO) -> None:
        super().__init__()
        self.original = original
        self.kept: dict[int, io.StringIO] = {}

    def write(self, text: str) -> int:
        """As `io.TextIOBase.write`."""
        kept = self.kept.get(threading.get_ident())
        return self.original.write(text) if kept is None else kept.write(text)

    def flush(self) -> None:
        """As `io.IOBase.flush`."""
        if threading.get_ident() not in self.kept:
            self.original.flush()

    def writable(self) -> bool:
        """As `io.IOBase.writable`."""
        return True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)


# Replicas share their process, so only one thread at a time may replace or restore its streams.
_capturing = forks.lock(threading.Lock())


@contextmanager
def _captured(printed: dict[str, io.StringIO]) -> Iterator[None]:
    """Captures what the calling thread prints."""
    thread = threading.get_ident()
    with _capturing:
        for stream, kept in printed.items():
            current = getattr(sys, stream)
            if not isinstance(current, _ThreadOutput):
                current = _ThreadOutput(current)
                setattr(sys, stream, current)
            current.kept[thread] = kept
    try:
        yield
    finally:
        with _capturing:
            for stream in printed:
                current = getattr(sys, stream)
                if isinstance(current, _ThreadOutput):
                    current.kept.pop(thread, None)
                    if not current.kept:
                        setattr(sys, stream, current.original)
