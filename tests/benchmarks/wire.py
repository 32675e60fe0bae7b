"""What the connections of a server have sent so far, as Linux counts it: after compression, with every header."""

from __future__ import annotations

import re
import subprocess

_SENT = re.compile(r"\S+ +\d+ +\d+ +\S+ +(?P<peer>\S+) .*\bbytes_sent:(?P<bytes>\d+)")


def sent_bytes(port: int) -> dict[str, int]:
    """Address of the other end -> bytes, for each connection of the server at a port of this machine.

    Raises:
      FileNotFoundError: if there is no program `ss`.
    """
    told = subprocess.run(
        ["ss", "-tinHO", f"sport = :{port}"], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    return {found["peer"]: int(found["bytes"]) for line in told.splitlines() if (found := _SENT.match(line))}


def sent_between(before: dict[str, int], after: dict[str, int]) -> int:
    """What connections that are still there, or are new, have sent in between."""
    return sum(sent - before.get(peer, 0) for peer, sent in after.items())
