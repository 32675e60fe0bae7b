"""Records as they lie in files, with the names of tf.io: checksums.

Names are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "crc32c": "checksums",
    "masked_crc32c": "checksums",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
