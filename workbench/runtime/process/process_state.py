"""The state of a process according to the kernel."""

from __future__ import annotations

from pathlib import Path


def process_state(pid: int) -> str:
    """State letter of a process of this machine ("R", "S", "T", "Z", …), "" if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[0]
