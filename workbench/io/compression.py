"""Names of compressions, and their names in zlib."""

from __future__ import annotations

from workbench.arguments import text
from workbench.errors import InvalidArgumentError

WINDOW_BITS = {"GZIP": 31, "ZLIB": 15}


def check_compression(compression_type: str | None) -> str:
    """The compression's name, "" for none.

    Raises:
      InvalidArgumentError: if the name is unknown.
    """
    name = "" if compression_type is None else text(compression_type, "compression_type")
    if name and name not in WINDOW_BITS:
        raise InvalidArgumentError(
            f"unknown compression_type {compression_type!r}; use 'GZIP', 'ZLIB', or '' for none"
        )
    return name
