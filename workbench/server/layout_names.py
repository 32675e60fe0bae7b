"""The names of the layouts saved in JupyterLab, stored where this user's kernels find them."""

from __future__ import annotations

import json
import os
import secrets
import stat
from collections.abc import Sequence
from typing import Final

from workbench.errors import InvalidArgumentError
from workbench.runtime.deploy.registry import Registry

MAX_NAMES: Final = 64
MAX_LENGTH: Final = 40
_FILE: Final = "layouts.json"
_MAX_BYTES: Final = 64 * 1024


def keep(names: Sequence[object], registry: Registry) -> None:
    """Replaces the stored names.

    Raises:
      InvalidArgumentError: if they are not names.
      OSError: if the registry's folder cannot be used.
    """
    if len(names) > MAX_NAMES or not all(_is_name(name) for name in names):
        raise InvalidArgumentError(f"expected at most {MAX_NAMES} names of at most {MAX_LENGTH} characters")
    target = registry.ensure_folder() / _FILE
    hidden = target.with_suffix(f".{secrets.token_hex(4)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(hidden, flags, 0o600), "w", encoding="utf-8") as file:
            json.dump(names, file)
        os.replace(hidden, target)  # readers see either the old names or the new ones
    finally:
        hidden.unlink(missing_ok=True)


def kept(registry: Registry) -> tuple[str, ...]:
    """The last stored names; empty unless only this user can have written them."""
    try:
        descriptor = os.open(
            registry.folder / _FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        )
    except OSError:
        return ()
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o077:
            return ()
        try:
            names = json.loads(file.read(_MAX_BYTES))
        except (ValueError, RecursionError):
            return ()
    return tuple(name for name in names if _is_name(name)) if isinstance(names, list) else ()


def _is_name(name: object) -> bool:
    return isinstance(name, str) and 0 < len(name) <= MAX_LENGTH and name.isprintable()
