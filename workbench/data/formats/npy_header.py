"""The header of an array in NumPy's format, checked before any byte of the array is read."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import IO, Any, Final

import numpy as np

from workbench.backends.numpy import STRING
from workbench.data.spec import TensorSpec
from workbench.errors import DataLossError, InvalidArgumentError

MAGIC: Final = b"\x93NUMPY"
MOST_ROW_BYTES: Final = 1 << 30
"""Larger rows are rejected: a row is kept whole, and a few bytes of a compressed file may unpack to a huge one."""
_SPLIT_BYTES: Final = 1 << 16
_FEWEST_SPLITS: Final = 1024


@dataclass(frozen=True, slots=True)
class NpyHeader:
    """Shape and place of an array.

    Attributes:
      shape: The first dimension counts rows.
      dtype: The dtype in the file, in the file's byte order.
      fortran: Whether the array is stored column by column.
      start: Where its first byte lies.
      what: The array's name in texts, such as "'a.npz', array 'x'".
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran: bool
    start: int
    what: str

    @staticmethod
    def read(file: IO[bytes], what: str) -> NpyHeader:
        """Reads the header of an array, from its beginning.

        Raises:
          DataLossError: if it is damaged.
          InvalidArgumentError: if the array cannot be read row by row.
        """
        try:
            version = np.lib.format.read_magic(file)
            if version == (1, 0):
                shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
            elif version == (2, 0):
                shape, fortran, dtype = np.lib.format.read_array_header_2_0(file)
            else:
                raise InvalidArgumentError(
                    f"{what}: arrays with fields cannot be read; save one array per field"
                )
        except InvalidArgumentError:
            raise
        # The header is a Python expression, so this catches whatever Python's tokenizer and parser raise.
        except Exception as error:
            said = " ".join(str(error).split())
            raise DataLossError(f"{what}: {said}; the file is damaged or cut off, or no array") from error
        header = NpyHeader(shape, dtype, fortran, file.tell(), what)
        header._check()
        return header

    @property
    def rows(self) -> int:
        """How many rows the array has."""
        return self.shape[0]

    @property
    def row_bytes(self) -> int:
        """Size of a row."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    @property
    def spec(self) -> TensorSpec:
        """The spec of a row."""
        text = self.dtype.kind in "SU"
        return TensorSpec(self.shape[1:], STRING if text else self.dtype.newbyteorder("="))

    def split_rows(self) -> int:
        """How many rows a split has: a few pages, or fewer if there would be too few splits to share."""
        return max(1, min(_SPLIT_BYTES // max(1, self.row_bytes), self.rows // _FEWEST_SPLITS))

    def expect_bytes(self, found: int) -> None:
        """Rejects a size other than the header's.

        Args:
          found: Bytes of the file, or member of an archive, with header and array.

        Raises:
          DataLossError: if they are too few or too many.
        """
        wanted = self.start + self.rows * self.row_bytes
        if found != wanted:
            raise DataLossError(
                f"{self.what}: shape {self.shape} of {self.dtype} takes {wanted:,} bytes, the file has {found:,}; "
                "it is cut off or damaged"
            )

    def array(self, data: bytes | bytearray, rows: int) -> np.ndarray[Any, Any]:
        """Some rows as an array.

        Raises:
          DataLossError: if there are fewer bytes than these rows take.
        """
        if len(data) != rows * self.row_bytes:
            raise DataLossError(
                f"{self.what}: ends {rows * self.row_bytes - len(data):,} bytes too early; it is cut off"
            )
        return np.frombuffer(data, self.dtype).reshape(rows, *self.shape[1:])

    def _check(self) -> None:
        if self.dtype.hasobject:
            raise InvalidArgumentError(
                f"{self.what} holds pickled Python objects, which are never loaded, as that would run code of the "
                "file; save numbers or text of a fixed length"
            )
        if self.dtype.kind not in "biufcSUmM":
            raise InvalidArgumentError(
                f"{self.what}: arrays of {self.dtype} cannot be read; save one array per field"
            )
        if not self.shape:
            raise InvalidArgumentError(f"{self.what} is a single value and has no rows")
        if min(self.shape) < 0:
            raise DataLossError(f"{self.what}: shape {self.shape} cannot be; the file is damaged")
        if self.row_bytes > MOST_ROW_BYTES:
            raise InvalidArgumentError(
                f"{self.what}: a row takes {self.row_bytes:,} bytes, more than 1 GiB; save smaller rows"
            )


def size_of(file: IO[bytes]) -> int:
    """Size of an open file; keeps the reading position."""
    place = file.tell()
    size = file.seek(0, os.SEEK_END)
    file.seek(place)
    return size
