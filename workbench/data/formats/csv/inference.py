"""What a CSV dataset must know about its files when it is created: names and types of columns."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from workbench.backends.numpy import STRING
from workbench.data.formats.csv.records import fields_of, first_record, record_ends, whole_records
from workbench.data.sources.compressed import DEFAULT_BLOCK_BYTES, blocks
from workbench.errors import InvalidArgumentError

CSV_TYPES: Final = [np.dtype(name) for name in ("int32", "int64", "float32", "float64")]
"""The types to try, in this order, before text."""


class CsvHeads:
    """Records of files that are read while the dataset is created."""

    def __init__(self, paths: Sequence[str], delimiter: str, quote: str, compression: str) -> None:
        self._paths = paths
        self._delimiter = delimiter
        self.quote = quote
        self.compression = compression

    def header(self) -> list[str]:
        """The names in the header of the first file.

        Raises:
          InvalidArgumentError: if a file is empty, or has another header.
        """
        headers = [next(self._fields(path), []) for path in self._paths]
        for path, found in zip(self._paths, headers, strict=True):
            if not found:
                raise InvalidArgumentError(f"{path!r} is empty: it has no header")
            if found != headers[0]:
                raise InvalidArgumentError(
                    f"{path!r} has columns {', '.join(found)}, the first file {', '.join(headers[0])}; files "
                    "that are read together have the same header"
                )
        return headers[0]

    def rows(self, header: bool, width: int) -> Iterator[list[str]]:
        """The fields of each row of all files.

        Raises:
          InvalidArgumentError: if a row has another number of fields than `width`.
        """
        for path in self._paths:
            for fields in itertools.islice(self._fields(path), int(header), None):
                if len(fields) != width:
                    raise InvalidArgumentError(
                        f"{path!r}: a record has {len(fields)} field(s), {width} are expected: {fields!r:.80}"
                    )
                yield fields

    def _fields(self, path: str) -> Iterator[list[str]]:
        for text in whole_records(blocks(path, self.compression, DEFAULT_BLOCK_BYTES), self.quote, path):
            start = 0
            for end in record_ends(text, self.quote).tolist():
                record = text[start:end]
                start = end
                if first_record(record) < len(record):
                    yield fields_of(record, self._delimiter, self.quote)


def inferred_defaults(
    rows: Iterator[list[str]], numbers: Sequence[int], na_value: str, count: int | None
) -> list[Any]:
    """Defaults with the types of the rows, inferred as in tf.data.experimental.make_csv_dataset.

    Args:
      rows: Fields of records.
      numbers: The numbers of the columns to infer.
      na_value: The text of a missing value, besides an empty field.
      count: How many rows to read; None for all.
    """
    found = [0] * len(numbers)
    seen = [False] * len(numbers)
    for fields in itertools.islice(rows, count):
        for place, number in enumerate(numbers):
            if fields[number] not in ("", na_value):
                found[place] = next(
                    level for level in range(found[place], len(_FITS)) if _FITS[level](fields[number])
                )
                seen[place] = True
    types = [
        CSV_TYPES[level] if known and level < len(CSV_TYPES) else STRING
        for level, known in zip(found, seen, strict=True)
    ]
    return ["" if dtype == STRING else dtype.type(0) for dtype in types]


def _is_whole(dtype: np.dtype[Any]) -> Callable[[str], bool]:
    def fits(text: str) -> bool:
        try:
            return "_" not in text and bool(np.iinfo(dtype).min <= int(text) <= np.iinfo(dtype).max)
        except ValueError:
            return False

    return fits


def _is_float(dtype: np.dtype[Any]) -> Callable[[str], bool]:
    limit = float(np.finfo(dtype).max)

    def fits(text: str) -> bool:
        try:
            return "_" not in text and limit >= abs(float(text))
        except ValueError:
            return False

    return fits


_FITS: Final[list[Callable[[str], bool]]] = [
    *map(_is_whole, CSV_TYPES[:2]),
    *map(_is_float, CSV_TYPES[2:]),
    lambda text: True,
]
