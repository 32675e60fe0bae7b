"""A notebook on one of the hosts, which a test asks to do things."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from tests.own_cluster import ROOT

PATIENCE_SECONDS = 60.0


class Driver:
    """The notebook's end of `tests.network.driver`."""

    def __init__(
        self,
        inside: tuple[str, ...],
        address: str,
        files: Mapping[str, str],
        minimum: int,
        environment: Mapping[str, str] | None = None,
        *,
        module: str = "tests.network.driver",
    ) -> None:
        """Starts it, and returns when it has connected.

        Args:
          inside: What to put before its command, see `TwoHosts`.
          address: The address of the scheduler; "" for the one that TF_CONFIG leads to.
          files: For TLS, see `certificates`; none for a cluster of `workbench join`.
          minimum: `minimum_replicas` of its connection, 0 for none.
          environment: Further variables.
          module: What runs.
        """
        command = [
            *inside,
            sys.executable,
            "-m",
            module,
            address,
            str(minimum),
            *files.values(),
        ]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
        )
        assert self.answer()["ready"]

    def ask(self, command: str) -> dict[str, Any]:
        """What comes of a command: "value", or "type" and "error", and "seconds"."""
        self.tell(command)
        return self.answer()

    def tell(self, command: str) -> None:
        """Has it begin with a command."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()

    def answer(self, patience_seconds: float = PATIENCE_SECONDS) -> dict[str, Any]:
        """What comes of the command; see `ask`."""
        # Turns a hang into an end of the output.
        watchdog = threading.Timer(patience_seconds, self._process.kill)
        watchdog.start()
        try:
            assert self._process.stdout is not None
            line = self._process.stdout.readline()
        finally:
            watchdog.cancel()
        assert line, "hang, or the driver has ended"
        found: dict[str, Any] = json.loads(line)
        return found

    def until(self, command: str, holds: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        """Asks until the answer is such."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holds(answer := self.ask(command)):
            assert time.monotonic() < deadline, f"{what} did not happen: {answer}"
        return answer

    def close(self) -> None:
        """Ends it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        finally:
            self._process.kill()
            self._process.wait(10)
            assert self._process.stdout is not None
            self._process.stdout.close()


def right(answer: dict[str, Any]) -> dict[str, Any]:
    """What "work" of `tests.network.updates` gave, which must be exact."""
    assert not answer["error"], answer
    assert answer["value"]["right"], answer
    assert answer["value"]["seen by workers"] == [], answer  # nothing reads what only one side has
    return dict(answer["value"])
