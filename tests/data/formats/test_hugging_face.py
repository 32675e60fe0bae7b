"""Datasets of Hugging Face's library as sources."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tqdm import tqdm

import workbench as wb
from workbench.data import Dataset, TensorSpec, from_hugging_face
from workbench.errors import DataLossError, InvalidArgumentError

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing here is downloaded
tqdm.monitor_interval = 0  # its thread would outlive the module

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # from the library's imports
    datasets = pytest.importorskip(
        "datasets", reason="Hugging Face datasets is not installed: pip install datasets"
    )

COUNT = 2500


@pytest.fixture(scope="module")
def rows() -> Any:
    return datasets.Dataset.from_dict(
        {
            "x": np.arange(COUNT),
            "text": [f"n{i}" for i in range(COUNT)],
            "pair": np.arange(2.0 * COUNT).reshape(-1, 2).tolist(),
            "tokens": [[i] * (i % 3) for i in range(COUNT)],
        }
    )


def xs(dataset: Any) -> list[int]:
    return [int(row["x"]) for row in dataset]


def test_rows_are_dicts_of_arrays(rows: Any) -> None:
    dataset = from_hugging_face(rows)
    assert dataset.element_spec == {
        "x": TensorSpec((), np.int64),
        "text": TensorSpec((), "string"),
        "pair": TensorSpec((None,), np.float64),
        "tokens": TensorSpec((None,), np.int64),
    }
    assert len(dataset) == COUNT
    for index, row in enumerate(dataset):
        assert (int(row["x"]), row["text"], row["pair"].tolist(), row["tokens"].tolist()) == (
            index,
            b"n%d" % index,
            [2.0 * index, 2.0 * index + 1],
            [index] * (index % 3),
        )


@pytest.mark.parametrize("selected", [False, True])
def test_batches_shuffled_or_not_have_the_right_rows(rows: Any, selected: bool) -> None:
    given = rows.select(range(COUNT - 1, -1, -1)) if selected else rows
    expected = list(reversed(range(COUNT))) if selected else list(range(COUNT))
    dataset = from_hugging_face(given, ["x", "pair"])
    batches = list(dataset.batch(512))
    assert [x for batch in batches for x in batch["x"].tolist()] == expected
    shuffled = list(dataset.shuffle(COUNT, seed=3).batch(512))
    found = np.concatenate([batch["x"] for batch in shuffled])
    assert sorted(found.tolist()) == sorted(expected)
    assert found.tolist() != expected
    np.testing.assert_array_equal(np.concatenate([batch["pair"] for batch in shuffled])[:, 0], 2.0 * found)


def test_rows_in_any_order_one_by_one(rows: Any) -> None:
    order = xs(from_hugging_face(rows).shuffle(COUNT, seed=3).take(40))
    assert order == xs(from_hugging_face(rows.with_format("numpy"), ["x"]).shuffle(COUNT, seed=3).take(40))
    assert xs(from_hugging_face(rows).shard(1000, 7)) == [7, 1007, 2007]
    assert int(wb.data.experimental.at(from_hugging_face(rows), 1234)["x"]) == 1234


def test_lists_that_differ_in_length_are_padded(rows: Any) -> None:
    batch = from_hugging_face(rows, ["tokens"]).skip(1).padded_batch(3).first()
    assert batch["tokens"].tolist() == [[1, 0], [2, 2], [0, 0]]
    with pytest.raises(InvalidArgumentError, match="padded_batch"):
        from_hugging_face(rows, ["tokens"]).batch(3).first()


def test_a_null_needs_a_default() -> None:
    given = datasets.Dataset.from_dict({"x": [1, None, 3]})
    with pytest.raises(DataLossError, match="column 'x' has a null at row 1"):
        list(from_hugging_face(given))
    assert xs(from_hugging_face(given, defaults={"x": -1})) == [1, -1, 3]


def test_what_no_array_holds_is_refused_at_once(rows: Any) -> None:
    nested = datasets.Dataset.from_dict({"a": [{"b": 1}], "x": [1]})
    with pytest.raises(InvalidArgumentError, match=r"column 'a' is struct.*leave it out with columns="):
        from_hugging_face(nested)
    assert xs(from_hugging_face(nested, ["x"])) == [1]
    with pytest.raises(InvalidArgumentError, match="no column 'z'"):
        from_hugging_face(rows, ["z"])


def test_splits_and_other_things_are_refused(rows: Any) -> None:
    with pytest.raises(
        TypeError, match=r"DatasetDict of 'train', 'test'; choose one, such as dataset\['train'\]"
    ):
        from_hugging_face(datasets.DatasetDict({"train": rows, "test": rows}))
    with pytest.raises(TypeError, match="got list"):
        from_hugging_face([1, 2])


def test_a_stream_is_read_in_tables(rows: Any) -> None:
    dataset = from_hugging_face(rows.to_iterable_dataset(num_shards=4))
    assert dataset.cardinality() == wb.data.UNKNOWN_CARDINALITY
    assert xs(dataset) == list(range(COUNT))
    assert [row["tokens"].tolist() for row in dataset.take(3)] == [[], [1], [2, 2]]
    assert xs(dataset.shard(1000, 7)) == [7, 1007, 2007]


def test_a_stream_without_features_is_looked_at() -> None:
    def generate() -> Iterator[dict[str, int]]:
        for index in range(5):
            yield {"x": index}

    stream = datasets.IterableDataset.from_generator(generate)
    assert from_hugging_face(stream).element_spec == {"x": TensorSpec((), np.int64)}
    assert xs(from_hugging_face(stream)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("hosts", [1, 3])
def test_the_explanation_names_the_source_and_every_row_has_one_reader(rows: Any, hosts: int) -> None:
    for given, name in ((rows, "Hugging Face dataset"), (rows.to_iterable_dataset(), "Hugging Face stream")):
        model = wb.explain_sharding(from_hugging_face(given, ["x"]).batch(100), wb.data.Shape(hosts=hosts))
        assert (model.elements, model.duplicates, model.dropped) == (COUNT, 0, 0)
        assert name in model.reason


def test_there_and_back_gives_the_same_rows(rows: Any) -> None:
    dataset = from_hugging_face(rows.select(range(40)))
    there = wb.data.to_hugging_face(dataset)
    assert there.features["text"].dtype == "large_string"
    assert there[3]["pair"] == [6.0, 7.0]
    for row, again in zip(dataset, from_hugging_face(there), strict=True):
        assert {name: np.asarray(value).tolist() for name, value in row.items()} == {
            name: np.asarray(value).tolist() for name, value in again.items()
        }


def test_bytes_that_are_no_text_stay_bytes() -> None:
    assert wb.data.to_hugging_face(Dataset.from_tensor_slices([b"\xff", b"a"]))[0] == {"0": b"\xff"}


def test_what_cannot_become_a_table_is_told() -> None:
    with pytest.raises(InvalidArgumentError, match="endless"):
        wb.data.to_hugging_face(Dataset.range(3).repeat())
    with pytest.raises(InvalidArgumentError, match="no element"):
        wb.data.to_hugging_face(Dataset.range(0))
