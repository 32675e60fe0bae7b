"""`snapshot`: what is written, when it is read, and to which pipeline it belongs."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench.data import Dataset, experimental
from workbench.data.stored.fingerprint import fingerprint, fingerprints
from workbench.errors import DataLossError, InvalidArgumentError


class Counting:
    """A function that tells how often it was called."""

    def __init__(self, fn: Callable[[Any], Any]) -> None:
        self.fn = fn
        self.calls = 0

    def dataset(self, count: int) -> Dataset:
        """Numbers, counted after `element_spec` has been looked at."""
        dataset = Dataset.range(count).map(self._call)
        assert dataset.element_spec
        self.calls = 0
        return dataset

    def _call(self, x: Any) -> Any:
        self.calls += 1
        return self.fn(x)


def ints(dataset: Dataset) -> list[int]:
    return [int(x) for x in dataset]


def complete(path: Path) -> int:
    return len(list(path.glob("*/dataset.json")))


@pytest.mark.parametrize("compression", ["AUTO", None, "GZIP", "SNAPPY"])
def test_the_first_pass_writes_and_later_ones_read(compression: str | None, tmp_path: Path) -> None:
    double = Counting(lambda x: x * 2)
    dataset = double.dataset(5).snapshot(tmp_path, compression)

    assert ints(dataset) == ints(dataset) == ints(dataset.repeat(2))[:5] == [0, 2, 4, 6, 8]
    assert double.calls == 5 + 2  # writing needs the element spec
    assert complete(tmp_path) == 1


def test_a_pass_that_stops_early_leaves_nothing(tmp_path: Path) -> None:
    dataset = Dataset.range(5).snapshot(tmp_path)

    assert ints(dataset.take(2)) == [0, 1]
    assert complete(tmp_path) == 0
    assert not list(tmp_path.glob("*/pass-*"))
    assert ints(dataset) == [0, 1, 2, 3, 4]


def test_a_pass_with_a_failed_element_leaves_nothing(tmp_path: Path) -> None:
    def fails_once(x: Any) -> Any:
        if x == 3 and not tmp_path.joinpath("failed").exists():
            tmp_path.joinpath("failed").touch()
            raise ZeroDivisionError
        return x

    dataset = Dataset.range(5).map(fails_once).snapshot(tmp_path / "s")
    tmp_path.joinpath("failed").unlink(missing_ok=True)
    elements = iter(dataset)
    assert [int(next(elements)) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ZeroDivisionError):
        next(elements)
    assert ints(elements) == [4]  # type: ignore[arg-type]
    assert complete(tmp_path / "s") == 0
    assert ints(dataset) == [0, 1, 2, 3, 4]
    assert complete(tmp_path / "s") == 1


def test_another_pipeline_in_the_same_path_has_its_own(tmp_path: Path) -> None:
    for factor in (1, 2, 3):
        assert ints(Dataset.range(3).map(lambda x, f=factor: x * f).snapshot(tmp_path)) == [
            0,
            factor,
            2 * factor,
        ]
    assert complete(tmp_path) == 3


def test_hosts_with_different_shards_do_not_take_each_others(tmp_path: Path) -> None:
    first, second = (Dataset.range(6).shard(2, index).snapshot(tmp_path) for index in (0, 1))

    assert (ints(first), ints(second)) == ([0, 2, 4], [1, 3, 5])
    assert (ints(first), ints(second)) == ([0, 2, 4], [1, 3, 5])


def test_another_process_reads_it(tmp_path: Path) -> None:
    code = (
        "import sys; from workbench.data import Dataset\n"
        "scale = 3\n"
        "def f(x):\n"
        "    print('called')\n"
        "    return {x * scale for _ in [0]}.pop()\n"
        "d = Dataset.range(4).map(f).shuffle(4).snapshot(sys.argv[1])\n"
        "d.element_spec; print('start'); print([int(x) for x in d])"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    first, second = (
        subprocess.run(command, timeout=120, check=True, capture_output=True, text=True).stdout.partition(
            "start\n"
        )[2]
        for _ in range(2)
    )

    assert first.count("called") == 4 + 2  # writing needs the element spec
    assert second == first.replace("called\n", "")


def test_what_a_killed_process_left_is_not_read_and_goes(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from workbench.data import Dataset\n"
        "for n, x in enumerate(Dataset.range(5).map(lambda x: x).snapshot(sys.argv[1], snapshot_name='mine')):\n"
        "    if n == 3: os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(tmp_path)], timeout=120)
    assert ended.returncode == -signal.SIGKILL
    assert len(list(tmp_path.glob("mine/pass-*"))) == 1

    dataset = Dataset.range(7).snapshot(tmp_path, snapshot_name="mine")

    assert ints(dataset) == ints(dataset) == list(range(7))
    assert len(list(tmp_path.glob("mine/pass-*"))) == 1


def test_while_one_writes_another_gives_its_own_elements(tmp_path: Path) -> None:
    dataset = Dataset.range(4).map(lambda x: x).snapshot(tmp_path)
    writer = iter(dataset)
    assert next(writer) == 0

    assert ints(dataset) == [0, 1, 2, 3]
    assert complete(tmp_path) == 0
    assert ints(writer) == [1, 2, 3]  # type: ignore[arg-type]
    assert complete(tmp_path) == 1


def test_a_named_one_has_as_many_elements_as_its_files(tmp_path: Path) -> None:
    assert len(Dataset.range(3).snapshot(tmp_path, snapshot_name="mine")) == 3
    list(Dataset.range(9).snapshot(tmp_path, snapshot_name="mine"))

    changed = Dataset.range(3).snapshot(tmp_path, snapshot_name="mine")

    assert len(changed) == len(ints(changed)) == 9
    assert len(Dataset.range(3).snapshot(tmp_path)) == 3


def test_numbers_of_different_chosen_seeds_are_stored_apart(tmp_path: Path) -> None:
    first, second = (Dataset.random(seed=seed).take(3) for seed in (1, 2))
    assert ints(first.snapshot(tmp_path)) == ints(first)
    assert ints(second.snapshot(tmp_path)) == ints(second)
    drawn = ints(Dataset.random().take(3).snapshot(tmp_path))
    assert ints(Dataset.random().take(3).snapshot(tmp_path)) == drawn


def test_shard_func_and_reader_func(tmp_path: Path) -> None:
    def rows(shards: Dataset) -> Dataset:
        return shards.flat_map(lambda shard: shard)

    dataset = Dataset.range(6).snapshot(tmp_path, reader_func=rows, shard_func=lambda x: x % 2)

    assert ints(dataset) == [0, 1, 2, 3, 4, 5]
    assert ints(dataset) == [0, 2, 4, 1, 3, 5]


def test_damage_is_told(tmp_path: Path) -> None:
    dataset = Dataset.range(3).snapshot(tmp_path)
    assert len(list(dataset)) == 3
    (file,) = tmp_path.glob("*/pass-*/0.records")
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(DataLossError, match=r"0\.records"):
        list(dataset)


def test_arguments_are_checked(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="compression"):
        Dataset.range(3).snapshot(tmp_path, "LZ4")
    with pytest.raises(InvalidArgumentError, match="not a name of a folder"):
        Dataset.range(3).snapshot(tmp_path, snapshot_name="../x")
    lock = threading.Lock()
    with pytest.raises(InvalidArgumentError, match="snapshot_name="):
        list(Dataset.range(3).map(lambda x: x if lock else 0).snapshot(tmp_path))


def test_the_experimental_form_is_the_same(tmp_path: Path) -> None:
    dataset = Dataset.range(3).apply(experimental.snapshot(str(tmp_path), compression="GZIP"))

    assert ints(dataset) == ints(dataset) == [0, 1, 2]
    assert dataset.element_spec == Dataset.range(3).element_spec
    assert len(dataset) == 3


_BASE = 1


def _uses_global(x: Any) -> Any:
    return x + _BASE


def _print(*datasets: Dataset) -> set[str]:
    return {fingerprint(dataset.source, dataset.stages, seeds=False) for dataset in datasets}


def test_pipelines_that_do_the_same_have_one_fingerprint() -> None:
    def made(factor: int) -> Dataset:
        return Dataset.from_tensor_slices({"a": np.arange(4), "b": [b"x"] * 4}).map(
            lambda d: (d["a"] * factor, {3, 1, 2}, functools.partial(_uses_global, 1))[0]
        )

    assert len(_print(made(2), made(2))) == 1
    assert len(_print(made(2), made(3))) == 2
    assert len(_print(Dataset.range(3).shuffle(3), Dataset.range(3).shuffle(3))) == 1
    assert len(_print(Dataset.range(3).shuffle(3), Dataset.range(3).shuffle(2))) == 2
    zipped = [Dataset.zip((Dataset.range(3).batch(n), Dataset.range(3).batch(2))) for n in (1, 2, 1)]
    assert len(_print(*zipped)) == 2


def test_one_walk_gives_both_fingerprints() -> None:
    shuffled = Dataset.range(3).shuffle(3)
    among = {3, 1, 2}
    for dataset in (shuffled, Dataset.zip((shuffled.map(lambda x: x in among), Dataset.random(seed=1)))):
        source, stages = dataset.source, dataset.stages
        both = (fingerprint(source, stages, seeds=True), fingerprint(source, stages, seeds=False))
        assert fingerprints(source, stages) == both
        assert both[0] != both[1]


def test_what_a_cache_holds_and_snapshots_know_does_not_count(tmp_path: Path) -> None:
    dataset = Dataset.range(3).snapshot(tmp_path).cache()
    before = _print(dataset)
    list(dataset)

    assert _print(dataset) == before


def test_values_of_globals_count(monkeypatch: pytest.MonkeyPatch) -> None:
    before = _print(Dataset.range(3).map(_uses_global))
    monkeypatch.setitem(globals(), "_BASE", 2)

    assert _print(Dataset.range(3).map(_uses_global)) != before


def test_every_byte_of_arrays_counts() -> None:
    arrays = [
        np.zeros(5, np.uint8),
        np.zeros(5, np.int8),
        np.zeros((5, 1), np.uint8),
        np.array([0, 0, 0, 0, 1], np.uint8),
    ]

    assert len(_print(*map(Dataset.from_tensor_slices, arrays))) == 4


def test_no_file_is_left_open_or_elsewhere(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
    dataset = Dataset.range(3).snapshot(tmp_path)
    list(dataset.take(1))
    list(dataset)
    list(dataset)

    assert len(os.listdir("/proc/self/fd") if before else []) == len(before)
    (folder,) = tmp_path.iterdir()
    assert [name.partition("-")[0] for name in sorted(os.listdir(folder))] == ["dataset.json", "lock", "pass"]
