"""Where CSV records end: cuts text into pieces of whole records, which can be parsed alone."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Final

import numpy as np

from workbench.data.structure import Array
from workbench.errors import DataLossError, InvalidArgumentError

MOST_RECORD_BYTES: Final = 1 << 26
"""A longer record counts as an unclosed quotation mark."""
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


def whole_records(blocks: Iterator[bytes], quote: str, path: str) -> Iterator[bytes]:
    """The same text in pieces that end where a record ends.

    Args:
      blocks: The content of a file.
      quote: The quotation mark, or "" for none. Line ends between two of them are part of a field.
      path: The path of the file, for errors.

    Raises:
      DataLossError: if the last quotation mark is never closed, or a record is longer than 64 MiB.
    """
    mark = quote.encode()
    rest, line, first = b"", 1, True
    for block in blocks:
        text = rest + block
        if first and len(text) >= len(_BYTE_ORDER_MARK):
            text, first = text.removeprefix(_BYTE_ORDER_MARK), False
        end = _last_record_end(text, mark)
        if end:
            yield text[:end]
            line += text.count(b"\n", 0, end)
        rest = text[end:]
        if len(rest) > MOST_RECORD_BYTES:
            raise DataLossError(
                f"{path!r}: the record at line {line} has no end within {MOST_RECORD_BYTES >> 20} MiB; "
                + _unclosed(quote),
                file=path,
            )
    if mark and rest.count(mark) % 2:
        raise DataLossError(
            f"{path!r}: the record at line {line} ends inside quotation marks; " + _unclosed(quote), file=path
        )
    if rest:
        yield rest


def record_ends(text: bytes, quote: str) -> Array:
    """Where each record of a piece ends, after its line end; the last value is `len(text)`."""
    codes = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(codes == ord("\n"))
    if quote and quote.encode() in text:
        marks = np.flatnonzero(codes == ord(quote))
        ends = ends[np.searchsorted(marks, ends) % 2 == 0]
    return np.union1d(ends + 1, len(text))


def first_record(text: bytes) -> int:
    """Where the first non-empty line begins: readers skip empty lines."""
    return len(text) - len(text.lstrip(b"\r\n"))


def fields_of(record: bytes, delimiter: str, quote: str) -> list[str]:
    """The fields of one record, as text.

    Args:
      record: The bytes of the record.
      delimiter: The character between fields.
      quote: The quotation mark; "" for none.

    Raises:
      InvalidArgumentError: if it is not UTF-8, or a field is longer than 128 KiB.
    """
    try:
        text = io.StringIO(record.decode(), newline="")
        if quote:
            return next(csv.reader(text, delimiter=delimiter, quotechar=quote), [])
        return next(csv.reader(text, delimiter=delimiter, quoting=csv.QUOTE_NONE), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidArgumentError(f"its record {record[:60]!r} cannot be read: {error}") from error


def _last_record_end(text: bytes, mark: bytes) -> int:
    end = text.rfind(b"\n") + 1
    if not mark or not end:
        return end
    inside = text.count(mark, 0, end) % 2
    while inside and end:
        before = text.rfind(b"\n", 0, end - 1) + 1
        inside = (inside + text.count(mark, before, end)) % 2
        end = before
    return end


def _unclosed(quote: str) -> str:
    return (
        f"the file is cut off, or {quote!r} is not a quotation mark in it: then give quote='' (use_quote_delim=False)"
        if quote
        else "it is not a CSV file"
    )
