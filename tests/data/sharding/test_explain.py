"""The model of who reads what, and its texts."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from workbench.data import Dataset, Shape, TensorSpec, TextLineDataset, explain_sharding
from workbench.data.sharding.explain import shape_of
from workbench.errors import InvalidArgumentError


def test_the_summary_is_one_line_with_counts_duplicates_and_drops() -> None:
    model = explain_sharding(Dataset.from_tensor_slices(np.zeros(100)).batch(20), 4)
    assert model.summary() == (
        "DistributedDataset: policy AUTO→DATA (source is in memory), 100 elements, 4 replicas: 25 25 25 25, "
        "dup 0, dropped 0"
    )


def test_the_text_shows_steps_by_replicas() -> None:
    assert str(explain_sharding(Dataset.range(9).batch(4), 3)) == (
        "DistributedDataset: policy AUTO→DATA (source is a range), 9 elements, 3 replicas: 5 4 0,\n"
        "  dup 0, dropped 0\n"
        "algorithm: even split — each batch of n rows is cut into 3 parts of ceil(n / 3) rows\n"
        "last step is smaller: 1 0 0 rows\n"
        "4 empty: step 0 replica 2, step 1 replica 2, step 2 replica 1, …\n"
        "  a mean over no rows is NaN: divide a sum by the global number of rows, or batch with\n"
        "  drop_remainder=True\n"
        "step  replica 0                  replica 1                  replica 2\n"
        "   0  0–1                        2–3                        -\n"
        "   1  4–5                        6–7                        -\n"
        "   2  8                          -                          -"
    )


def test_duplicates_drops_and_the_schedule_are_told() -> None:
    model = explain_sharding(Dataset.range(11).batch(4, drop_remainder=True), Shape(2, 1), policy="OFF")
    assert (model.policy, model.algorithm, model.schedule) == ("OFF", "schedule", ((2, 2), (2, 2)))
    assert (model.elements, model.duplicates, model.dropped) == (8, 8, 3)
    assert "regrouped into sizes 2 2" in str(model)


def test_what_if_leaves_the_dataset_alone() -> None:
    dataset = Dataset.range(8).batch(4)
    explain_sharding(dataset, 2, policy="OFF")
    assert explain_sharding(dataset, 2).policy_asked == "AUTO"


def test_shuffled_epochs_are_those_that_a_run_would_see() -> None:
    dataset = Dataset.range(12).shuffle(12, seed=1).batch(6)
    model = explain_sharding(dataset, 2, epoch=0)
    seen = [cell.ids for step in model.steps for cell in step]
    assert np.concatenate(seen).tolist() == np.concatenate(list(dataset)).tolist()
    assert explain_sharding(dataset, 2, epoch=1).steps != model.steps


def test_concatenated_datasets_show_the_same_order_as_a_run() -> None:
    dataset = Dataset.range(20).concatenate(Dataset.range(20, 50)).shuffle(10, seed=3).repeat(2).batch(10)
    model = explain_sharding(dataset, 2)
    labels = [model.labels[element] for step in model.steps for cell in step for element in cell.ids]
    numbers = [int(n) + 20 * int(which) for which, n in (label.split("/") for label in labels)]
    assert numbers == np.concatenate(list(dataset)).tolist()


def test_files_are_listed_by_host_and_elements_named_by_line(tmp_path: Path) -> None:
    for name, lines in (("a.txt", 3), ("b.txt", 2), ("c.txt", 1)):
        (tmp_path / name).write_text("".join(f"{i}\n" for i in range(lines)))
    paths = [str(tmp_path / name) for name in ("a.txt", "b.txt", "c.txt")]
    readers = [
        TextLineDataset(paths),
        Dataset.from_tensor_slices(paths).flat_map(TextLineDataset),
        Dataset.list_files(str(tmp_path / "*.txt"), shuffle=False).interleave(
            TextLineDataset, cycle_length=1
        ),
    ]
    for dataset in readers:
        model = explain_sharding(dataset.batch(2), Shape(2, 1))
        assert model.policy == "AUTO→FILE"
        assert [[Path(f).name for f in host] for host in model.files] == [["a.txt", "c.txt"], ["b.txt"]]
        assert (model.elements, model.dropped, model.counts) == (6, 0, (4, 2))
        assert [model.labels[i] for i in model.steps[1][0].ids] == ["a.txt:1"]
        assert "host 1 reads:" in str(model)


def test_endless_datasets_are_looked_at_as_far_as_the_text_says() -> None:
    model = explain_sharding(Dataset.range(10).repeat().batch(4), 2, max_steps=7)
    assert len(model.steps) == 7
    assert model.dropped is None
    assert str(model).endswith("(only the first 7 steps were looked at)")
    assert "dropped unknown" in model.summary()
    rows = explain_sharding(Dataset.range(10).repeat().batch(4), 2, max_elements=10)
    assert rows.limit == "only the first 3 steps (12 rows) were looked at"


def _without_end() -> Iterator[int]:
    yield from itertools.count()


@pytest.mark.parametrize(
    "source",
    [
        Dataset.counter(),
        Dataset.random(seed=1),
        Dataset.from_generator(_without_end, output_signature=TensorSpec((), np.int64)),
    ],
)
def test_the_rest_of_a_source_without_end_is_not_counted(
    source: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.data.sharding.explain._MOST_COUNTED", 1000)
    model = explain_sharding(source.take(40).batch(8), 2)
    assert (model.elements, model.counts, model.dropped) == (40, (20, 20), None)
    assert model.dropped_unknown.startswith(("the source has no end", "the source has at least 1,0"))
    assert f"dropped is unknown: {model.dropped_unknown}" in " ".join(str(model).split())


@pytest.mark.parametrize(
    ("dataset", "dropped"),
    [
        (Dataset.range(10**9).take(40), 10**9 - 40),
        (Dataset.range(10**9).take(40).repeat(2).shuffle(80, seed=1), 10**9 - 40),
        (Dataset.from_tensor_slices(np.zeros(5000, np.int8)).skip(4960), 4960),
        (Dataset.range(500).concatenate(Dataset.range(500)).take(40), 960),
        (Dataset.zip(Dataset.range(250).repeat(2), Dataset.range(10**9)).take(40), 210),
    ],
    ids=[
        "long",
        "repeated",
        "in memory",
        "of several, as long as is counted",
        "of several, one of them long",
    ],
)
def test_what_is_dropped_of_a_source_of_known_length_is_told(
    dataset: Dataset, dropped: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.data.sharding.explain._MOST_COUNTED", 1000)
    model = explain_sharding(dataset.batch(8), 2)
    assert (model.elements, model.dropped, model.dropped_unknown) == (40, dropped, "")


@pytest.mark.parametrize(
    "combine",
    [
        lambda rows: rows.concatenate(rows),
        lambda rows: Dataset.zip(rows, Dataset.range(10**12)),
        lambda rows: Dataset.sample_from_datasets([rows, rows], seed=1),
        lambda rows: Dataset.choose_from_datasets([rows, rows], Dataset.range(2).repeat(10**9)),
    ],
)
def test_of_a_huge_source_of_several_datasets_only_a_bounded_part_is_read(
    combine: Callable[[Dataset], Dataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.data.sharding.explain._MOST_COUNTED", 1000)
    read = itertools.count()

    def numbers() -> Iterator[int]:
        return itertools.takewhile(lambda _: next(read) < 20_000, itertools.count())

    rows = Dataset.from_generator(numbers, output_signature=TensorSpec((), np.int64))
    known = combine(rows.assert_cardinality(10**9))
    model = explain_sharding(known.take(40).batch(8), 2)
    assert (model.elements, model.dropped) == (40, None)
    assert model.dropped_unknown.startswith(
        ("the source has 1,", "the source has 2,", "the source has at least")
    )
    assert next(read) < 10_000


def test_a_source_is_counted_up_to_twice_of_what_replicas_got(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.data.sharding.explain._MOST_COUNTED", 10)
    rows = Dataset.from_generator(lambda: range(80), output_signature=TensorSpec((), np.int64))
    assert [explain_sharding(rows.take(n).batch(8), 2).dropped for n in (32, 40)] == [None, 40]


@pytest.mark.parametrize(("each_s", "rest_s", "dropped"), [(0.1, 0.1, 1), (30, 30, 1), (0.1, 60, None)])
def test_a_slow_source_is_counted_as_long_as_it_is_no_slower_than_its_dataset(
    each_s: float, rest_s: float, dropped: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr("workbench.data.sharding.explain.time", clock)

    def slow() -> Iterator[int]:
        for number in range(21):
            clock.now += each_s if number < 20 else rest_s
            yield number

    rows = Dataset.from_generator(slow, output_signature=TensorSpec((), np.int64))
    model = explain_sharding(rows.take(20).batch(4), 2)
    assert (model.dropped, model.limit) == (dropped, "")
    assert ("has at least 21 elements" in str(model)) == (dropped is None)


@pytest.mark.parametrize("raises", [False, True])
def test_a_source_that_fails_behind_what_is_taken_is_explained(raises: bool) -> None:
    def failing() -> Iterator[Any]:
        yield from range(4)
        if raises:
            raise ValueError("the disk is gone")
        yield "four"

    rows = Dataset.from_generator(failing, output_signature=TensorSpec((), np.int64))
    model = explain_sharding(rows.take(2).batch(2), 2)
    assert (model.counts, model.dropped) == ((1, 1), None)
    error, told = (
        (ValueError, "the disk is gone") if raises else (InvalidArgumentError, "from_generator: element 4")
    )
    said = f"dropped is unknown: the source fails after 4 elements: {error.__name__}: {told}"
    assert said in " ".join(str(model).split())
    with pytest.raises(error, match=f"^{told}"):
        explain_sharding(rows.batch(2), 2)


def test_elements_that_cannot_be_followed_are_counted() -> None:
    made = Dataset.from_generator(
        lambda: iter([np.zeros((4, 2))] * 3), output_signature=TensorSpec((None, 2), np.float64)
    )
    model = explain_sharding(made, 2)
    assert (model.elements, model.counts, model.duplicates, model.dropped) == (12, (6, 6), 0, None)
    assert "2 rows" in str(model)


@pytest.mark.parametrize("replicas", [1, 2, 5, 16, 200])
@pytest.mark.parametrize("batch", [1, 64, 900])
def test_texts_stay_within_88_columns(replicas: int, batch: int) -> None:
    dataset = Dataset.range(1000).shuffle(300, seed=2).batch(batch)
    text = str(explain_sharding(dataset, replicas))
    assert max(map(len, text.splitlines())) <= 88
    assert len(text.splitlines()) < 30


def test_the_model_is_plain_values_and_its_html_is_escaped(tmp_path: Path) -> None:
    (tmp_path / "<b>.txt").write_text("x\n")
    model = explain_sharding(TextLineDataset(str(tmp_path / "<b>.txt")).batch(1), 1)
    assert json.loads(json.dumps(model.to_dict()))["counts"] == [1]
    html = model._repr_mimebundle_()["text/html"]
    assert "<b>.txt" not in html
    assert "&lt;b&gt;.txt" in html


def test_the_model_shows_its_text_and_not_its_fields() -> None:
    model = explain_sharding(Dataset.range(4).batch(2), 2)
    assert repr(model) == str(model)


def test_shapes_are_understood_in_several_forms() -> None:
    assert shape_of(None) == Shape(1, 1)
    assert shape_of(3) == Shape(1, 3)
    assert shape_of(SimpleNamespace(num_replicas_in_sync=2)) == Shape(1, 2)
    assert shape_of(SimpleNamespace(num_replicas_in_sync=4, input_shape=Shape(2, 2))) == Shape(2, 2)
    assert Shape(2, 3).replicas == 6
    with pytest.raises(InvalidArgumentError, match="at least 1"):
        shape_of(0)
    with pytest.raises(TypeError, match="Shape"):
        shape_of("four")


def test_hosts_that_do_not_exist_are_given_by_their_numbers() -> None:
    data = Dataset.range(4096).batch(1024)
    assert explain_sharding(data, hosts=64, replicas_per_host=8).counts == (8,) * 512
    assert explain_sharding(data, hosts=4).counts == (1024,) * 4
    assert explain_sharding(data, replicas_per_host=2).counts == (2048, 2048)
    with pytest.raises(InvalidArgumentError, match=r"shape, here 2, .*leave it out"):
        explain_sharding(data, 2, hosts=3)
    with pytest.raises(InvalidArgumentError, match="hosts must be an integer of at least 1, got 0"):
        explain_sharding(data, hosts=0)
    with pytest.raises(InvalidArgumentError, match=r"replicas_per_host must be .* got 'two'"):
        explain_sharding(data, hosts=2, replicas_per_host="two")  # type: ignore[arg-type]


def test_what_is_no_dataset_is_refused_with_the_way_to_make_one() -> None:
    with pytest.raises(TypeError, match=r"got list; for arrays write wb\.data\.Dataset\.from_tensor_slices"):
        explain_sharding([1, 2], 2)  # type: ignore[arg-type]
