"""Row 32: a TFRecord file with a flipped byte, cut anywhere, empty, of another codec, with an impossible length."""

from __future__ import annotations

import gzip
import os
import pickle
import random
import struct
import subprocess
import sys
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fuzz.targets import overwrite
from workbench.data import Dataset, TFRecordDataset
from workbench.errors import DataCorruption, DataWarning
from workbench.io.checksums import masked_crc32c

FILE_BYTES = 4096
MEMORY_BYTES = 200 << 20


def head(length: int) -> bytes:
    """The twelve bytes before a record, with a checksum that is right."""
    data = struct.pack("<Q", length)
    return data + struct.pack("<I", masked_crc32c(data))


def record(data: bytes) -> bytes:
    return head(len(data)) + data + struct.pack("<I", masked_crc32c(data))


def records_of_4_kb() -> list[bytes]:
    rng = random.Random(1)
    sizes = [0, 1, 7, 500, 1000, 12, 16, 800]
    records = [rng.randbytes(size) for size in sizes]
    rest = FILE_BYTES - sum(len(record(each)) for each in records) - 16
    return [*records, rng.randbytes(rest)]


RECORDS = records_of_4_kb()
GOOD = b"".join(map(record, RECORDS))
STARTS = [sum(len(record(each)) for each in RECORDS[:number]) for number in range(len(RECORDS) + 1)]


def read(dataset: Dataset) -> tuple[list[bytes], DataCorruption | None]:
    found: list[bytes] = []
    try:
        found.extend(dataset)
    except DataCorruption as error:
        return found, error
    return found, None


def which(place: int) -> int:
    """The record around a byte."""
    return max(number for number, start in enumerate(STARTS) if start <= place)


def test_every_flipped_byte_names_file_record_and_offset(tmp_path: Path) -> None:
    assert len(GOOD) == FILE_BYTES
    path = tmp_path / "records"
    caught = 0
    for place in range(FILE_BYTES):
        bad = bytearray(GOOD)
        bad[place] ^= 1 << (place % 8)
        overwrite(path, bytes(bad))
        found, error = read(TFRecordDataset(path))
        number = which(place)
        assert error is not None
        assert (error.file, error.record, error.offset) == (str(path), number, STARTS[number])
        assert str(path) in str(error)
        assert found == RECORDS[:number]
        caught += 1
    assert caught == FILE_BYTES


@pytest.mark.parametrize("strict", [False, True])
def test_a_file_that_is_cut_anywhere_gives_what_is_whole_and_tells(tmp_path: Path, strict: bool) -> None:
    path = tmp_path / "records"
    for cut in range(FILE_BYTES):
        overwrite(path, GOOD[:cut])
        number = which(cut)
        in_header = 0 < cut - STARTS[number] < 12
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found, error = read(TFRecordDataset(path, strict=strict))
        assert found == RECORDS[:number]
        if cut == STARTS[number]:  # it looks complete, because the format has no end mark
            assert (error, told) == (None, [])
        elif in_header and not strict:
            assert error is None
            assert [each.category for each in told] == [DataWarning]
            assert f"record {number} at byte {STARTS[number]}" in str(told[0].message)
        else:
            assert error is not None
            assert (error.file, error.record, error.offset) == (str(path), number, STARTS[number])


def test_an_empty_file_has_no_record(tmp_path: Path) -> None:
    (tmp_path / "records").write_bytes(b"")
    assert read(TFRecordDataset(tmp_path / "records", strict=True)) == ([], None)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zlib.compress], ids=["plain", "gzip", "zlib"])
@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_another_codec_is_damage_that_says_what_to_check(
    tmp_path: Path, compression: str, pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "records"
    path.write_bytes(pack(GOOD))
    found, error = read(TFRecordDataset(path, compression))
    if (pack, compression) in ((bytes, ""), (gzip.compress, "GZIP"), (zlib.compress, "ZLIB")):
        assert (found, error) == (RECORDS, None)
        return
    assert found == []
    assert error is not None
    assert "check compression_type" in str(error)
    assert error.file == str(path)


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
@pytest.mark.parametrize("length", [1 << 28, 1 << 31, 1 << 60, (1 << 64) - 1])
def test_a_length_that_nobody_has_takes_no_memory(tmp_path: Path, length: int, compression: str) -> None:
    """Read by a process that has 200 MB for everything."""
    path = tmp_path / "records"
    content = record(b"good") + head(length) + bytes(1 << 20)
    path.write_bytes({"": bytes, "GZIP": gzip.compress, "ZLIB": zlib.compress}[compression](content))
    code = (
        "import resource; from workbench.data import TFRecordDataset; from workbench.errors import DataCorruption\n"
        f"resource.setrlimit(resource.RLIMIT_DATA, ({MEMORY_BYTES}, {MEMORY_BYTES}))\n"
        f"iterator = iter(TFRecordDataset({str(path)!r}, {compression!r}))\n"
        "assert next(iterator) == b'good'\n"
        "try: next(iterator)\n"
        "except DataCorruption as error: print(error.record, error.offset, error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.stdout.startswith("1 20 "), done.stderr[-1000:]
    assert "cut off" in done.stdout


def test_the_skip_policy_goes_on_with_the_next_file_and_counts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    paths = [tmp_path / name for name in "abc"]
    for path in paths:
        path.write_bytes(b"".join(record(path.name.encode() + bytes([n])) for n in range(4)))
    bad = bytearray(paths[1].read_bytes())
    bad[18 + 12] ^= 1  # in the second record
    paths[1].write_bytes(bad)
    read_ = list(TFRecordDataset(paths).ignore_errors(log_warning=True))
    assert read_ == [b"a\0", b"a\1", b"a\2", b"a\3", b"b\0", b"c\0", b"c\1", b"c\2", b"c\3"]
    assert [f"{str(paths[1])!r}" in each.message for each in caplog.records] == [True]


def test_the_place_travels_with_the_error() -> None:
    error = DataCorruption("damaged", file="a", record=3, offset=40, replica=1)
    again = pickle.loads(pickle.dumps(error))
    assert (again.file, again.record, again.offset, again.replica) == ("a", 3, 40, 1)
    assert str(again) == "damaged"
