"""Programs that tests run for what they print."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def output_of(
    command: Sequence[str | Path],
    *,
    environment: Mapping[str, str],
    timeout_seconds: float,
    folder: Path | None = None,
) -> str:
    """What a program prints on either stream, without colours.

    Raises:
      AssertionError: if it fails; shows what it printed.
    """
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_seconds,
    )
    assert done.returncode == 0, done.stdout
    return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
