"""Times our input pipelines on one thread.

* range-shuffle-batch-map: `range(1e6).shuffle(10k).batch(128).map(2x + 1)`, elements/s
* in-memory shuffled batches: (60000, 784) uint8, `shuffle(60000)` and `shuffle(10000)`, `batch(128)`, examples/s
* in-memory first batch: from `iter` to the first batch, ms
* textline: a file of about 200 MB and 1.68M lines, batched by 1024 and one by one, lines/s
* tfrecord: 100,000 records of about 1 kB with their checksums, batched by 128, records/s
* parquet: 4M rows of four columns of numbers in 16 row groups, batched by 1024, rows/s
* distributed: 256x784 float32 batches split over 2 replicas, in order and shuffled, steps/s; no replicas involved

Beside each case stands a bare NumPy or Python loop that does the same work; beside parquet, pyarrow's own scan.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet

from tests.benchmarks.measure import Script
from workbench.data import Dataset, ParquetDataset, TextLineDataset, TFRecordDataset, distribute_for_host
from workbench.io import TFRecordWriter, masked_crc32c

_NUMBERS, _EXAMPLES, _LINES, _RECORDS = 1_000_000, 60_000, 1_678_000, 100_000
_ROWS = 4_000_000
_IMAGES = np.random.default_rng(0).integers(0, 256, (_EXAMPLES, 784), dtype=np.uint8)
_FEATURES = np.zeros((25_600, 784), np.float32)
Case = tuple[str, str, str, float, Callable[[], Any]]


def _drain(elements: Iterable[Any]) -> None:
    for _ in elements:
        pass


def _bare_reservoir() -> None:
    generator = np.random.default_rng(0)
    held, following, size = np.arange(10_000), 10_000, 10_000
    rest = np.empty(0, np.int64)
    while following < _NUMBERS:
        count = min(1000, _NUMBERS - following)
        slots = generator.permutation(size)[:count]
        rest = np.concatenate([rest, held[slots]])
        held[slots] = np.arange(following, following + count)
        following += count
        full = len(rest) // 128 * 128
        for batch in rest[:full].reshape(-1, 128):
            _ = batch * 2 + 1
        rest = rest[full:]


def _bare_batches() -> Iterable[Any]:
    order = np.random.default_rng(0).permutation(_EXAMPLES)
    for start in range(0, _EXAMPLES, 128):
        yield _IMAGES.take(order[start : start + 128], axis=0)


def _bare_lines(path: str) -> None:
    with open(path, "rb", buffering=1 << 20) as file:
        _drain(file)


def _bare_records(path: str) -> None:
    with open(path, "rb", buffering=1 << 20) as file:
        while header := file.read(12):
            data = file.read(int.from_bytes(header[:8], "little"))
            checksums = masked_crc32c(header[:8]), masked_crc32c(data)
            if checksums != (int.from_bytes(header[8:], "little"), int.from_bytes(file.read(4), "little")):
                raise ValueError(path)


def _bare_split() -> Iterable[Any]:
    for start in range(0, len(_FEATURES), 256):
        yield _FEATURES[start : start + 128], _FEATURES[start + 128 : start + 256]


def _bare_scan(path: str) -> None:
    _drain(pa.dataset.dataset(path).to_batches())


def _cases(text: str, records: str, table: str) -> list[Case]:
    numbers = Dataset.range(_NUMBERS).shuffle(10_000).batch(128).map(lambda x: x * 2 + 1)
    images = Dataset.from_tensor_slices(_IMAGES)
    lines = TextLineDataset(text)
    features = Dataset.from_tensor_slices(_FEATURES)
    in_order = distribute_for_host(features.batch(256), replicas_per_host=2)
    shuffled = distribute_for_host(features.shuffle(1000).batch(256), replicas_per_host=2)
    steps = len(_FEATURES) / 256
    first = images.shuffle(_EXAMPLES).batch(128)
    return [
        ("range-shuffle-batch-map", "ours", "elements/s", _NUMBERS, lambda: _drain(numbers)),
        ("range-shuffle-batch-map", "bare numpy", "elements/s", _NUMBERS, _bare_reservoir),
        (
            "in-memory shuffled batches",
            "ours, shuffle(60000)",
            "examples/s",
            _EXAMPLES,
            lambda: _drain(first),
        ),
        (
            "in-memory shuffled batches",
            "ours, shuffle(10000)",
            "examples/s",
            _EXAMPLES,
            lambda: _drain(images.shuffle(10_000).batch(128)),
        ),
        (
            "in-memory shuffled batches",
            "bare numpy",
            "examples/s",
            _EXAMPLES,
            lambda: _drain(_bare_batches()),
        ),
        ("in-memory first batch", "ours", "ms", 0, lambda: next(iter(first))),
        ("in-memory first batch", "bare numpy", "ms", 0, lambda: next(iter(_bare_batches()))),
        ("textline", "ours, batch(1024)", "lines/s", _LINES, lambda: _drain(lines.batch(1024))),
        ("textline", "ours, one by one", "lines/s", _LINES, lambda: _drain(lines)),
        ("textline", "bare file loop", "lines/s", _LINES, lambda: _bare_lines(text)),
        (
            "tfrecord",
            "ours, batch(128)",
            "records/s",
            _RECORDS,
            lambda: _drain(TFRecordDataset(records).batch(128)),
        ),
        ("tfrecord", "bare file loop", "records/s", _RECORDS, lambda: _bare_records(records)),
        ("parquet", "ours, batch(1024)", "rows/s", _ROWS, lambda: _drain(ParquetDataset(table).batch(1024))),
        ("parquet", "pyarrow scan", "rows/s", _ROWS, lambda: _bare_scan(table)),
        ("distributed", "ours, in order", "steps/s", steps, lambda: _drain(in_order.steps())),
        ("distributed", "ours, shuffled", "steps/s", steps, lambda: _drain(shuffled.steps())),
        ("distributed", "bare slices", "steps/s", steps, lambda: _drain(_bare_split())),
    ]


def _make_text(path: Path) -> str:
    generator = np.random.default_rng(0)
    with path.open("wb") as file:
        for _ in range(_LINES // 1000):
            file.write(b"".join(b"x" * n + b"\n" for n in generator.integers(80, 157, 1000).tolist()))
    return str(path)


def _make_records(path: Path) -> str:
    generator = np.random.default_rng(0)
    pool = generator.bytes(1 << 20)
    with TFRecordWriter(path) as writer:
        for length in generator.integers(900, 1100, _RECORDS).tolist():
            writer.write(pool[length : 2 * length])
    return str(path)


def _make_table(path: Path) -> str:
    generator = np.random.default_rng(0)
    columns = {
        "a": generator.integers(0, 1 << 40, _ROWS),
        "b": generator.random(_ROWS),
        "c": generator.random(_ROWS, np.float32),
        "d": generator.integers(0, 100, _ROWS, np.int32),
    }
    pa.parquet.write_table(pa.table(columns), path, row_group_size=_ROWS // 16)
    return str(path)


def main() -> None:
    """Measures all cases."""
    script = Script("input", __doc__, text="")
    with tempfile.TemporaryDirectory() as folder:
        needs_text = not script.options.text and script.options.only in "textline"
        text = _make_text(Path(folder) / "lines.txt") if needs_text else script.options.text
        needs_records = script.options.only in "tfrecord"
        records = _make_records(Path(folder) / "records") if needs_records else ""
        table = _make_table(Path(folder) / "table") if script.options.only in "parquet" else ""
        for what, who, unit, count, run in _cases(text, records, table):
            if not script.wants(what, who):
                continue
            with script.case(who.replace("ours", "workbench"), what, unit=unit, scale=1, replicas=0) as case:
                start = time.perf_counter()
                run()
                seconds = time.perf_counter() - start
                case.samples = [count / seconds if count else 1e3 * seconds]


if __name__ == "__main__":
    main()
