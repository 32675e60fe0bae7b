"""Batches of examples that are alike, nearly alike, and written in every form that the wire format allows."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import InvalidArgumentError
from workbench.io import FixedLenFeature, VarLenFeature, decode_example, encode_example, parse_example
from workbench.io.columns import columns
from workbench.io.wire import delimited, varint

NAMES = ("a", "bb", "c" * 200, "é", "e")


def wide_delimited(number: int, payload: bytes) -> bytes:
    """A field whose length takes a byte more than it needs, which is legal."""
    length = bytearray(varint(len(payload)))
    length[-1] |= 0x80
    return varint(number << 3 | 2) + bytes(length) + b"\0" + payload


def feature(rng: np.random.Generator, kind: int, count: int, form: int) -> bytes:
    """The message `Feature`; `form` 0 is the usual one."""
    field = wide_delimited if form == 1 else delimited
    if kind == 1:
        items = b"".join(field(1, rng.bytes(int(rng.integers(0, 200)))) for _ in range(count))
        return field(1, items)
    if kind == 2:
        parts = [np.float32(rng.random()).tobytes() for _ in range(count)]
        apart = b"".join(b"\x0d" + part for part in parts)
    else:
        parts = [
            varint(int(rng.integers(-(2**63), 2**63 - 1) >> int(rng.integers(64)))) for _ in range(count)
        ]
        apart = b"".join(b"\x08" + part for part in parts)
    packed = field(1, b"".join(parts)) if parts else b""
    match form:
        case 2:
            return delimited(kind, apart)
        case 3:
            return delimited(kind, packed + apart + packed)
        case 4:
            return delimited(kind, packed) + b"\x7a\x01x"
    return field(kind, packed)


def random_example(rng: np.random.Generator, strange: float) -> bytes:
    """An example with some of `NAMES`, of kinds that depend on the name."""
    entries = []
    for number, name in enumerate(NAMES):
        if rng.random() < 0.1:
            continue
        form = int(rng.integers(1, 5)) if rng.random() < strange else 0
        count = 1 if rng.random() < 0.5 else int(rng.integers(0, 40))
        value = feature(rng, number % 3 + 1, count, form)
        if rng.random() < strange / 4:
            value = b""
        entry = delimited(1, name.encode()) + delimited(2, value)
        if rng.random() < strange:
            entry = delimited(2, value) + delimited(1, name.encode())
        entries.append(delimited(1, entry))
    if rng.random() < strange:
        entries.reverse()
    if rng.random() < strange and entries:
        again = delimited(1, NAMES[0].encode()) + delimited(2, feature(rng, 1, 2, 0))
        entries.append(delimited(1, again))  # the last entry with a name counts
    features = b"".join(entries)
    if rng.random() < strange:
        half = len(entries) // 2
        return delimited(1, b"".join(entries[:half])) + delimited(1, b"".join(entries[half:])) + b"\x78\x05"
    return delimited(1, features)


def values_by_row(batch: list[bytes], names: tuple[str, ...] = NAMES) -> list[dict[str, list[Any]]]:
    """What `columns` finds, example by example."""
    rows: list[dict[str, list[Any]]] = [{} for _ in batch]
    for name, found in columns(batch, names).items():
        for column in found:
            assert column.each == (column.counts[0] if len(set(column.counts.tolist())) == 1 else -1)
            stops = np.cumsum(column.counts)
            for row, start, stop in zip(column.rows, stops - column.counts, stops, strict=True):
                assert name not in rows[row], "a row is in one column only"
                rows[row][name] = column.values[start:stop].tolist()
    return rows


@pytest.mark.parametrize("strange", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("count", [3, 40, 300])
def test_batches_hold_what_each_example_holds(strange: float, count: int) -> None:
    rng = np.random.default_rng(count)
    for _ in range(1 + 80 // count):
        batch = [random_example(rng, strange) for _ in range(count)]
        expected = [
            {name: values.tolist() for name, values in decode_example(data).items()} for data in batch
        ]
        assert values_by_row(batch) == expected


@given(st.integers(0, 2**32), st.sampled_from([1, 40, 3000]))
def test_long_examples_are_read_as_short_ones(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    images = [rng.bytes(int(rng.integers(size, 2 * size))) for _ in range(20)]
    batch = [encode_example({"image": image, "label": row * 37}) for row, image in enumerate(images)]
    wanted = {"image": FixedLenFeature([], "string"), "label": FixedLenFeature([], np.int64)}
    read = parse_example(batch, wanted)
    assert read["image"].tolist() == images
    assert read["label"].tolist() == [row * 37 for row in range(20)]


def test_batches_of_many_chunks_keep_their_order() -> None:
    batch = [
        encode_example({"x": np.full(300, row, np.float32), **({"y": [row] * (row % 5)} if row % 5 else {})})
        for row in range(4000)
    ]
    read = parse_example(batch, {"x": FixedLenFeature([300], np.float32), "y": VarLenFeature(np.int64)})
    assert read["x"][:, 7].tolist() == list(range(4000))
    assert read["y"].lengths.tolist() == [row % 5 for row in range(4000)]
    assert read["y"].values[3999].tolist() == [3999] * 4


@pytest.mark.parametrize("longest", [127, 16_383])
def test_two_texts_are_not_one_whose_length_lacks_a_byte(longest: int) -> None:
    """The length of one text takes a byte less than that of both: its low bits alone do not tell them apart."""
    texts = [bytes(longest - row % 2) for row in range(20)]
    first, second = b"a" * longest, b"b" * (longest - len(varint(longest)))
    batch = [*map(encode_example, [{"x": text} for text in texts]), encode_example({"x": [first, second]})]
    assert len(batch[-1]) - len(batch[0]) == longest + 1
    read = parse_example(batch, {"x": VarLenFeature("string")})["x"]
    assert read.lengths.tolist() == [1] * 20 + [2]
    assert read.values[20].tolist() == [first, second]
    assert read.values[:20, 0].tolist() == texts


@pytest.mark.parametrize("size", [1, 120, 127, 128, 16_380, 16_384, 2_097_150, 2_097_153])
def test_examples_of_every_length_of_length_are_read_together(size: int) -> None:
    """Also those of one size, which are compared as columns of bytes."""
    wanted = {"x": FixedLenFeature([], "string"), "n": VarLenFeature(np.int64)}
    for numbers in ([5] * 9, [row % 3 * 100 for row in range(9)]):
        texts = [bytes([row]) * size for row in range(9)]
        batch = [encode_example({"x": text, "n": n}) for text, n in zip(texts, numbers, strict=True)]
        read = parse_example(batch, wanted)
        assert read["x"].tolist() == texts
        assert read["n"].values[:, 0].tolist() == numbers
        damaged = [*batch[:-1], batch[-1][:-1]]
        with pytest.raises(InvalidArgumentError, match="example 8"):
            parse_example(damaged, wanted)


def test_what_is_not_wanted_is_not_looked_at() -> None:
    odd = delimited(1, delimited(1, delimited(1, b"z") + delimited(2, b"\x0a\x7f")))
    for count in (1, 30):
        batch = [encode_example({"a": 1}) + odd] * count
        assert parse_example(batch, {"a": FixedLenFeature([], np.int64)})["a"].tolist() == [1] * count
        with pytest.raises(InvalidArgumentError, match="example 0"):
            parse_example(batch, {"z": FixedLenFeature([], np.int64)})


@pytest.mark.parametrize("name", ["a", "bb", "e"])
def test_every_flipped_bit_of_an_example_is_read_as_alone_or_refused(name: str) -> None:
    rng = np.random.default_rng(4)
    kinds = {"a": 1, "bb": 2, "e": 3}
    entries = [
        [delimited(1, text.encode()) + delimited(2, feature(rng, kind, 2, 0)) for text, kind in kinds.items()]
        for _ in range(12)
    ]
    good = [delimited(1, b"".join(delimited(1, entry) for entry in each)) for each in entries]
    expected = values_by_row(good, (name,))
    for place in range(min(map(len, good))):
        for bit in range(8):
            bad = bytearray(good[5])
            bad[place] ^= 1 << bit
            batch = [*good[:5], bytes(bad), *good[6:]]
            try:
                alone = values_by_row([bytes(bad)], (name,))
            except InvalidArgumentError:
                with pytest.raises(InvalidArgumentError, match="example 5"):
                    columns(batch, (name,))
                continue
            assert values_by_row(batch, (name,)) == [*expected[:5], *alone, *expected[6:]]


def test_a_number_that_is_too_long_is_that_of_its_example() -> None:
    long = delimited(3, delimited(1, b"\x80" * 19 + b"\x01"))
    bad = delimited(1, delimited(1, delimited(1, b"a") + delimited(2, long)))
    batch = [encode_example({"a": list(range(30))}) for _ in range(20)]
    with pytest.raises(InvalidArgumentError, match=r"example 7 .* has 20 bytes"):
        parse_example([*batch[:7], bad, *batch[8:]], {"a": VarLenFeature(np.int64)})


def table_row(rng: np.random.Generator, bits: int) -> dict[str, Any]:
    """Features of which several have the same kind and number of values."""
    numbers = {f"i{n}": int(rng.integers(-(2**bits), 2**bits)) for n in range(5)}
    texts = {f"t{n}": rng.bytes(int(rng.integers(0, bits + 1))) for n in range(3)}
    return {**numbers, **{f"f{n}": float(np.float32(rng.random())) for n in range(4)}, **texts}


@given(st.integers(0, 2**32), st.integers(1, 63), st.sampled_from(range(12)))
def test_rows_of_a_table_are_read_as_they_were_written(seed: int, bits: int, strange: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [table_row(rng, bits) for _ in range(30)]
    batch = [encode_example(row) for row in rows]
    for row in rng.permutation(30)[:strange].tolist():  # legal, and no two alike
        batch[row] += delimited(15, rng.bytes(row))
    kinds = {"i": np.int64, "f": np.float32, "t": "string"}
    wanted = {name: FixedLenFeature([], kinds[name[0]]) for name in rows[0]}
    for _ in range(2):  # the second time with what the first one has learned
        read = parse_example(batch, wanted)
        assert {name: values.tolist() for name, values in read.items()} == {
            name: [row[name] for row in rows] for name in wanted
        }


def test_lengths_may_begin_to_vary() -> None:
    wanted = {name: FixedLenFeature([], np.int64) for name in ("p", "q", "r")}
    for largest in (1, 1, 2**14, 2**62, 1):
        numbers = [largest - row % 2 for row in range(20)]
        batch = [encode_example({"p": 1, "q": number, "r": -number}) for number in numbers]
        read = parse_example(batch, wanted)
        assert read["p"].tolist() == [1] * 20
        assert read["q"].tolist() == numbers
        assert read["r"].tolist() == [-number for number in numbers]


def test_short_examples_follow_long_ones() -> None:
    long = {f"name {n}": [n] * 200 for n in range(40)}
    wanted = {"name 7": VarLenFeature(np.int64)}
    assert parse_example([encode_example(long)] * 9, wanted)["name 7"].lengths.tolist() == [200] * 9
    short = [encode_example({"name 7": [row, row]}) for row in range(9)]
    assert parse_example(short, wanted)["name 7"].values.tolist() == [[row, row] for row in range(9)]
    assert parse_example([b""] * 9, wanted)["name 7"].lengths.tolist() == [0] * 9


@pytest.mark.parametrize("count", [3, 3000])
def test_long_arrays_are_read_as_short_ones(count: int) -> None:
    rng = np.random.default_rng(count)
    arrays = [rng.random(count + row % 2, np.float32) for row in range(20)]
    batch = [encode_example({"x": array, "y": [row] * 5}) for row, array in enumerate(arrays)]
    wanted = {"x": VarLenFeature(np.float32), "y": FixedLenFeature([5], np.int64)}
    read = parse_example(batch, wanted)
    for row, array in enumerate(arrays):
        assert read["x"].values[row, : len(array)].tolist() == array.tolist()
    assert read["y"].tolist() == [[row] * 5 for row in range(20)]
    read["x"].values[0, 0] = 5  # the result is writable


_COUNT_FAULTS = """
import resource
from workbench.io import FixedLenFeature, encode_example, parse_example
batch = [encode_example({"x": bytes(100_000 + row)}) for row in range(64)]
for _ in range(10):
    parsed = parse_example(batch, {"x": FixedLenFeature([], "string")})
    if _ == 4:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc",
    reason="this system's C library is not glibc, whose way of keeping freed memory is tested",
)
def test_batches_of_long_texts_take_their_memory_from_the_system_once() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    done = subprocess.run(
        [sys.executable, "-c", _COUNT_FAULTS], env=environment, capture_output=True, text=True, check=True
    )
    pages_of_a_batch = 64 * 100_000 // 4096
    assert int(done.stdout) < pages_of_a_batch  # in five batches
