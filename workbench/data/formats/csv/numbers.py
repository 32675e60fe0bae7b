"""Parses numbers like the reference, that is, like C, where Arrow differs.

Arrow rejects a plus before whole numbers, accepts 0x10 as a whole number but not as a float, and knows fewer blanks.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa

_BLANKS: Final = " \t\n\v\f\r"
_WHOLE: Final = "^[+-]?[0-9]+$"
_HEXADECIMAL: Final = "^[+-]?0[xX]"


def may_be_hexadecimal(text: bytes) -> bool:
    """Whether Arrow may accept a text that is not a whole number."""
    return b"0x" in text or b"0X" in text


def may_be_refused(text: bytes) -> bool:
    """Whether Arrow may reject a number."""
    return any(mark in text for mark in (b"+", b"\v", b"\f"))


def is_number(kind: pa.DataType) -> bool:
    """Whether this module reads columns of a type."""
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def as_numbers(texts: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Converts a column of texts to numbers.

    Raises:
      pyarrow.ArrowInvalid: if a text is not a number, or does not fit.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pc.ascii_trim(texts, _BLANKS)
    if pa.types.is_integer(kind):
        if not pc.all(pc.match_substring_regex(texts, _WHOLE)).as_py() and texts.null_count < len(texts):
            raise pa.ArrowInvalid(f"a text cannot be read as {kind}")
        return pc.cast(pc.ascii_ltrim(texts, "+"), kind)
    found = pc.fill_null(pc.match_substring_regex(texts, _HEXADECIMAL), False)
    if not pc.any(found).as_py():
        return pc.cast(texts, kind)
    numbers = pc.cast(pc.if_else(found, pa.scalar(None, texts.type), texts), kind).combine_chunks()
    read = pa.array([_hexadecimal(text) for text in texts.filter(found).to_pylist()], pa.float64())
    mask = found.combine_chunks()
    return pa.chunked_array([pc.replace_with_mask(numbers, mask, pc.cast(read, kind, safe=False))])


def looked_up(texts: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Converts a column of texts if they are numbers: whole ones, or of `kind`, which Arrow inferred."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pc.any(pc.match_substring_regex(pc.ascii_trim(texts, _BLANKS), _HEXADECIMAL)).as_py():
        return texts
    for tried in (pa.int64(), kind):
        with contextlib.suppress(pa.ArrowInvalid):
            return as_numbers(texts, tried)
    return texts


def _hexadecimal(text: str) -> float:
    import pyarrow as pa

    try:
        return float.fromhex(text)
    except OverflowError:
        return float("-inf" if text.startswith("-") else "inf")
    except ValueError as error:
        raise pa.ArrowInvalid(f"{text!r:.60} is not a number") from error
