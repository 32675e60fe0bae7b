"""What the Jupyter servers of tests write about themselves."""

from __future__ import annotations

import json
import select
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any


def announced(process: subprocess.Popen[Any], runtime: Path, log: Path, *, seconds: float) -> dict[str, Any]:
    """Waits for the file that a server writes, and until it listens, which may be a moment later.

    Args:
      process: The server.
      runtime: Its folder of files of running servers, which need not be there yet.
      log: What the server has said; an error shows it.
      seconds: How long to wait.

    Returns:
      What is in the file, such as "port" and "base_url".

    Raises:
      RuntimeError: If the server ends, or does not listen in time.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        for file in runtime.glob("jpserver-*.json"):
            # The file is being written, or the port, which was free, is not open yet.
            with suppress(ValueError, ConnectionRefusedError):
                told: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
                socket.create_connection(("127.0.0.1", told["port"]), timeout=seconds).close()
                return told
        select.select([], [], [], 0.05)
    raise RuntimeError("the Jupyter server did not start:\n" + log.read_text(encoding="utf-8"))
