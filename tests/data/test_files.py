"""Sources that read files: lines, records, pieces; compression, damage, provenance."""

from __future__ import annotations

import gzip
import os
import struct
import sys
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.data import Dataset, FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from workbench.data.sources.records import _Parser
from workbench.data.sources.text import split_long
from workbench.errors import DataLossError, DataWarning, InvalidArgumentError, NotFoundError
from workbench.io.checksums import masked_crc32c

Write = Callable[[str, bytes], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def to_file(name: str, content: bytes) -> str:
        (tmp_path / name).write_bytes(content)
        return str(tmp_path / name)

    return to_file


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc32c(length)) + data + struct.pack("<I", masked_crc32c(data))


@pytest.mark.parametrize("block", [1, 2, 3, 7, None])
def test_lines_do_not_depend_on_block_size(write: Write, block: int | None) -> None:
    path = write("a", b"one\r\n\ntwo\nlast")
    assert list(TextLineDataset(path, buffer_size=block)) == [b"one", b"", b"two", b"last"]


@pytest.mark.parametrize(
    "block", [b"\n", b"\n\n", b"a", b"a\n", b"\na", b"a\r\n\rb\n", b"one\n\ntwo\x85\x0c\0\nlast"]
)
def test_long_lines_are_split_as_short_ones(block: bytes) -> None:
    assert split_long(block) == block.split(b"\n")


@pytest.mark.parametrize("block", [None, 300, 1000, 5000])
def test_files_of_long_and_short_lines_are_read(write: Write, block: int | None) -> None:
    lines = [b"%d" % n * (100 if n // 300 % 2 else 1) for n in range(2000)]
    assert list(TextLineDataset(write("a", b"\r\n".join(lines)), buffer_size=block)) == lines
    assert list(TextLineDataset(write("b", b"\n".join(lines) + b"\n"), buffer_size=block)) == lines


@pytest.mark.parametrize(("name", "pack"), [("GZIP", gzip.compress), ("ZLIB", zlib.compress)])
def test_compressed_lines_are_read_and_damage_is_told(
    write: Write, name: str, pack: Callable[[bytes], bytes]
) -> None:
    content = b"".join(b"line %d\n" % i for i in range(2000))
    packed = pack(content)
    assert len(list(TextLineDataset(write("a", packed), name, buffer_size=100))) == 2000
    with pytest.raises(DataLossError, match="cut off"):
        list(TextLineDataset(write("b", packed[:-9]), name))
    with pytest.raises(DataLossError, match="check compression_type"):
        list(TextLineDataset(write("c", content), name))


def test_all_members_of_a_gzip_file_are_read(write: Write) -> None:
    path = write("a", gzip.compress(b"a\nb") + gzip.compress(b"c\n"))
    assert list(TextLineDataset(path, "GZIP")) == [b"a", b"bc"]


def test_a_lone_carriage_return_is_removed_with_a_warning_or_an_error(write: Write) -> None:
    path = write("a", b"fine\r\nx\ry\nz\rz\n")
    with pytest.warns(DataWarning, match="byte 7") as caught:
        assert list(TextLineDataset(path)) == [b"fine", b"xy", b"zz"]
    assert [each.filename for each in caught] == [__file__]
    with pytest.raises(DataLossError, match="byte 7"):
        list(TextLineDataset(path, strict=True))


@pytest.mark.parametrize(
    "stages",
    [
        lambda names: TextLineDataset(names).prefetch(2),
        lambda names: TextLineDataset(names).prefetch(2).map(lambda line: line, 2).prefetch(1),
        lambda names: names.interleave(TextLineDataset, num_parallel_calls=2),
        lambda names: names.interleave(lambda name: TextLineDataset(name).prefetch(1), num_parallel_calls=2),
        lambda names: names.interleave(
            lambda name: TextLineDataset(name), cycle_length=2, num_parallel_calls=2, deterministic=False
        ),
    ],
)
def test_threads_warn_at_the_line_for_which_they_read(
    write: Write, stages: Callable[[Dataset], Dataset]
) -> None:
    paths = [write("a", b"x\ry\nz\n").encode(), write("b", b"r\rs\n").encode()]
    dataset = stages(Dataset.from_tensor_slices(np.array(paths, object)))
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert len(list(dataset)) == 3
        here = _line_before()
        assert [(each.filename, each.lineno) for each in caught] == 2 * [(__file__, here)]


def _line_before() -> int:
    return sys._getframe(1).f_lineno - 1


def test_missing_files_are_told_when_their_turn_comes(write: Write) -> None:
    iterator = iter(TextLineDataset([write("a", b"1\n"), "/nowhere/b"]))
    assert next(iterator) == b"1"
    with pytest.raises(NotFoundError, match="/nowhere/b"):
        next(iterator)


def test_names_are_checked(write: Write) -> None:
    with pytest.raises(InvalidArgumentError, match="GZIP"):
        TextLineDataset("a", "BZIP2")
    with pytest.raises(TypeError, match="filenames"):
        TextLineDataset([1, 2])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="scalar text"):
        TextLineDataset(Dataset.range(3))
    path = Path(write("a", b"x\n"))
    assert list(TextLineDataset(path)) == list(TextLineDataset([path])) == [b"x"]


def test_several_files_are_read_in_turn(write: Write) -> None:
    paths = [write("a", b"a1\na2\n"), write("b", b"b1\nb2\n"), write("c", b"c1\n")]
    assert list(TextLineDataset(paths, num_parallel_reads=2)) == [b"a1", b"b1", b"a2", b"b2", b"c1"]
    names = Dataset.from_tensor_slices(paths).skip(1)
    assert list(TextLineDataset(names)) == [b"b1", b"b2", b"c1"]


def test_long_files_are_read_in_turn(write: Write) -> None:
    paths = [
        write(name, b"".join(record(b"%s%d" % (name.encode(), i)) for i in range(3000))) for name in "ab"
    ]
    read = list(TFRecordDataset(paths, num_parallel_reads=2))
    assert read == [b"%s%d" % (name, i) for i in range(3000) for name in (b"a", b"b")]


def test_files_are_listed_sorted_over_all_patterns(write: Write, tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "c.py"):
        write(name, b"")
    patterns = [str(tmp_path / "*.py"), str(tmp_path / "?.txt")]
    listed = [os.path.basename(name) for name in Dataset.list_files(patterns, shuffle=False)]
    assert listed == [b"a.txt", b"b.txt", b"c.py"]
    assert sorted(Dataset.list_files(patterns, seed=1)) == sorted(Dataset.list_files(patterns))
    assert [name[-5:] for name in Dataset.list_files(str(tmp_path / "[^ac].*"))] == [b"b.txt"]
    with pytest.raises(InvalidArgumentError, match="no file matches"):
        Dataset.list_files(str(tmp_path / "*.none"))


def test_iterating_partly_leaves_no_file_open(write: Write) -> None:
    path = write("a", b"x\n" * 100_000)
    iterator = iter(TextLineDataset(path, buffer_size=64).batch(3))
    next(iterator)
    del iterator
    open_files = [
        os.readlink(f"/proc/self/fd/{fd}")
        for fd in os.listdir("/proc/self/fd")
        if os.path.exists(f"/proc/self/fd/{fd}")
    ]
    assert path not in open_files


@given(records=st.lists(st.binary(max_size=40), max_size=8), block=st.integers(1, 50))
def test_records_survive_any_cut_into_blocks(records: list[bytes], block: int) -> None:
    content = b"".join(map(record, records))
    parser = _Parser("x", block)
    got = []
    for start in range(0, len(content), block):
        part = content[start : start + block]
        parser.space()[: len(part)] = part
        got += parser.filled(len(part))
    parser.check()
    assert got == records
    assert parser.rest_bytes == 0


def test_every_flipped_byte_of_a_record_file_is_noticed(write: Write) -> None:
    good = record(b"first") + record(b"second")
    for position in range(len(good)):
        bad = bytearray(good)
        bad[position] ^= 0x10
        with pytest.raises(DataLossError, match="byte"):
            list(TFRecordDataset(write("a", bytes(bad))))


def test_good_records_come_before_the_error(write: Write) -> None:
    bad = record(b"good") + record(b"bad")[:-1] + b"?"
    iterator = iter(TFRecordDataset(write("a", bad)))
    assert next(iterator) == b"good"
    with pytest.raises(DataLossError, match="record 1, at byte 20"):
        next(iterator)


def test_cut_record_files_end_with_a_warning_in_the_header_and_an_error_in_the_data(write: Write) -> None:
    good = record(b"abc")
    with pytest.warns(DataWarning, match="5 of its header") as caught:
        assert list(TFRecordDataset(write("a", good + good[:5]))) == [b"abc"]
    assert [each.filename for each in caught] == [__file__]
    with pytest.raises(DataLossError, match="5 of its header"):
        list(TFRecordDataset(write("a", good + good[:5]), strict=True))
    with pytest.raises(DataLossError, match="cut off"):
        list(TFRecordDataset(write("a", good + good[:14])))


def test_a_claimed_length_of_exabytes_allocates_nothing(write: Write) -> None:
    length = struct.pack("<Q", 1 << 60)
    with pytest.raises(DataLossError, match="cut off"):
        list(TFRecordDataset(write("a", length + struct.pack("<I", masked_crc32c(length)) + b"few")))


def test_a_claimed_length_that_the_file_does_not_have_is_told_before_the_rest_is_read(write: Write) -> None:
    length = struct.pack("<Q", 1 << 40)
    head = record(b"good") + length + struct.pack("<I", masked_crc32c(length))
    path = write("a", head + bytes(3 << 20))
    parser = _Parser(path, 1024)
    parser.space()[:] = (head + bytes(1024))[:1024]
    assert parser.filled(1024) == [b"good"]
    with pytest.raises(
        DataLossError, match=r"record 1 at byte 20 is cut off: it takes 1,099,511,627,792 bytes"
    ):
        parser.check_size(os.path.getsize(path))
    with pytest.raises(DataLossError, match="the file has 3,145,740 more"):
        list(TFRecordDataset(path))


def test_every_cut_of_a_record_file_gives_good_records_and_tells(write: Write) -> None:
    good = record(b"first") + record(b"") + record(b"third")
    ends = [0, 21, 37, 58]
    for cut in range(len(good)):
        iterator = iter(TFRecordDataset(write("a", good[:cut]), strict=True))
        whole = sum(end <= cut for end in ends) - 1
        assert [next(iterator) for _ in range(whole)] == [b"first", b"", b"third"][:whole]
        if cut in ends:
            assert next(iterator, None) is None
        else:
            with pytest.raises(DataLossError, match=f"record {whole} at byte {ends[whole]}"):
                next(iterator)


def test_a_record_longer_than_the_blocks_is_whole(write: Write) -> None:
    long = os.urandom(100_000)
    path = write("a", record(b"x") + record(long) + record(b"y"))
    for block in (1, 1000, 99_999, None):
        assert list(TFRecordDataset(path, buffer_size=block)) == [b"x", long, b"y"]


def test_a_folder_is_no_file(write: Write, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="is a folder; name its files"):
        list(TFRecordDataset(tmp_path))


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
@given(
    records=st.lists(st.binary(max_size=20), min_size=1, max_size=4),
    changes=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=4),
    cut=st.integers(0, 10_000),
)
def test_damaged_record_files_never_give_wrong_records(
    tmp_path_factory: pytest.TempPathFactory,
    compression: str,
    records: list[bytes],
    changes: list[tuple[int, int]],
    cut: int,
) -> None:
    content = b"".join(map(record, records))
    pack = {"": bytes, "GZIP": gzip.compress, "ZLIB": zlib.compress}[compression]
    bad = bytearray(pack(content))
    for position, value in changes:
        bad[position % len(bad)] = value
    path = tmp_path_factory.mktemp("damaged") / "a"
    path.write_bytes(bytes(bad[: len(bad) - cut % 20 if cut % 3 == 0 else None]))
    read = []
    try:
        for item in TFRecordDataset(path, compression, strict=True):
            read.append(item)  # noqa: PERF402 - those before the error count
    except DataLossError:
        pass
    assert read == records[: len(read)]


@pytest.mark.parametrize("compression", ["", "GZIP"])
@pytest.mark.parametrize("block", [1, 3, None])
def test_fixed_length_records_lie_between_header_and_footer(
    write: Write, compression: str, block: int | None
) -> None:
    content = b"HH" + b"aabbcc" + b"FFF"
    path = write("a", gzip.compress(content) if compression else content)
    assert list(FixedLengthRecordDataset(path, 2, 2, 3, block, compression)) == [b"aa", b"bb", b"cc"]


def test_fixed_length_records_must_fill_the_file(write: Write) -> None:
    with pytest.raises(InvalidArgumentError, match="whole number"):
        next(iter(FixedLengthRecordDataset(write("a", b"aabbc"), 2)))
    iterator = iter(FixedLengthRecordDataset(write("b", gzip.compress(b"aabbc")), 2, compression_type="GZIP"))
    assert [next(iterator), next(iterator)] == [b"aa", b"bb"]
    with pytest.raises(DataLossError, match="1 bytes are left over"):
        next(iterator)
    short = FixedLengthRecordDataset(write("s", gzip.compress(b"ab")), 2, 3, compression_type="GZIP")
    with pytest.raises(DataLossError, match="header of 3"):
        next(iter(short))
    with pytest.raises(InvalidArgumentError, match="record_bytes"):
        FixedLengthRecordDataset("a", 0)
    assert list(FixedLengthRecordDataset(write("c", b""), 2)) == []


def test_a_missing_file_with_a_relative_path_is_told_with_the_folder_that_was_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFoundError) as raised:
        next(iter(TextLineDataset("missing.txt")))
    assert f"no file 'missing.txt' in {str(tmp_path)!r}, the current folder" in str(raised.value)
