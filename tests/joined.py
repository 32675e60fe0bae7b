"""Tasks that join by `workbench join`, each in a process of its own, also on hosts of their own."""

from __future__ import annotations

import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.own_cluster import ROOT

PATIENCE_SECONDS = 60.0


def free_address() -> str:
    """An address on loopback that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


class JoinedTask:
    """A process of `workbench join`.

    Attributes:
      lines: What it has said so far.
    """

    def __init__(
        self,
        *arguments: str,
        secret_file: Path,
        environment: Mapping[str, str] | None = None,
        inside: Sequence[str] = (),
    ) -> None:
        """Starts it.

        Args:
          arguments: The arguments of the command.
          secret_file: Where its secret is, or shall be.
          environment: Further variables.
          inside: What to put before its command, such as ("ip", "netns", "exec", "a").
        """
        variables = {**os.environ, "PYTHONPATH": str(ROOT), "WORKBENCH_SECRET_FILE": str(secret_file)}
        variables |= {"TMPDIR": "/tmp"} if inside else {}
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [*inside, sys.executable, "-m", "workbench", "join", *arguments],
            env=variables | dict(environment or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            start_new_session=True,
        )
        self._said: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def says(self, part: str, seconds: float = PATIENCE_SECONDS) -> str:
        """The next line with `part` in it, which comes within so many seconds."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                line = self._said.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"{part!r} was not said within {seconds:.0f} s: {self.lines}") from None
            assert line is not None, f"the task has ended, and has not said {part!r}: {self.lines}"
            if part in line:
                return line

    def interrupt(self) -> int:
        """Ctrl-C; gives the exit status."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(PATIENCE_SECONDS)

    def close(self) -> None:
        """Ends it, however it is."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(10)
        self._reader.join(10)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip())
            self._said.put(line.rstrip())
        self._said.put(None)
