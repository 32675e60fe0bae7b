"""Rows of an array in a file that the process maps into memory."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from typing import IO, ClassVar, Final, Literal

import numpy as np

from workbench.data.formats.npy_header import NpyHeader
from workbench.data.structure import LEAF, Array, Structure, convert
from workbench.data.tables import Leaves, NumberedRows, Rows
from workbench.errors import DataLossError

_LAST_CODE: Final = 0x10FFFF
_SURROGATES: Final = (0xD800, 0xDFFF)


@dataclass(slots=True, eq=False)
class MappedTable(NumberedRows):
    """Rows of a mapped array; a row is copied out of the map only when it is delivered.

    Truncating the file would end the process with SIGBUS, which Python cannot catch. So the size is checked each time
    before the map is read, and no code outside this class gets a view of the map. The remaining risk is a file that is
    truncated while rows are copied.

    Attributes:
      array: The map as an array.
      memory: The map.
      path: The path of the file, for errors.
    """

    at_rest: ClassVar[bool] = False  # pages may have to come from disk
    array: Array
    memory: mmap.mmap
    path: str

    @staticmethod
    def of(file: IO[bytes], header: NpyHeader, path: str) -> MappedTable:
        """Maps an array.

        Args:
          file: An open file; may be closed afterwards.
          header: The header of the array.
          path: The path of the file.
        """
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        order: Literal["F", "C"] = "F" if header.fortran else "C"
        array: Array = np.ndarray(header.shape, header.dtype, memory, header.start, order=order)
        return MappedTable(array, memory, path)

    @property
    def structure(self) -> Structure:
        """The structure of an element."""
        return LEAF

    def row(self, index: int) -> Leaves:
        """The components of one element."""
        self._check()
        return [self._copied(self.array[index : index + 1])[0]]

    def take(self, rows: Rows) -> Leaves:
        """The components of several elements, stacked."""
        self._check()
        if isinstance(rows, range):
            stop = rows.stop if rows.stop >= 0 else None
            return [self._copied(self.array[rows.start : stop : rows.step])]
        return [native(self.array.take(rows, axis=0), repr(self.path), self.path)]

    def _copied(self, view: Array) -> Array:
        return native(np.array(view), repr(self.path), self.path)

    def _check(self) -> None:
        size = self.memory.size()
        if size < len(self.memory):
            raise DataLossError(
                f"{self.path!r} was made shorter while it was read: from {len(self.memory):,} to {size:,} bytes; write "
                "another file and rename it instead",
                file=self.path,
            )


def native(values: Array, what: str, file: str) -> Array:
    """Values in the byte order of the machine, text as bytes.

    Args:
      values: The values, in the order of the file.
      what: The file or array, for errors.
      file: The path of the file.

    Raises:
      DataLossError: if text is not Unicode: NumPy does not check it before it is used.
    """
    if values.dtype.kind == "U" and values.dtype.itemsize:
        codes = (
            np.ascontiguousarray(values).reshape(-1).view(np.dtype("u4").newbyteorder(values.dtype.byteorder))
        )
        if (codes > _LAST_CODE).any() or ((codes >= _SURROGATES[0]) & (codes <= _SURROGATES[1])).any():
            raise DataLossError(f"{what} holds text that is not Unicode; the file is damaged", file=file)
    if values.dtype.kind in "SUO":
        return convert(values)  # type: ignore[no-any-return]
    return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))
