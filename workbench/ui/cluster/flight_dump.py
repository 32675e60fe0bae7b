"""Writes a diagnosis to a bounded, owner-only file, never through a link, and without apparent secrets."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
from pathlib import Path
from typing import Any, Final

from workbench.errors import StorageFull

MAX_BYTES: Final = 32 << 20
_MAX_STACKS: Final = 200_000
_SECRET: Final = re.compile(
    r"(?i)\b(\w*(?:token|secret|passw(?:or)?d|api_?key|credential)\w*\s*[=:]\s*)([^\s,;)\]}]+)"
)


def write_dump(details: dict[str, Any], path: str | os.PathLike[str]) -> Path:
    """Writes `Diagnosis.details` as JSON.

    The file is new, so that nobody can have prepared it, and only its owner can read it. It has at most 32 MiB: if
    necessary, the oldest collectives are left out, then the stacks.

    Args:
      details: The diagnosis.
      path: The file's path; its folder must exist.

    Raises:
      FileExistsError: if there is anything at `path`, even a link.
      StorageFull: if there is no space; nothing is left behind.
    """
    where = Path(path)
    data = _bounded(details)
    descriptor = os.open(where, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    except OSError as error:
        with contextlib.suppress(OSError):
            where.unlink()
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull(
                f"no space left for the dump {where} of {len(data):,} bytes; free some"
            ) from error
        raise
    return where


def _bounded(details: dict[str, Any]) -> bytes:
    for collectives, stacks in ((2000, _MAX_STACKS), (200, _MAX_STACKS), (20, _MAX_STACKS), (0, 2000)):
        data = json.dumps(_cut(details, collectives, stacks), indent=1, default=str).encode()
        if len(data) <= MAX_BYTES:
            return data
    return json.dumps({"run": details["run"], "verdict": details["verdict"]}).encode()


def _cut(details: dict[str, Any], collectives: int, stacks: int) -> dict[str, Any]:
    groups = [
        group
        | {
            "replicas": [
                replica | {"flight": replica["flight"][-collectives:] if collectives else []}
                for replica in group["replicas"]
            ]
        }
        for group in details["groups"]
    ]
    workers = [
        worker | {"stacks": _SECRET.sub(r"\1…", worker["stacks"])[:stacks]} for worker in details["workers"]
    ]
    return details | {"groups": groups, "workers": workers}
