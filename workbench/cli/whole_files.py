"""Files that commands write: atomically, with a digest that identifies a command's own files."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def put(target: Path, content: bytes) -> None:
    """Replaces `target` atomically: after an interrupt, there is the old file or the new one."""
    part = target.with_name(f".{target.name}.part-{os.getpid()}")
    try:
        part.write_bytes(content)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def digest(content: bytes) -> str:
    """SHA-256, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()
