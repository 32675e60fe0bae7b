"""Reads the folder of a dump, which holds JSON and Arrow tables. Executes nothing in it."""

from __future__ import annotations

import json
import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from workbench import arguments
from workbench.data.readers.files import TFRecordDataset
from workbench.debugging.dump.options import MODES
from workbench.debugging.dump.schema import SCHEMA
from workbench.errors import DataLossError, InvalidArgumentError, NotFoundError

_NARROW: Final = re.compile(r"bfloat16|float[468]_e\dm\d\w*")


@dataclass(frozen=True, slots=True)
class ReadDump:
    """The content of a dump's folder.

    Attributes:
      root: The folder.
      mode: How much of each array was dumped.
      table: A row per resulting array of an operation, by time; see `schema.SCHEMA`.
      sources: The user's source files, by name.
      notes: What could not be read.
    """

    root: Path
    mode: str
    table: pa.Table
    sources: dict[str, str]
    notes: tuple[str, ...]


def read_dump(root: str | os.PathLike[str]) -> ReadDump:
    """Reads a dump, even one that ended abruptly with its process.

    Raises:
      NotFoundError: if there is no such folder.
      InvalidArgumentError: if it holds no dump.
    """
    folder = arguments.path(root, "the folder of a dump")
    if not folder.is_dir():
        raise NotFoundError(
            f"there is no folder {str(folder)!r}; give the dump_root of enable_dump_debug_info"
        )
    try:
        described = json.loads((folder / "dump.json").read_text(encoding="utf-8"))
        mode = described["mode"]
        if described["format"] != 1 or mode not in MODES:
            raise ValueError(f"format {described['format']!r}, mode {mode!r}")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidArgumentError(
            f"{str(folder)!r} holds no dump that can be read; give the dump_root of enable_dump_debug_info: "
            f"dump.json: {error}"
        ) from error
    notes: list[str] = []
    batches = [
        batch for path in sorted(folder.glob("executions-*.tfrecord")) for batch in _batches(path, notes)
    ]
    sources: dict[str, str] = {}
    # Sorted by name, which begins with a time: a file's newest content counts.
    for path in sorted(folder.glob("sources-*.json")):
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            sources |= {str(name): str(text) for name, text in found.items()}
        except (OSError, ValueError, AttributeError, RecursionError) as error:
            notes.append(f"{path.name} cannot be read: {error}")
    table = pa.Table.from_batches(batches, schema=SCHEMA).sort_by("time")
    return ReadDump(folder, mode, table, sources, tuple(notes))


def _batches(path: Path, notes: list[str]) -> list[pa.RecordBatch]:
    """The batches of a file, up to its end or to the first damaged record, which its checksum reveals."""
    found: list[pa.RecordBatch] = []
    try:
        for record in TFRecordDataset(str(path), strict=True):
            batch = pa.ipc.read_record_batch(pa.py_buffer(record), SCHEMA)
            batch.validate(full=True)
            found.append(batch)
    except (DataLossError, OSError, pa.ArrowException) as error:
        count = sum(batch.num_rows for batch in found)
        text = str(error).partition("\n")[0]
        notes.append(f"{path.name} was cut off or damaged after {count} operations: {text}")
    return found


def array_of(row: dict[str, Any], root: Path) -> np.ndarray | None:
    """The elements in a row of a dump with mode "FULL_TENSOR"; None if the row has none.

    Args:
      row: A row of the table.
      root: The folder of the dump, for errors.

    Raises:
      DataLossError: if the row is damaged.
    """
    data, name, shape = row["tensor"], row["dtype"], row["shape"]
    if data is None or name is None or shape is None:
        return None
    try:
        if _NARROW.fullmatch(name):
            import ml_dtypes

            dtype = np.dtype(getattr(ml_dtypes, name))
        else:
            dtype = np.dtype(name)
        if dtype.hasobject or min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(data):
            raise ValueError(f"{len(data)} bytes are not {name}{shape}")
        return np.frombuffer(data, dtype).reshape(shape)
    except (ValueError, TypeError, AttributeError, ImportError) as error:
        raise DataLossError(
            f"the elements that {row['op']} gave cannot be read from the dump {str(root)!r}: {error}",
            file=str(root),
        ) from error
