"""Caches in files: what they hold, where they are, and what is told if they cannot be."""

from __future__ import annotations

import collections
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from workbench.data import Dataset
from workbench.data.passes import Pass
from workbench.data.stage import Opener, Pipeline, Stage
from workbench.data.tables import Run
from workbench.errors import FailedPreconditionError, InvalidArgumentError


class _Point(NamedTuple):
    x: Any
    y: Any


@dataclass
class _Record:
    x: Any
    y: Any


ELEMENTS = {
    "dict": {"a": 1, "b": (2, "text")},
    "nested": (1, (2, (3.5,))),
    "nothing": (1, None),
    "ordered": collections.OrderedDict(b=1, a=2),
    "named": _Point(1, {"a": 2}),
    "record": _Record(np.arange(3), _Point("a", b"b\0")),
    "texts": ["a", "bcd", ""],
    "empty": np.zeros((2, 0)),
}


@pytest.mark.parametrize("kind", list(ELEMENTS))
def test_a_file_holds_elements_of_every_structure(tmp_path: Path, kind: str) -> None:
    dataset = Dataset.from_tensors(ELEMENTS[kind]).repeat(2)

    first = list(dataset.cache(str(tmp_path / "c")))
    again = list(Dataset.from_tensors(ELEMENTS[kind]).repeat(2).cache(str(tmp_path / "c")))

    assert repr(first) == repr(list(dataset)) == repr(again)
    assert list(tmp_path.glob("c.cache/pass-*/*.records")), "elements are read from there"


def test_elements_go_to_the_file_while_they_are_made(tmp_path: Path) -> None:
    dataset = Dataset.range(3).map(lambda x: np.full(200_000, x)).cache(str(tmp_path / "c"))
    elements = iter(dataset)
    next(elements)
    next(elements)
    (file,) = tmp_path.glob("c.cache/pass-*/0.records")
    assert file.stat().st_size > 1_000_000


def test_a_pass_meanwhile_gives_its_own_elements(tmp_path: Path) -> None:
    dataset = Dataset.range(3).cache(str(tmp_path / "c"))
    elements = iter(dataset)
    next(elements)
    assert [int(x) for x in dataset] == [0, 1, 2]
    assert [int(x) for x in elements] == [1, 2]
    assert [int(x) for x in Dataset.range(9).cache(str(tmp_path / "c"))] == [0, 1, 2]


def test_a_missing_folder_is_made(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "folder" / "c"
    assert [int(x) for x in Dataset.range(3).cache(str(path))] == [0, 1, 2]
    assert [int(x) for x in Dataset.range(9).cache(path)] == [0, 1, 2]


def test_a_place_below_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    with pytest.raises(FailedPreconditionError, match=r"file/c\.cache' is not a folder; give another path"):
        list(Dataset.range(3).cache(str(tmp_path / "file" / "c")))
    assert (tmp_path / "file").read_bytes() == b"content"


def test_windows_are_refused_by_the_pass(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="elements that hold datasets cannot be stored or sent"):
        list(Dataset.range(4).window(2).cache(str(tmp_path / "c")))


def test_a_pipeline_of_other_elements_reads_what_is_there(tmp_path: Path) -> None:
    list(Dataset.from_tensors(_Point(1, 2)).cache(str(tmp_path / "c")))
    (found,) = Dataset.range(3).cache(str(tmp_path / "c"))
    assert (int(found.x), int(found.y)) == (1, 2)


def _many(x: Any) -> Any:
    return np.full(400_000, x)


def test_a_changed_pipeline_has_as_many_elements_as_the_files(tmp_path: Path) -> None:
    list(Dataset.range(9).map(_many).cache(tmp_path / "first"))

    changed = Dataset.range(3).map(_many).cache(tmp_path / "first")
    again = changed.map(lambda x: x).cache(tmp_path / "second")

    assert len(changed) == len(again) == 9
    for _ in range(2):
        assert [int(x[0]) for x in again] == list(range(9))


class _States(Stage):
    """States a wrong number of elements."""

    name = "states"

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        return upstream()

    def cardinality(self, upstream: Pipeline) -> int:
        return 3


@pytest.mark.parametrize(
    ("dataset", "least"),
    [
        (Dataset.range(9).map(lambda x: x), 4),
        (Dataset.range(3).concatenate(Dataset.range(3, 9)), 9),
    ],
    ids=["one by one", "in runs"],
)
def test_more_elements_than_stated_are_an_error(tmp_path: Path, dataset: Dataset, least: int) -> None:
    cached = dataset.with_stage(_States()).cache(tmp_path / "c")
    for _ in range(2):  # the second pass finds nothing that would end early
        elements = iter(cached)
        assert [int(next(elements)) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(
            FailedPreconditionError,
            match=rf"states 3 elements but has at least {least}, so .*c\.cache' does not store it",
        ):
            next(elements)
        assert [path.name for path in (tmp_path / "c.cache").iterdir()] == ["lock"]


@pytest.mark.parametrize("damage", ["manifest", "cut off", "folder"])
def test_more_elements_than_stated_are_explained_whatever_became_of_the_files(
    tmp_path: Path, damage: str
) -> None:
    elements = iter(Dataset.range(9).map(lambda x: x).with_stage(_States()).cache(tmp_path / "c"))
    assert [int(next(elements)) for _ in range(3)] == [0, 1, 2]
    folder = tmp_path / "c.cache"
    match damage:
        case "manifest":
            (folder / "dataset.json").unlink()
        case "cut off":
            (folder / "dataset.json").write_text("{")
        case "folder":
            shutil.rmtree(folder)
    with pytest.raises(FailedPreconditionError, match="states 3 elements"):
        next(elements)


def test_of_two_writers_the_first_counts_and_either_explains_more_elements_than_stated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.data.stored.file_cache.is_being_written", lambda path: False)
    dataset = Dataset.range(9).map(lambda x: x).with_stage(_States())
    first, second = (iter(dataset.cache(tmp_path / "c")) for _ in range(2))
    for _ in range(3):
        assert next(first) == next(second)
    with pytest.raises(FailedPreconditionError, match="states 3 elements"):
        next(second)
    assert (tmp_path / "c.cache" / "dataset.json").exists()
    with pytest.raises(FailedPreconditionError, match="states 3 elements"):
        next(first)
    assert [path.name for path in (tmp_path / "c.cache").iterdir()] == ["lock"]


def test_a_relative_name_stays_where_the_dataset_was_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    dataset = Dataset.range(3).cache("c")
    (tmp_path / "elsewhere").mkdir()
    os.chdir(tmp_path / "elsewhere")
    assert [int(x) for x in dataset] == [0, 1, 2]
    assert (tmp_path / "c.cache").is_dir()
