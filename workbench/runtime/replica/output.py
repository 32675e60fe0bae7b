"""Sends the output of replicas to the notebook cell as `[replica 1] …`."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any, TextIO

from workbench.runtime.replica.env import current_env
from workbench.telemetry.formatting import encodable, shorten

_MAX_LINE = 10_000
# JAX's text for a traced value, which has no number.
_TRACED = re.compile(r"\w*Tracer\([^()]*\)|Traced<[^<>]*>(with<.*>)?")


class ReplicaOutput(io.TextIOBase):
    """Stands in for sys.stdout or sys.stderr: lines of replicas go to `write_line`, the rest to the original.

    Attributes:
      original: The stream that it replaces.
    """

    def __init__(self, original: TextIO, stream: str, write_line: Callable[[int, str, str], None]) -> None:
        super().__init__()
        self.original = original
        self._stream = stream
        self._write_line = write_line
        self._partial: dict[int, str] = {}

    def write(self, text: str) -> int:
        """As `io.TextIOBase.write`."""
        env = current_env()
        if env is None:
            return self.original.write(text)
        rank, shown = env.rank_of_output(self._stream), text
        if env.traced:
            shown = _TRACED.sub("(a traced value: jax.debug.print shows values)", text)
        pending = self._partial.pop(rank, "") + encodable(shown)
        *lines, rest = pending.split("\n")
        for line in lines:
            self._write_line(rank, self._stream, shorten(line, _MAX_LINE))
        if len(rest) > _MAX_LINE:
            self._write_line(rank, self._stream, shorten(rest, _MAX_LINE))
        elif rest:
            self._partial[rank] = rest
        return len(text)

    def flush(self) -> None:
        """Sends the calling replica's unfinished line."""
        env = current_env()
        if env is None or env.traced:
            self.original.flush()
            return
        rest = self._partial.pop(env.rank, "")
        if rest:
            self._write_line(env.rank, self._stream, rest)

    def writable(self) -> bool:
        """As `io.IOBase.writable`."""
        return True

    def isatty(self) -> bool:
        """As `io.IOBase.isatty`."""
        return self.original.isatty()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)
