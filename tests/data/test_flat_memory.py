"""Readers hold a few blocks of a file, however large it is."""

from __future__ import annotations

import os
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

from tests.data.test_files import record
from workbench.data import Dataset, FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from workbench.data.provenance import OffsetTable

_LIMIT_BYTES = 256 << 20
_READ = """
import resource, sys
from workbench.data import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
resource.setrlimit(resource.RLIMIT_DATA, ({limit}, {limit}))
dataset = {dataset}
size = 0
for run in dataset.batch(16).open(dataset.next_pass(provenance={provenance})):
    for batch in run.elements():
        size += sum(map(len, batch[0]))
        run.ids()
print(size)
"""


def test_blocks_that_were_read_are_let_go(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_bytes(record(bytes(1000)) * 2000)
    dataset = TFRecordDataset([tmp_path / "a", tmp_path / "b"], buffer_size=10_000)
    seen = most = 0
    tables: weakref.WeakSet[OffsetTable] = weakref.WeakSet()
    for run in dataset.open(dataset.next_pass(provenance=True)):
        seen += len(run)
        if isinstance(run.table, OffsetTable):
            tables.add(run.table)
        most = max(most, len(tables))
    assert seen == 4000
    assert 1 <= most <= 3


def test_ids_stay_those_of_the_undivided_list_of_files(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_bytes(b"x\n" * 3000)
    dataset = TextLineDataset([tmp_path / "a", tmp_path / "b"], buffer_size=1000).shuffle(100, seed=1)
    ids = [
        number for run in dataset.open(dataset.next_pass(provenance=True)) for number in run.ids().tolist()
    ]
    assert sorted(ids) == [file << 32 | row for file in (0, 1) for row in range(3000)]


@pytest.mark.slow
@pytest.mark.parametrize("provenance", [False, True])
@pytest.mark.parametrize("kind", ["records", "lines", "pieces"])
def test_a_file_of_four_times_the_memory_is_read(tmp_path: Path, kind: str, provenance: bool) -> None:
    """RLIMIT_DATA counts all memory of a process that is not a file's; what it starts with is far below the limit."""
    path = tmp_path / "large"
    piece = {"records": record(b"r" * 65_520), "lines": b"l" * 65_535 + b"\n", "pieces": b"p" * 65_536}[kind]
    times = 4 * _LIMIT_BYTES // len(piece) + 1
    with path.open("wb") as file:
        for _ in range(times):
            file.write(piece)
    dataset = {
        "records": f"TFRecordDataset({str(path)!r})",
        "lines": f"TextLineDataset({str(path)!r})",
        "pieces": f"FixedLengthRecordDataset({str(path)!r}, 65536)",
    }[kind]
    code = _READ.format(limit=_LIMIT_BYTES, dataset=dataset, provenance=provenance)
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    path.unlink()
    assert done.returncode == 0, done.stderr[-2000:]
    expected = {"records": 65_520, "lines": 65_535, "pieces": 65_536}[kind]
    assert int(done.stdout) == times * expected


def test_elements_one_by_one_are_those_of_batches(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"".join(b"%d\n" % i for i in range(5000)))
    lines: Dataset = TextLineDataset(path, buffer_size=777)
    numbers = [b"%d" % i for i in range(5000)]
    assert list(lines) == numbers
    assert [line for batch in lines.batch(13) for line in batch] == numbers
    assert sorted(lines.shuffle(50, seed=3)) == sorted(numbers)
    assert list(lines.shard(7, 3)) == numbers[3::7]
    assert list(FixedLengthRecordDataset(path, 10).take(2)) == [b"0\n1\n2\n3\n4\n", b"5\n6\n7\n8\n9\n"]


def test_batches_over_blocks_of_lines_are_the_lines_and_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"".join(b"%d\n" % i for i in range(1000)))
    dataset = TextLineDataset(path, buffer_size=100).batch(64)
    batches = list(dataset)
    assert [len(batch) for batch in batches] == [64] * 15 + [40]
    assert {(batch.dtype, batch.ndim) for batch in batches} == {(np.dtype(object), 1)}
    assert [int(line) for batch in batches for line in batch] == list(range(1000))
    runs = dataset.open(dataset.next_pass(provenance=True))
    assert [int(number) for run in runs for number in run.ids()] == list(range(1000))
