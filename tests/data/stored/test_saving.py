"""`Dataset.save` and `Dataset.load`: what comes back, what is refused, what damage is found."""

from __future__ import annotations

import collections
import dataclasses
import errno
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

from workbench import tree
from workbench.data import Dataset, TensorSpec
from workbench.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    StorageFull,
)
from workbench.io.record_writer import TFRecordWriter


class Pair(NamedTuple):
    left: Any
    right: Any


def ints(dataset: Dataset) -> list[int]:
    return [int(x) for x in dataset]


def ragged() -> Dataset:
    return Dataset.from_generator(
        lambda: (np.full((n, 2), n, np.float32) for n in (0, 3, 1, 0, 2)),
        output_signature=TensorSpec((None, 2), np.float32),
    )


def records_of(path: Path) -> Path:
    (file,) = path.glob("pass-*/0.records")
    return file


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, bytes):
        return bool(a == b)
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return False
    return bool(a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes())


@pytest.mark.parametrize("compression", [None, "GZIP", "SNAPPY", "AUTO"])
@pytest.mark.parametrize(
    "dataset",
    [
        Dataset.range(20_000),
        Dataset.range(0),
        Dataset.from_tensor_slices((np.arange(12.0).reshape(4, 3), [b"a", b"", b"\0\xff", b"long" * 99])),
        Dataset.from_tensor_slices({"b": {"c": np.arange(3, dtype=">i2")}, "a": np.arange(3) > 1}),
        Dataset.from_tensor_slices(np.arange(6).astype(ml_dtypes.bfloat16).reshape(3, 2)),
        Dataset.from_tensor_slices(np.array(["2020-01-01", "NaT"], "M8[D]")),
        Dataset.from_tensors((np.zeros((0, 3), np.complex64), (), None, np.array([[b"x", b"yy"]], object))),
        Dataset.range(10).batch(4),
        Dataset.range(10).map(lambda x: (x, {"twice": x * 2, "text": b"%d" % int(x)})),
        ragged(),
    ],
    ids=["range", "empty", "texts", "nested", "bfloat16", "times", "odd", "batches", "map", "ragged"],
)
def test_elements_come_back_as_they_were(dataset: Dataset, compression: str | None, tmp_path: Path) -> None:
    dataset.save(tmp_path / "d", compression)
    loaded = Dataset.load(tmp_path / "d")

    assert loaded.element_spec == dataset.element_spec
    expected, got = list(dataset), list(loaded)
    assert len(expected) == len(got) == loaded.cardinality()
    for a, b in zip(expected, got, strict=True):
        (leaves, structure), (others, other) = tree.flatten(a), tree.flatten(b)
        assert structure == other
        assert all(map(equal, leaves, others))


def test_named_tuples_come_back_and_element_spec_gives_them_their_class(tmp_path: Path) -> None:
    dataset = Dataset.from_tensor_slices(
        Pair(np.arange(3), collections.OrderedDict(b=np.ones(3), a=np.zeros(3)))
    )
    dataset.save(tmp_path / "d")

    first = Dataset.load(tmp_path / "d").first()
    own = Dataset.load(tmp_path / "d", dataset.element_spec).first()

    assert type(first).__name__ == "Pair"
    assert first._fields == ("left", "right")
    assert list(first.right) == ["b", "a"]
    assert type(own) is Pair


@dataclass
class Record:
    _left: Any
    right: Any


class Told:
    """A class that says itself what it holds."""

    def __init__(self, left: Any, right: Any) -> None:
        self.left, self.right = left, right

    def __tf_flatten__(self) -> tuple[Any, Any]:
        return (), (self.left, self.right)

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: Any) -> Told:
        return cls(*components)


@pytest.mark.parametrize("kind", [Record, Told])
def test_records_come_back_as_named_tuples_or_in_the_class_of_element_spec(tmp_path: Path, kind: Any) -> None:
    dataset = Dataset.range(3).map(lambda x: kind(x, {"a": -x}))
    dataset.save(tmp_path / "d")

    loaded = list(Dataset.load(tmp_path / "d"))
    assert [(int(record[0]), int(record[1]["a"])) for record in loaded] == [(0, 0), (1, -1), (2, -2)]
    assert type(loaded[0]).__name__ == kind.__name__
    again = list(Dataset.load(tmp_path / "d", dataset.element_spec))
    assert [type(record) for record in again] == [kind] * 3
    assert [int(record.right["a"]) for record in again] == [0, -1, -2]


def test_a_class_in_element_spec_need_not_have_been_an_element(tmp_path: Path) -> None:
    Dataset.range(2).map(lambda x: Pair(x, x)).save(tmp_path / "d")

    Other = dataclasses.make_dataclass("Pair", ["left", "right"])
    spec = TensorSpec((), np.int64)
    (first, _) = Dataset.load(tmp_path / "d", Other(spec, spec))
    assert type(first) is Other
    assert (int(first.left), int(first.right)) == (0, 0)


@pytest.mark.parametrize("kind", [Record, Told])
def test_a_snapshot_holds_records(tmp_path: Path, kind: Any) -> None:
    dataset = Dataset.range(3).map(lambda x: kind(x, -x)).snapshot(tmp_path / "s")
    for _ in range(2):
        found = list(dataset)
        assert [type(record) for record in found] == [kind] * 3
        assert [int(record.right) for record in found] == [0, -1, -2]


def test_loaded_datasets_go_through_further_stages_and_can_be_read_again(tmp_path: Path) -> None:
    Dataset.range(10).save(tmp_path / "d")

    loaded = Dataset.load(tmp_path / "d").shuffle(10, seed=1).batch(3)

    assert sorted(x for batch in loaded for x in batch.tolist()) == list(range(10))
    assert sorted(x for batch in loaded for x in batch.tolist()) == list(range(10))


def test_shard_func_chooses_files_which_reader_func_reads(tmp_path: Path) -> None:
    Dataset.range(9).save(tmp_path / "d", shard_func=lambda x: x % 3)

    assert sorted(file.name for file in tmp_path.glob("d/pass-*/*.records")) == [
        "0.records",
        "1.records",
        "2.records",
    ]
    assert ints(Dataset.load(tmp_path / "d")) == list(range(9))
    in_rows = Dataset.load(tmp_path / "d", reader_func=lambda shards: shards.flat_map(lambda shard: shard))
    assert ints(in_rows) == [0, 3, 6, 1, 4, 7, 2, 5, 8]


def test_ids_of_elements_tell_the_file_and_the_place_in_it(tmp_path: Path) -> None:
    Dataset.range(20_000).save(tmp_path / "one")
    Dataset.range(6).save(tmp_path / "two", shard_func=lambda x: x % 2)

    assert _ids(Dataset.load(tmp_path / "one")) == list(range(20_000))
    assert _ids(Dataset.load(tmp_path / "two")) == [file << 32 | row for row in range(3) for file in range(2)]


def _ids(dataset: Dataset) -> list[int]:
    return [int(i) for run in dataset.open(dataset.next_pass(provenance=True)) for i in run.ids()]


@pytest.mark.parametrize("result", [-1, 0.5, b"0", None])
def test_shard_func_must_give_a_number(result: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="shard_func must return"):
        Dataset.range(2).save(tmp_path / "d", shard_func=lambda x: result)
    assert not list(tmp_path.glob("d/pass-*"))


def test_too_many_shards_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="at most 256"):
        Dataset.range(300).save(tmp_path / "d", shard_func=lambda x: x)


def test_saving_again_replaces_all_or_nothing(tmp_path: Path) -> None:
    def fails(x: Any) -> Any:
        if x == 3:
            raise ZeroDivisionError("third")
        return x

    Dataset.range(3).save(tmp_path / "d")
    with pytest.raises(ZeroDivisionError):
        Dataset.range(9).map(fails).save(tmp_path / "d")
    assert ints(Dataset.load(tmp_path / "d")) == [0, 1, 2]

    Dataset.range(5).save(tmp_path / "d")

    assert ints(Dataset.load(tmp_path / "d")) == [0, 1, 2, 3, 4]
    assert len(list(tmp_path.glob("d/pass-*"))) == 1


def test_a_dataset_can_be_saved_where_it_was_loaded_from(tmp_path: Path) -> None:
    Dataset.range(3).save(tmp_path / "d")

    Dataset.load(tmp_path / "d").map(lambda x: x + 1).save(tmp_path / "d")

    assert ints(Dataset.load(tmp_path / "d")) == [1, 2, 3]


def test_what_a_killed_process_left_is_not_loaded_and_goes_with_the_next_save(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from workbench.data import Dataset\n"
        "def f(x):\n"
        "    if x == 9000: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return x\n"
        "Dataset.range(20000).map(f).save(sys.argv[1])"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(tmp_path / "d")], timeout=120)
    assert ended.returncode == -signal.SIGKILL
    assert len(list(tmp_path.glob("d/pass-*"))) == 1
    with pytest.raises(NotFoundError, match="only once it is complete"):
        Dataset.load(tmp_path / "d")

    Dataset.range(2).save(tmp_path / "d")

    assert ints(Dataset.load(tmp_path / "d")) == [0, 1]
    assert len(list(tmp_path.glob("d/pass-*"))) == 1


def test_saves_at_the_same_time_do_not_take_each_others_files(tmp_path: Path) -> None:
    def saves_too(x: Any) -> Any:
        if x == 1:
            Dataset.range(2).save(tmp_path / "d")
        return x

    Dataset.range(4).map(saves_too).save(tmp_path / "d")

    assert ints(Dataset.load(tmp_path / "d")) == [0, 1, 2, 3]


@pytest.mark.parametrize("compression", [None, "GZIP", "SNAPPY"])
def test_a_flipped_byte_anywhere_is_found(compression: str | None, tmp_path: Path) -> None:
    Dataset.from_tensor_slices((np.arange(6), [b"a", b"b", b"c", b"d", b"e", b"f"])).save(
        tmp_path / "d", compression
    )
    for file in (records_of(tmp_path / "d"), tmp_path / "d" / "dataset.json"):
        good = file.read_bytes()
        for place in range(len(good)):
            file.write_bytes(good[:place] + bytes([good[place] ^ 0x10]) + good[place + 1 :])
            with pytest.raises(DataLossError, match=f"{file.name}.*byte"):
                list(Dataset.load(tmp_path / "d"))
        file.write_bytes(good)
    assert len(list(Dataset.load(tmp_path / "d"))) == 6


def test_a_cut_file_is_found_wherever_it_is_cut(tmp_path: Path) -> None:
    ragged().save(tmp_path / "d")
    for file in (records_of(tmp_path / "d"), tmp_path / "d" / "dataset.json"):
        good = file.read_bytes()
        for size in range(len(good)):
            file.write_bytes(good[:size])
            with pytest.raises(DataLossError, match=file.name):
                list(Dataset.load(tmp_path / "d"))
        file.write_bytes(good)


def test_a_file_in_the_place_of_another_is_found(tmp_path: Path) -> None:
    Dataset.range(6).save(tmp_path / "d", shard_func=lambda x: x % 2)
    first, second = sorted(tmp_path.glob("d/pass-*/*.records"))
    second.write_bytes(first.read_bytes())

    with pytest.raises(DataLossError, match=r"1\.records' has other blocks than those that were saved"):
        list(Dataset.load(tmp_path / "d"))


def test_a_missing_file_and_a_missing_dataset_are_told(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"no stored dataset.*Dataset.save"):
        Dataset.load(tmp_path / "nothing")
    Dataset.range(3).save(tmp_path / "d")
    records_of(tmp_path / "d").unlink()
    with pytest.raises(DataLossError, match=r"0\.records' is missing"):
        list(Dataset.load(tmp_path / "d"))


@pytest.mark.parametrize(
    "spec",
    [
        TensorSpec((), np.int32),
        TensorSpec((None,), np.int64),
        (TensorSpec((), np.int64),),
        {"a": TensorSpec((), np.int64)},
    ],
)
def test_another_element_spec_is_refused(spec: Any, tmp_path: Path) -> None:
    Dataset.range(3).save(tmp_path / "d")
    with pytest.raises(InvalidArgumentError, match="has elements"):
        Dataset.load(tmp_path / "d", spec)


def test_a_wider_element_spec_and_the_right_compression_are_taken(tmp_path: Path) -> None:
    Dataset.range(4).batch(2, drop_remainder=True).save(tmp_path / "d", "GZIP")
    wider = TensorSpec((None,), np.int64)

    assert Dataset.load(tmp_path / "d", wider, "GZIP").element_spec == wider
    with pytest.raises(InvalidArgumentError, match="compression 'GZIP'"):
        Dataset.load(tmp_path / "d", compression="SNAPPY")


def test_what_cannot_be_stored_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="endless"):
        Dataset.range(3).repeat().save(tmp_path / "d")
    with pytest.raises(InvalidArgumentError, match="hold datasets"):
        Dataset.range(3).window(2).save(tmp_path / "d")
    with pytest.raises(InvalidArgumentError, match="compression"):
        Dataset.range(3).save(tmp_path / "d", "ZSTD")
    assert not (tmp_path / "d").exists()


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FailedPreconditionError, match=r"notes\.txt"):
        Dataset.range(3).save(tmp_path)
    with pytest.raises(FailedPreconditionError, match="not a folder"):
        Dataset.range(3).save(tmp_path / "notes.txt")
    assert os.listdir(tmp_path) == ["notes.txt"]


@pytest.mark.parametrize("beside", ["lock", "dataset.json", "pass-0123456789abcdef"])
def test_a_folder_with_other_things_beside_names_of_ours_is_left_alone(tmp_path: Path, beside: str) -> None:
    (tmp_path / beside).touch()
    (tmp_path / "pass-fail").mkdir()
    (tmp_path / "pass-fail" / "table.csv").write_text("mine")

    with pytest.raises(FailedPreconditionError, match="pass-fail"):
        Dataset.range(3).save(tmp_path)
    assert (tmp_path / "pass-fail" / "table.csv").read_text() == "mine"


def test_a_full_disk_leaves_what_was_saved_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Dataset.range(3).save(tmp_path / "d")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", _raises(errno.ENOSPC))
        with pytest.raises(StorageFull, match="no space left for the dataset"):
            Dataset.range(9).save(tmp_path / "d")

    assert ints(Dataset.load(tmp_path / "d")) == [0, 1, 2]
    assert len(list(tmp_path.glob("d/pass-*"))) == 1


def test_a_file_that_may_not_grow_further_is_told(tmp_path: Path) -> None:
    code = (
        "import resource, signal, sys; from workbench.data import Dataset; from workbench.errors import StorageFull\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try: Dataset.range(100000).save(sys.argv[1])\n"
        "except StorageFull as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "d")],
        timeout=120,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "0.records" in done.stdout
    assert sorted(os.listdir(tmp_path / "d")) == ["lock"]


def test_a_manifest_names_no_file_elsewhere_and_no_code(tmp_path: Path) -> None:
    from workbench.io.checksums import crc32c

    Dataset.range(3).save(tmp_path / "d")
    file = tmp_path / "d" / "dataset.json"
    body = file.read_bytes().splitlines()[0]
    for old, new in ((b'"0.records"', b'"../0.records"'), (b'"<i8"', b'"|O"'), (b'"<i8"', b'"os.system"')):
        bad = body.replace(old, new)
        assert bad != body
        file.write_bytes(bad + b"\n%08x\n" % crc32c(bad))
        with pytest.raises(DataLossError, match="not a manifest"):
            Dataset.load(tmp_path / "d")


@pytest.mark.parametrize("block", [b"", b"\xff\xff\xff\x7f{}", b"\x02\0\0\0{}", b"\x02\0\0\0[]"])
def test_a_block_that_nobody_wrote_is_damage(block: bytes, tmp_path: Path) -> None:
    Dataset.range(3).save(tmp_path / "d")
    with TFRecordWriter(str(records_of(tmp_path / "d"))) as writer:
        writer.write(block)
    with pytest.raises(DataLossError, match="block 0 is not a block"):
        list(Dataset.load(tmp_path / "d"))


def _raises(number: int) -> Any:
    def call(*args: Any) -> None:
        raise OSError(number, os.strerror(number))

    return call
