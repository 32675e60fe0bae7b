"""Writes the files that the suite "input" reads, once for all rounds; those that exist stay.

* eight files of 25,000 TFRecord records of 900 to 1,100 bytes, and one of 1 GiB
* a text of 200 MB: 1,678,000 lines of words
* 4 million rows of four columns of numbers in Parquet, in 16 row groups
* examples of 784 floats (a picture), of 100 kB (a compressed picture) and of 26 scalars (a row of a table)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from tests.benchmarks import input_cases
from tests.benchmarks.measure import Script
from workbench.io import TFRecordWriter, encode_example

_GIB = 1 << 30
_KINDS: dict[str, tuple[int, Callable[[np.random.Generator], dict[str, Any]]]] = {
    "floats": (2048, lambda draw: {"x": draw.random(784, np.float32), "y": int(draw.integers(10))}),
    "images": (512, lambda draw: {"x": draw.bytes(100_000), "y": int(draw.integers(1000))}),
    "scalars": (
        16_384,
        lambda draw: {
            **{f"i{n}": int(draw.integers(1 << 20)) for n in range(13)},
            **{f"f{n}": float(draw.random()) for n in range(13)},
        },
    ),
}


def _write_records(path: Path, records: Iterable[bytes]) -> None:
    with TFRecordWriter(path) as writer:
        for record in records:
            writer.write(record)


def _records(seed: int, count: int) -> Iterable[bytes]:
    draw = np.random.default_rng(seed)
    pool = draw.bytes(1 << 22)
    starts = draw.integers(0, len(pool) - 1100, count).tolist()
    for start, length in zip(starts, draw.integers(900, 1100, count).tolist(), strict=True):
        yield pool[start : start + length]


def _write_large(path: Path) -> None:
    """Writes 1 GiB that repeats the same records."""
    _write_records(path, _records(99, 65_536))
    block = path.read_bytes()
    with path.open("ab") as file:
        for _ in range(_GIB // len(block)):
            file.write(block)


def _write_lines(path: Path) -> None:
    draw = np.random.default_rng(0)
    words = [draw.bytes(n).hex()[:n].encode() for n in draw.integers(3, 11, 5000).tolist()]
    with path.open("wb") as file:
        for _ in range(input_cases.LINE_COUNT // 1000):
            chosen = draw.integers(0, len(words), (1000, 16)).tolist()
            file.write(b"".join(b" ".join(map(words.__getitem__, line)) + b"\n" for line in chosen))


def _write_table(path: Path) -> None:
    draw, rows = np.random.default_rng(0), input_cases.ROW_COUNT
    columns = {
        "a": draw.integers(0, 1 << 40, rows),
        "b": draw.random(rows),
        "c": draw.random(rows, np.float32),
        "d": draw.integers(0, 100, rows, np.int32),
    }
    pa.parquet.write_table(pa.table(columns), path, row_group_size=rows // 16)


def _write_examples(path: Path) -> None:
    count, made = _KINDS[path.stem]
    draw = np.random.default_rng(0)
    _write_records(path, (encode_example(made(draw)) for _ in range(count)))


def main() -> None:
    """Writes those that are missing, each under another name first, so that none is left half written."""
    Script("input", __doc__)
    folder = Path(os.environ[input_cases.FILES])
    per_file = input_cases.RECORD_COUNT // 8
    writers: dict[str, Callable[[Path], None]] = {
        f"part-{n}.tfrecord": lambda path, n=n: _write_records(path, _records(n, per_file))  # type: ignore[misc]
        for n in range(8)
    }
    writers |= {"large.tfrecord": _write_large, "lines.txt": _write_lines, "table.parquet": _write_table}
    writers |= {f"{kind}.examples": _write_examples for kind in _KINDS}
    for name, write in writers.items():
        if not (folder / name).exists():
            half = folder / "half" / name
            half.parent.mkdir(exist_ok=True)
            write(half)
            half.rename(folder / name)


if __name__ == "__main__":
    main()
