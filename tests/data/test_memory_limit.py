"""Pipelines over files of four times the memory that a control group leaves to the process that reads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data.test_files import record

pytestmark = pytest.mark.slow

_LIMIT_BYTES = 256 << 20
_FILE_BYTES = 4 * _LIMIT_BYTES
_MOUNTS = Path("/sys/fs/cgroup")
# Counts elements and adds up a part of each, to check that all are there.
_READ = """
import sys
import workbench.data as data
count = total = 0
for batch in data.{dataset}.shuffle(256, seed=1).batch(64).prefetch(2):
    count += len({values})
    total += {total}
print(count, total)
"""


def _own_group() -> Path:
    """The folder of the control group that accounts for this process's memory."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        mounted = _MOUNTS / "memory" if "memory" in controllers.split(",") else None
        if not controllers and "memory" in _words(_MOUNTS / "cgroup.controllers"):
            mounted = _MOUNTS
        if mounted is not None:
            inside = mounted / path.lstrip("/")
            return inside if inside.is_dir() else mounted  # the mount of a container starts at its own group
    pytest.skip("no control group accounts for the memory of this process")


def _words(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []


@pytest.fixture
def limited() -> Iterator[Path]:
    """A control group with little memory and no swap, for processes that enter it."""
    group = _own_group() / f"workbench-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"control groups may not be made here: {error}")
    try:
        for name, value in (
            ("memory.limit_in_bytes", _LIMIT_BYTES), ("memory.swappiness", 0),  # version 1
            ("memory.max", _LIMIT_BYTES), ("memory.swap.max", 0),  # version 2
        ):  # fmt: skip
            if (group / name).exists():
                (group / name).write_text(str(value))
        if not (group / "memory.limit_in_bytes").exists() and not (group / "memory.max").exists():
            pytest.skip("the control group above gives its children no memory controller")
        yield group
    finally:
        _remove(group)


def _remove(group: Path) -> None:
    for _ in range(200):  # busy until the kernel has removed the last process from it
        try:
            group.rmdir()
        except OSError:
            threading.Event().wait(0.05)
        else:
            return
    raise AssertionError(f"{group} cannot be removed")


def _run(group: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Runs Python code in a process that belongs to the group from its first instruction."""
    enter = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(group)]
    return subprocess.run(
        [*enter, sys.executable, "-c", code],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
    )


def test_the_limit_holds(limited: Path) -> None:
    done = _run(limited, f"x = bytearray(b'x' * 1024) * ({2 * _LIMIT_BYTES} // 1024); print(len(x))")
    assert done.returncode == -9, done.stdout + done.stderr


@pytest.mark.timeout(600)
def test_records_of_four_times_the_memory_are_read(limited: Path, tmp_path: Path) -> None:
    path, count = tmp_path / "large", _FILE_BYTES // 16_384
    with path.open("wb") as file:
        for start in range(0, count, 256):
            file.write(
                b"".join(record(n.to_bytes(4, "big") + bytes(16_380)) for n in range(start, start + 256))
            )
    total = "sum(int.from_bytes(each[:4], 'big') for each in batch.tolist())"
    code = _READ.format(dataset=f"TFRecordDataset({str(path)!r})", values="batch", total=total)
    _check(_run(limited, code), path, count, count * (count - 1) // 2)


@pytest.mark.timeout(600)
def test_lines_of_four_times_the_memory_are_read(limited: Path, tmp_path: Path) -> None:
    path, count = tmp_path / "large", _FILE_BYTES // 1024
    with path.open("wb") as file:
        for start in range(0, count, 1024):
            file.write(b"".join(b"%1023d\n" % n for n in range(start, start + 1024)))
    code = _READ.format(
        dataset=f"TextLineDataset({str(path)!r})", values="batch", total="sum(map(int, batch.tolist()))"
    )
    _check(_run(limited, code), path, count, count * (count - 1) // 2)


@pytest.mark.timeout(600)
def test_parquet_rows_of_four_times_the_memory_are_read(limited: Path, tmp_path: Path) -> None:
    path, count, group = tmp_path / "large", _FILE_BYTES // 16_384, 2048  # rows; a row group has 32 MiB
    schema = pa.schema([("n", pa.int64()), ("data", pa.binary())])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, count, group):
            numbers = range(start, start + group)
            writer.write_table(
                pa.table({"n": numbers, "data": [b"%016d" % n * 1024 for n in numbers]}, schema),
                row_group_size=group,
            )
    code = _READ.format(
        dataset=f"ParquetDataset({str(path)!r})",
        values="batch['n']",
        total="sum(int(n) for n, data in zip(batch['n'], batch['data']) if int(data[-16:]) == n)",
    )
    _check(_run(limited, code), path, count, count * (count - 1) // 2)


def _check(done: subprocess.CompletedProcess[str], path: Path, count: int, total: int) -> None:
    assert path.stat().st_size >= _FILE_BYTES
    path.unlink()
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[-2000:]}"
    assert done.stdout.split() == [str(count), str(total)]
