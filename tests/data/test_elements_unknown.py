"""Stages that look at elements when they are made: errors of these come in the iteration, at their places.

The expected elements are those of TensorFlow 2.21, whose error is its InvalidArgumentError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench import tree
from workbench.data import UNKNOWN_CARDINALITY, Dataset, TensorSpec, TextLineDataset
from workbench.data.experimental import pad_to_cardinality
from workbench.data.rebatch import UNKNOWN_BATCH_SIZE
from workbench.data.sharding.distributed import distribute_for_host
from workbench.data.sharding.explain import explain_sharding
from workbench.data.stages.computing import probe
from workbench.data.stages.grouping.unbatch import Unbatch
from workbench.data.tables import Failed
from workbench.distribute import get_strategy
from workbench.errors import InvalidArgumentError, OutOfRangeError

_TWO = Dataset.range(10, 12)
_E = LookupError


def _fails(x: Any) -> Any:
    raise LookupError(f"element {x}")


def _only_seven(x: Any) -> Any:
    return x if x == 7 else _fails(x)


def _fails_first(x: Any) -> Any:
    return _fails(x) if x == 0 else x


def _events(elements: Any) -> list[Any]:
    iterator = iter(elements)
    found: list[Any] = []
    while len(found) < 50:
        try:
            element = next(iterator)
        except StopIteration:
            return found
        except Exception as error:
            found.append(type(error))
        else:
            found.append(tree.map(lambda part: np.asarray(part).tolist(), element))
    raise AssertionError(f"no end: {found}")


def _chosen(dataset: Dataset) -> Dataset:
    numbers = Dataset.from_tensor_slices(np.array([0, 1, 0, 1, 0, 1, 0]))
    return Dataset.choose_from_datasets([dataset, _TWO], numbers, stop_on_empty_dataset=False)


def _as_row(x: Any) -> Any:
    return np.stack([x])


_Expected = tuple[list[Any], list[Any], list[Any], list[Any]]
_FAILS = [_E, _E, _E, _E]
_CASES: dict[str, tuple[Callable[[Dataset], Dataset], _Expected]] = {
    "padded_batch": (
        lambda dataset: dataset.map(_as_row).padded_batch(2, [2]),
        (_FAILS, [], [_E, [[1, 0], [2, 0]], [[3, 0]]], [[[1, 0], [2, 0]], [[3, 0]]]),
    ),
    "bucket_by_sequence_length": (
        lambda dataset: dataset.map(_as_row).bucket_by_sequence_length(lambda x: 1, [2], [2, 2]),
        (_FAILS, [], [_E, [[1], [2]], [[3]]], [[[1], [2]], [[3]]]),
    ),
    "unbatch": (lambda dataset: dataset.batch(1).unbatch(), (_FAILS, [], [_E, 1, 2, 3], [1, 2, 3])),
    "unique": (lambda dataset: dataset.unique(), (_FAILS, [], [_E, 1, 2, 3], [1, 2, 3])),
    "concatenate": (
        lambda dataset: dataset.concatenate(_TWO),
        ([*_FAILS, 10, 11], [10, 11], [_E, 1, 2, 3, 10, 11], [1, 2, 3, 10, 11]),
    ),
    "concatenate, behind": (
        _TWO.concatenate,
        ([10, 11, *_FAILS], [10, 11], [10, 11, _E, 1, 2, 3], [10, 11, 1, 2, 3]),
    ),
    "concatenate, both": (
        lambda dataset: dataset.concatenate(dataset),
        (_FAILS * 2, [], [_E, 1, 2, 3] * 2, [1, 2, 3] * 2),
    ),
    "choose_from_datasets": (
        _chosen,
        ([_E, 10, _E, 11, _E, _E], [10, 11], [_E, 10, 1, 11, 2, 3], [1, 10, 2, 11, 3]),
    ),
    "sample_from_datasets": (
        lambda dataset: Dataset.sample_from_datasets([dataset], weights=[1.0]),
        (_FAILS, [], [_E, 1, 2, 3], [1, 2, 3]),
    ),
    "zip": (
        lambda dataset: Dataset.zip(dataset, Dataset.range(10)),
        (_FAILS, [], [_E, (1, 1), (2, 2), (3, 3)], [(1, 0), (2, 1), (3, 2)]),
    ),
    "map_batches": (
        lambda dataset: dataset.batch(1).unbatch().map_batches(lambda x: x, 1),
        (_FAILS, [], [_E, 1, 2, 3], [1, 2, 3]),
    ),
    "flat_map": (
        lambda dataset: dataset.flat_map(Dataset.from_tensors).unique(),
        (_FAILS, [], [_E, 1, 2, 3], [1, 2, 3]),
    ),
}


@pytest.mark.parametrize("name", _CASES)
def test_a_stage_is_made_whatever_elements_fail(name: str) -> None:
    stage, (failing, ignored, first, rest) = _CASES[name]
    assert _events(stage(Dataset.range(4).map(_fails))) == failing
    assert _events(stage(Dataset.range(4).map(_fails).ignore_errors())) == ignored
    assert _events(stage(Dataset.range(4).map(_fails_first))) == first
    assert _events(stage(Dataset.range(4).map(_fails_first).ignore_errors())) == rest


@pytest.mark.parametrize("name", _CASES)
def test_stages_follow_one_that_was_made_without_an_element(name: str) -> None:
    stage, expected = _CASES[name]
    for fails, events in zip((_fails, _fails_first), (expected[:2], expected[2:]), strict=True):
        failing = Dataset.range(4).map(fails)
        for dataset, wanted in zip((failing, failing.ignore_errors()), events, strict=True):
            made = stage(dataset)
            assert _events(made.map(lambda *element: element if len(element) > 1 else element[0])) == wanted
            assert len(_events(made.enumerate().map(lambda number, element: number))) == len(wanted)
            assert _events(made.as_numpy_iterator()) == wanted


def test_weights_are_drawn_from_a_dataset_whatever_elements_fail() -> None:
    for weights in (Dataset.range(4).map(_fails), Dataset.range(4).map(_fails).ignore_errors()):
        expected = _events(weights)
        sample = Dataset.sample_from_datasets([_TWO, _TWO], weights=weights)
        assert _events(sample) == _events(sample.map(lambda x: x)) == expected


@pytest.mark.parametrize(
    "behind",
    [
        lambda dataset: Dataset.zip(dataset),
        lambda dataset: Dataset.zip(dataset, dataset),
        lambda dataset: Dataset.zip((Dataset.zip(dataset), dataset)).take(1),
    ],
)
def test_functions_are_not_called_when_a_stage_is_made_behind_them(behind: Any) -> None:
    calls: list[int] = []

    def counted(*element: Any) -> Any:
        calls.append(1)
        return element[-1]

    made = behind(Dataset.range(8).batch(2).map(counted))
    made.rebatch(2).map(lambda *element: element)
    assert calls == []


def test_functions_of_a_window_are_not_called_when_a_stage_is_made_behind_it() -> None:
    calls: list[int] = []

    def reduced(key: Any, window: Dataset) -> Dataset:
        calls.append(1)
        return window.batch(2)

    windows = Dataset.range(8).group_by_window(lambda x: x % 2, reduced, 2)
    rebatched = windows.rebatch(1)
    assert calls == []
    assert _events(rebatched) == [[0], [2], [1], [3], [4], [6], [5], [7]]


def _row_of(number: Any) -> Any:
    return _fails(number) if number < 200 else np.full(int(number) - 200, number, np.int32)


_LATE = Dataset.range(204).map(_row_of).ignore_errors()
"""The first element comes late."""


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks further than at 100 elements."""
    monkeypatch.setattr(probe, "_SECONDS", 0.0)


@pytest.mark.usefixtures("impatient")
def test_a_padded_batch_takes_from_its_first_element_what_elements_are() -> None:
    assert _events(_LATE.padded_batch(4, padding_values=-1)) == [
        [[-1, -1, -1], [201, -1, -1], [202, 202, -1], [203, 203, 203]]
    ]
    in_threads = _LATE.padded_batch(2, [4], drop_remainder=True, num_parallel_calls=2)
    assert _events(in_threads) == [
        [[0, 0, 0, 0], [201, 0, 0, 0]],
        [[202, 202, 0, 0], [203, 203, 203, 0]],
    ]
    assert next(iter(in_threads)).dtype == np.int32
    assert _events(_LATE.padded_batch(2, [4, 4])) == [InvalidArgumentError]


@pytest.mark.usefixtures("impatient")
def test_a_bucket_is_as_long_as_its_boundary_although_it_was_made_without_an_element() -> None:
    bucketed = _LATE.skip(1).bucket_by_sequence_length(len, [2, 5], [1, 2, 1], pad_to_bucket_boundary=True)
    assert _events(bucketed) == [[[201]], [[202, 202, 0, 0], [203, 203, 203, 0]]]


def test_an_inner_dataset_is_learnt_from_the_first_element_that_has_one() -> None:
    def opens(x: Any) -> Dataset:
        return Dataset.from_tensors(_fails_first(x)) if 0 <= x < 4 and x != 1 and x != 2 else _fails(x)

    dataset = Dataset.range(4).flat_map(opens)
    assert dataset.element_spec == TensorSpec((), np.int64)
    assert _events(dataset.unique()) == [_E, _E, _E, 3]


def _opens_a_table(number: Any) -> Dataset:
    table = {10: [1, 2], 11: [3, 4]}
    return Dataset.range(2).map(lambda at: np.int64(table[int(number)][int(at)]))


_TABLES = _TWO.interleave(_opens_a_table)
"""A made-up element opens a dataset, of which no element can be made."""


def test_an_inner_dataset_whose_elements_are_no_made_up_ones_is_known(tmp_path: Path) -> None:
    assert _TABLES.element_spec == TensorSpec((), np.int64)
    assert _events(_TABLES.batch(2).rebatch(1)) == [[1], [3], [2], [4]]
    assert distribute_for_host(_TABLES.batch(2), replicas_per_host=2).element_spec == TensorSpec(
        (None,), np.int64
    )


@pytest.mark.usefixtures("impatient")
def test_a_spec_is_unknown_of_which_the_first_elements_tell_nothing() -> None:
    with pytest.raises(OutOfRangeError, match=r"none of the first 100 elements could be made.*element 0"):
        _ = Dataset.counter().map(_fails).element_spec


def test_elements_that_all_fail_are_tried_once_however_many_functions_follow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(probe, "_SECONDS", 0.0)
    tried: list[int] = []

    def fails(x: Any) -> Any:
        tried.append(int(x))
        raise LookupError(f"element {x}")

    dataset = Dataset.counter(5).map(fails).map(_only_seven).flat_map(_opens_a_table).map(_only_seven)
    with pytest.raises(OutOfRangeError):
        _ = dataset.element_spec
    assert tried[-100:] == list(range(5, 105))
    assert 5 not in tried[:-100]


def _pair_from_200_on(number: Any) -> Any:
    return _fails(number) if number < 200 else np.full(2, number, np.int32)


_LATE_PAIRS = Dataset.range(204).map(_pair_from_200_on)


@pytest.mark.parametrize("late", [_LATE_PAIRS, _LATE_PAIRS.ignore_errors()], ids=["as they are", "left out"])
def test_a_dataset_whose_first_elements_fail_is_distributed(late: Dataset) -> None:
    pipeline = distribute_for_host(late, replicas_per_host=2)
    assert pipeline.element_spec == TensorSpec((None,), np.int32)  # one pair does not show that others follow
    steps = [step for step in pipeline.values_for([0, 1]) if not isinstance(step, Failed)]
    assert [[row.tolist() for row in step] for step in steps] == [[[x], [x]] for x in range(200, 204)]


def test_a_dataset_whose_first_elements_fail_is_saved(tmp_path: Path) -> None:
    _LATE_PAIRS.ignore_errors().save(str(tmp_path / "saved"))
    assert _events(Dataset.load(str(tmp_path / "saved"))) == [[x, x] for x in range(200, 204)]


def test_saving_raises_the_error_of_an_element(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match="element 0"):
        _LATE_PAIRS.save(str(tmp_path / "saved"))


def test_what_a_spec_could_not_be_learnt_from_is_its_cause() -> None:
    with pytest.raises(OutOfRangeError, match="the first because of LookupError: element 0") as caught:
        _ = Dataset.range(4).map(_fails).element_spec
    assert isinstance(caught.value.__cause__, LookupError)


def test_a_dataset_is_distributed_whatever_elements_fail() -> None:
    rows = Dataset.range(4).map(_fails).map(_as_row)
    assert _events(get_strategy().distribute_dataset(rows.unbatch().batch(2))) == _FAILS


@pytest.mark.parametrize(
    "stages",
    [
        lambda lines: lines.map(_fails).batch(2),
        lambda lines: lines.batch(2).map(_fails),
        lambda lines: lines.map(_fails).ignore_errors().batch(2),
    ],
)
def test_files_are_distributed_to_several_replicas_whatever_elements_fail(
    stages: Callable[[Dataset], Dataset], tmp_path: Path
) -> None:
    paths = [str(tmp_path / f"{number}.txt") for number in range(2)]
    for path in paths:
        Path(path).write_text("a\nb\n")
    dataset = stages(TextLineDataset(paths))
    for host in range(2):
        pipeline = distribute_for_host(dataset, num_hosts=2, host=host, replicas_per_host=2)
        steps = list(pipeline.values_for([0, 1]))
        assert [type(step.error) for step in steps if isinstance(step, Failed)] == _events(dataset)[::2]
        assert len(steps) == len(_events(dataset)[::2])


def test_the_sharding_of_elements_that_nobody_knows_is_explained() -> None:
    none = Dataset.range(4).map(_fails).ignore_errors().map(_as_row)
    model = explain_sharding(none, 2)
    assert (model.elements, model.batch_size, model.dropped) == (0, UNKNOWN_BATCH_SIZE, 4)
    assert explain_sharding(none.batch(6), 2).batch_size == 6


def test_the_end_is_an_optional_although_nobody_knows_what_it_would_hold() -> None:
    iterator = iter(Dataset.range(4).map(_fails).ignore_errors())
    assert not iterator.get_next_as_optional().has_value()
    assert list(iterator) == []


def test_the_number_of_rows_that_nobody_knows_is_unknown() -> None:
    assert Dataset.range(4).map(_fails).batch(1).unbatch().cardinality() == UNKNOWN_CARDINALITY
    assert "unbatch" in repr(Dataset.range(4).map(_fails).batch(1).unbatch())


@pytest.mark.parametrize(
    ("batches", "rows"),
    [
        (lambda d: d.batch(2, drop_remainder=True), 6),
        (lambda d: d.padded_batch(2, drop_remainder=True), 6),
        (lambda d: d.batch(2, drop_remainder=True).prefetch(1).take(2), 4),
        (lambda d: d.batch(2, drop_remainder=True).map(lambda x: x), UNKNOWN_CARDINALITY),
        (lambda d: d.padded_batch(2), UNKNOWN_CARDINALITY),
    ],
)
def test_full_batches_tell_the_number_of_rows_whatever_they_hold(batches: Any, rows: int) -> None:
    assert batches(Dataset.range(7).map(_fails)).unbatch().cardinality() == rows


@pytest.mark.parametrize(
    "needs",
    [
        lambda dataset, path: dataset.apply(pad_to_cardinality(6)),
        lambda dataset, path: dataset.save(path),
    ],
)
def test_what_cannot_do_without_a_spec_does_not_look_like_the_end_of_data(needs: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"what elements look like.*LookupError: element 0"):
        needs(Dataset.range(4).map(_fails), str(tmp_path / "saved"))


@pytest.mark.parametrize("name", ["cache", "snapshot"])
def test_nothing_is_stored_of_elements_that_nobody_knows(name: str, tmp_path: Path) -> None:
    failing = Dataset.range(4).map(_fails)
    for dataset, expected in ((failing, _FAILS), (failing.ignore_errors(), [])):
        stored = getattr(dataset, name)(str(tmp_path / "stored"))
        assert [_events(stored) for _ in range(2)] == [expected, expected]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("dataset", [_LATE, _TABLES], ids=["late", "inner"])
@pytest.mark.parametrize("name", ["cache", "snapshot"])
def test_what_elements_are_is_stored_with_the_first_of_them(
    name: str, dataset: Dataset, tmp_path: Path
) -> None:
    expected = _events(dataset)
    stored = getattr(dataset, name)(str(tmp_path / "stored"))
    iterator = iter(stored)
    next(iterator)
    del iterator  # a pass that stops early stores nothing
    assert [_events(stored) for _ in range(2)] == [expected, expected]
    assert list(tmp_path.rglob("*.records"))
    other = Dataset.range(4).map(_fails)  # it is unknown whether this pipeline is the same
    if name == "cache":
        assert _events(other.cache(str(tmp_path / "stored"))) == expected
    else:
        assert _events(stored.repeat(2)) == 2 * expected


def test_a_reader_is_made_whatever_its_dataset_of_names_holds() -> None:
    names = Dataset.range(2).map(_fails)
    assert _events(TextLineDataset(names.ignore_errors())) == []
    assert _events(TextLineDataset(names)) == [_E]


_MADE: dict[str, Callable[[Dataset], Dataset]] = {
    "batch": lambda dataset: dataset.batch(2),
    "assert_cardinality": lambda dataset: dataset.assert_cardinality(1),
    "bucket_by_sequence_length": lambda dataset: dataset.bucket_by_sequence_length(len, [2], [2, 2]),
    "cache": lambda dataset: dataset.cache(),
    "choose_from_datasets": lambda dataset: Dataset.choose_from_datasets(
        [dataset, dataset], Dataset.range(2)
    ),
    "choose_from_datasets, choices": lambda dataset: Dataset.choose_from_datasets([_TWO], dataset),
    "concatenate": lambda dataset: dataset.concatenate(dataset),
    "enumerate": lambda dataset: dataset.enumerate(),
    "filter": lambda dataset: dataset.filter(lambda x: True),
    "flat_map": lambda dataset: dataset.flat_map(Dataset.from_tensors),
    "group_by_window": lambda dataset: dataset.group_by_window(lambda x: x, lambda key, window: window, 2),
    "ignore_errors": lambda dataset: dataset.ignore_errors(),
    "interleave": lambda dataset: dataset.interleave(Dataset.from_tensors),
    "map": lambda dataset: dataset.map(lambda x: x),
    "map_batches": lambda dataset: dataset.map_batches(lambda x: x, 2),
    "padded_batch": lambda dataset: dataset.padded_batch(2),
    "parse_example": lambda dataset: dataset.apply(
        wb.data.experimental.parse_example_dataset({"a": wb.io.VarLenFeature("int64")})
    ),
    "prefetch": lambda dataset: dataset.prefetch(1),
    "reader": TextLineDataset,
    "rebatch": lambda dataset: dataset.rebatch(2),
    "rejection_resample": lambda dataset: dataset.rejection_resample(lambda x: 0, [1.0]),
    "repeat": lambda dataset: dataset.repeat(2),
    "sample_from_datasets": lambda dataset: Dataset.sample_from_datasets([dataset, dataset], seed=1),
    "scan": lambda dataset: dataset.scan(0, lambda state, x: (state, x)),
    "shard": lambda dataset: dataset.shard(1, 0),
    "shuffle": lambda dataset: dataset.shuffle(2, seed=1),
    "skip": lambda dataset: dataset.skip(0),
    "take": lambda dataset: dataset.take(1),
    "take_while": lambda dataset: dataset.take_while(lambda x: True),
    "unbatch": lambda dataset: dataset.unbatch(),
    "unique": lambda dataset: dataset.unique(),
    "window": lambda dataset: dataset.window(2),
    "zip": lambda dataset: Dataset.zip(dataset, dataset),
}


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("name", _MADE)
def test_no_element_is_read_before_the_iteration(name: str, is_known: bool) -> None:
    read: list[int] = []

    def elements() -> Iterator[int]:
        read.append(1)
        yield 1

    signature = TensorSpec((), np.int64)
    # Including made-up values.
    dataset = Dataset.from_generator(elements, output_signature=signature).map(_fails)
    dataset = dataset.assert_cardinality(1) if is_known else dataset
    made = _MADE[name](_MADE[name](dataset) if name == "concatenate" else dataset)
    for shown in (made, made.with_stage(Unbatch())):
        assert isinstance(shown.cardinality(), int)
        assert repr(shown).startswith("<Dataset: ")
        assert shown._repr_html_().startswith("<div>")
    assert not read
    with suppress(Exception):
        next(iter(made))
    assert read


@pytest.mark.parametrize(
    "other",
    [
        lambda unread: unread,
        lambda unread: unread.with_options(wb.data.Options()),
        lambda unread: unread.take(1),
        lambda unread: unread.take(1).upstream(),
        lambda unread: unread.with_source(unread.source, unread.stages),
        lambda unread: unread.with_element_spec(None),
        lambda unread: unread.unread(),
    ],
)
def test_what_is_made_of_a_dataset_that_is_not_to_be_read_is_not_read_either(
    other: Callable[[Dataset], Dataset],
) -> None:
    read: list[int] = []

    def elements() -> Iterator[int]:
        read.append(1)
        yield 7

    source = Dataset.from_generator(elements, output_signature=TensorSpec((), np.int64))
    dataset = other(source.map(_only_seven).unread())
    with pytest.raises(OutOfRangeError, match="cannot be found out"):
        _ = dataset.element_spec
    assert not read
    assert list(dataset) == [7]  # an iteration still reads it
