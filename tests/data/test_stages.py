"""Transformations: values, specs, cardinalities and errors."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.data import UNKNOWN_CARDINALITY, Dataset, TensorSpec
from workbench.errors import DataLossError, FailedPreconditionError, InvalidArgumentError


def ints(dataset: Dataset) -> list[int]:
    return [int(x) for x in dataset]


def lists(dataset: Dataset) -> list[Any]:
    return [x.tolist() for x in dataset]


class Model:
    """A list that follows the same steps as a dataset."""

    def __init__(self, values: list[int]) -> None:
        self.values = values

    def apply(self, name: str, *args: int) -> Model:
        values = self.values
        match name:
            case "take":
                return Model(values[: args[0]])
            case "skip":
                return Model(values[args[0] :])
            case "shard":
                return Model(values[args[1] :: args[0]])
            case "repeat":
                return Model(values * args[0])
        raise ValueError(name)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.integers(0, 30)),
        st.tuples(st.just("skip"), st.integers(0, 30)),
        st.tuples(st.just("shard"), st.integers(1, 4), st.just(0)),
        st.tuples(st.just("repeat"), st.integers(0, 3)),
    ),
    max_size=5,
)


@given(n=st.integers(0, 40), steps=steps, batch=st.integers(1, 7), drop=st.booleans())
def test_index_stages_follow_their_model(n: int, steps: list[Any], batch: int, drop: bool) -> None:
    dataset, model = Dataset.range(n), Model(list(range(n)))
    for name, *args in steps:
        dataset, model = getattr(dataset, name)(*args), model.apply(name, *args)
    assert ints(dataset) == model.values
    assert dataset.cardinality() == len(model.values)
    batches = dataset.batch(batch, drop_remainder=drop)
    cut = [model.values[i : i + batch] for i in range(0, len(model.values), batch)]
    expected = [b for b in cut if len(b) == batch or not drop]
    assert lists(batches) == expected
    assert batches.cardinality() == len(expected)


@given(sizes=st.lists(st.integers(1, 9), max_size=6), batch=st.integers(1, 8))
def test_batches_run_across_the_pieces_that_arrive(sizes: list[int], batch: int) -> None:
    """However rows arrive (whole tables, single results, windows), batches are the same."""
    flat = list(range(sum(sizes)))
    expected = [flat[i : i + batch] for i in range(0, len(flat), batch)]
    starts = np.cumsum([0, *sizes]).tolist()
    pieces = Dataset.from_generator(
        lambda: iter([np.arange(a, b) for a, b in itertools.pairwise(starts)]),
        output_signature=TensorSpec((None,), np.int64),
    )
    assert lists(pieces.unbatch().batch(batch)) == expected
    assert lists(pieces.flat_map(Dataset.from_tensor_slices).batch(batch)) == expected
    assert lists(pieces.unbatch().map(lambda x: x).batch(batch)) == expected


def test_negative_counts_take_all_and_skip_everything() -> None:
    assert ints(Dataset.range(3).take(-5)) == [0, 1, 2]
    assert ints(Dataset.range(3).skip(-5)) == []


@pytest.mark.parametrize(("shards", "index"), [(0, 0), (3, 3), (3, -1), (-1, 0)])
def test_shards_must_exist(shards: int, index: int) -> None:
    with pytest.raises(InvalidArgumentError, match="shard"):
        Dataset.range(3).shard(shards, index)


def test_repeating_nothing_for_ever_ends() -> None:
    assert ints(Dataset.range(0).repeat()) == []
    assert ints(Dataset.range(4).filter(lambda x: x > 9).repeat()) == []


def test_batches_keep_structures_text_and_dtypes() -> None:
    dataset = Dataset.from_tensor_slices({"a": np.arange(3, dtype=np.uint8), "b": ["x", "yy", "z\0"]}).batch(
        2
    )
    first, last = dataset
    assert first["a"].dtype == np.uint8
    assert last["b"].tolist() == [b"z\0"]
    assert dataset.element_spec["b"] == TensorSpec((None,), "string")


def test_unequal_shapes_cannot_be_batched_and_the_error_says_what_to_do() -> None:
    grown = Dataset.range(1, 4).map(lambda x: np.zeros(int(x)))
    with pytest.raises(InvalidArgumentError, match="padded_batch"):
        list(grown.batch(3))
    with pytest.raises(InvalidArgumentError, match="padded_batch"):
        list(grown.batch(1).unbatch().batch(2))


def test_maps_name_stage_and_element_and_keep_the_exceptions_type() -> None:
    def fails(x: Any) -> Any:
        if x == 2:
            raise KeyError("no such label")
        return x

    iterator = iter(Dataset.range(5).map(fails))
    assert [int(next(iterator)), int(next(iterator))] == [0, 1]
    with pytest.raises(KeyError) as caught:
        next(iterator)
    assert caught.value.__notes__ == ["in stage map(fails) of a dataset, at element 2"]


def test_a_function_that_writes_its_input_fails_and_is_named() -> None:
    def doubles_in_place(x: Any) -> Any:
        x *= 2
        return x

    rows = np.ones((3, 2))
    with pytest.raises(ValueError, match="read-only") as caught:
        list(Dataset.from_tensor_slices(rows).map(doubles_in_place))
    assert "element 0" in caught.value.__notes__[0]
    assert (rows == 1).all()


def test_threads_keep_the_order_and_end_with_the_iterator() -> None:
    seen = set()

    def slow(x: Any) -> Any:
        seen.add(threading.current_thread().name)
        return x * 2

    assert ints(Dataset.range(40).map(slow, num_parallel_calls=3)) == [2 * i for i in range(40)]
    assert all(name.startswith("wb-map") for name in seen)
    iterator = iter(Dataset.range(40).map(slow, num_parallel_calls=3))
    assert next(iterator) == 0
    del iterator
    unordered = Dataset.range(40).map(slow, num_parallel_calls=3, deterministic=False)
    assert sorted(ints(unordered)) == [2 * i for i in range(40)]


def test_predicates_must_give_one_bool() -> None:
    with pytest.raises(InvalidArgumentError, match=r"\.all\(\)"):
        Dataset.range(6).batch(2).filter(lambda x: x > 2)
    with pytest.raises(InvalidArgumentError, match="one bool"):
        Dataset.range(6).filter(lambda x: x + 1)
    words = {b"a": True, b"b": 3}
    with pytest.raises(InvalidArgumentError, match="one bool"):
        list(Dataset.from_tensor_slices(["a", "b"]).filter(lambda x: words[x]))


def test_take_while_stops_for_good() -> None:
    assert ints(Dataset.from_tensor_slices([1, 2, 9, 1]).take_while(lambda x: x < 5)) == [1, 2]


def test_interleave_refills_an_ended_slot_at_its_next_turn() -> None:
    lengths = Dataset.from_tensor_slices(np.array([3, 1, 4, 1, 5])).enumerate()
    got = ints(
        lengths.interleave(lambda i, n: Dataset.range(int(i) * 100, int(i) * 100 + int(n)), cycle_length=2)
    )
    assert got == [0, 100, 1, 2, 200, 201, 300, 202, 203, 400, 401, 402, 403, 404]


def test_a_cycle_longer_than_its_input_allocates_no_slots_that_stay_empty() -> None:
    lengths = Dataset.from_tensor_slices(np.array([1, 0, 3]))
    assert ints(lengths.interleave(Dataset.range, cycle_length=2**60)) == [0, 0, 1, 2]
    turns = iter(Dataset.counter().interleave(lambda x: Dataset.range(x, x + 9), cycle_length=2**60))
    assert [int(next(turns)) for _ in range(3)] == [0, 1, 2]


def test_flat_map_needs_a_dataset_and_says_how_to_make_one() -> None:
    with pytest.raises(TypeError, match="from_tensors"):
        list(Dataset.range(2).flat_map(lambda x: x))
    with pytest.raises(InvalidArgumentError, match="cycle_length"):
        Dataset.range(2).interleave(Dataset.range, cycle_length=0)


def test_zip_ends_with_the_shortest_and_nests() -> None:
    both = Dataset.zip({"a": Dataset.range(3), "b": (Dataset.range(5).batch(2), Dataset.range(9))})
    assert both.cardinality() == 3
    assert [e["b"][0].tolist() for e in both] == [[0, 1], [2, 3], [4]]
    with pytest.raises(TypeError, match="int"):
        Dataset.zip((Dataset.range(3), 4))


def test_zipped_arrays_are_shuffled_and_batched_as_rows_of_one_table() -> None:
    images, labels = np.arange(20.0).reshape(10, 2), np.arange(12)
    both = Dataset.zip((Dataset.from_tensor_slices(images), {"y": Dataset.from_tensor_slices(labels)}))
    assert len(both) == 10
    batch, rest = next(iter(both.batch(4)))
    assert np.shares_memory(batch, images)
    assert rest["y"].tolist() == [0, 1, 2, 3]
    for x, y in both.shuffle(10, seed=1).batch(3):
        assert x[:, 0].tolist() == (2 * y["y"]).tolist()
    assert (
        list(Dataset.zip((Dataset.from_tensor_slices(labels[:0]), Dataset.from_tensor_slices(labels)))) == []
    )


def test_concatenation_relaxes_shapes_and_refuses_other_dtypes() -> None:
    joined = Dataset.range(4).batch(2, True).concatenate(Dataset.range(3).batch(3, True))
    assert joined.element_spec == TensorSpec((None,), np.int64)
    assert lists(joined) == [[0, 1], [2, 3], [0, 1, 2]]
    with pytest.raises(TypeError, match="concatenate"):
        Dataset.range(3).concatenate(Dataset.from_tensor_slices(["a"]))


def test_choosing_from_datasets_follows_the_choice_and_checks_it() -> None:
    sources = [Dataset.range(3), Dataset.range(10, 13)]
    choice = Dataset.from_tensor_slices(np.array([1, 0, 1]))
    assert ints(Dataset.choose_from_datasets(sources, choice)) == [10, 0, 11]
    with pytest.raises(InvalidArgumentError, match="2 datasets"):
        list(Dataset.choose_from_datasets(sources, Dataset.range(2, 3)))


def test_unbatch_undoes_batch_and_refuses_scalars() -> None:
    assert ints(Dataset.range(7).batch(3).unbatch()) == list(range(7))
    assert Dataset.from_tensors(np.zeros((2, 5))).unbatch().cardinality() == 2
    assert Dataset.range(7).batch(3).unbatch().cardinality() == UNKNOWN_CARDINALITY
    with pytest.raises(InvalidArgumentError, match="batch first"):
        Dataset.range(3).unbatch()
    with pytest.raises(InvalidArgumentError, match="differ in it"):
        list(Dataset.from_tensors((np.zeros(2), np.zeros(3))).unbatch())


def test_windows_are_datasets() -> None:
    windows = [ints(w) for w in Dataset.range(7).window(3, shift=2)]
    assert windows == [[0, 1, 2], [2, 3, 4], [4, 5, 6], [6]]
    sparse = [ints(w) for w in Dataset.range(9).window(2, shift=4, stride=2, drop_remainder=True)]
    assert sparse == [[0, 2], [4, 6]]
    assert lists(Dataset.range(4).window(2).flat_map(lambda w: w.batch(2))) == [[0, 1], [2, 3]]
    with pytest.raises(InvalidArgumentError, match="at least 1"):
        Dataset.range(3).window(0)


@given(
    n=st.integers(0, 20),
    size=st.integers(1, 5),
    shift=st.integers(1, 6),
    stride=st.integers(1, 3),
    drop=st.booleans(),
)
def test_the_number_of_windows_is_known_beforehand(
    n: int, size: int, shift: int, stride: int, drop: bool
) -> None:
    windows = Dataset.range(n).window(size, shift, stride, drop)
    got = [ints(w) for w in windows]
    reach = (size - 1) * stride + 1
    expected = [list(range(n))[s : s + reach : stride] for s in range(0, n, shift)]
    assert got == [w for w in expected if not drop or len(w) == size]
    assert windows.cardinality() == len(got)


def test_padding_fills_up_to_shape_or_largest() -> None:
    rows = Dataset.range(1, 5, output_type=np.int32).map(lambda x: np.full(int(x), x, np.int32))
    assert lists(rows.padded_batch(2)) == [[[1, 0], [2, 2]], [[3, 3, 3, 0], [4, 4, 4, 4]]]
    assert lists(rows.take(1).padded_batch(1, [3], -1)) == [[[1, -1, -1]]]
    with pytest.raises(DataLossError, match="element 0"):
        list(rows.padded_batch(2, [2]))
    for wrong in (np.float64(0), "x"):
        with pytest.raises(TypeError, match="padding value"):
            rows.padded_batch(2, [5], wrong)


def test_groups_close_when_full_and_leftovers_follow_by_key() -> None:
    groups = Dataset.range(11).group_by_window(lambda x: x % 3, lambda key, w: w.batch(2), 2)
    assert lists(groups) == [[0, 3], [1, 4], [2, 5], [6, 9], [7, 10], [8]]
    with pytest.raises(InvalidArgumentError, match="window_size"):
        Dataset.range(3).group_by_window(lambda x: x, lambda k, w: w)


def test_unique_keeps_first_occurrences_and_refuses_floats() -> None:
    assert ints(Dataset.from_tensor_slices([3, 1, 3, 2, 1]).unique()) == [3, 1, 2]
    with pytest.raises(TypeError, match="float32"):
        Dataset.from_tensor_slices([1.0]).unique()


def test_a_cache_keeps_the_first_complete_pass() -> None:
    calls = []

    def counted(x: Any) -> Any:
        calls.append(int(x))
        return x

    dataset = Dataset.range(4).map(counted).cache()
    next(iter(dataset))
    assert ints(dataset) == ints(dataset) == [0, 1, 2, 3]
    assert calls == [0, 0, 1, 2, 3]
    batch = next(iter(Dataset.range(4).batch(2).cache()))
    with pytest.raises(ValueError, match="read-only"):
        batch += 1


def test_a_file_cache_wins_over_a_changed_pipeline(tmp_path: Path) -> None:
    path = str(tmp_path / "c")
    rows = (np.arange(6).reshape(3, 2), ["a", "b\0", ""])
    first = list(Dataset.from_tensor_slices(rows).cache(path))
    again = list(Dataset.range(9).cache(path))
    assert [(a.tolist(), b) for a, b in again] == [(a.tolist(), b) for a, b in first]
    assert [b for _, b in again] == [b"a", b"b\0", b""]


def test_a_stated_cardinality_is_checked() -> None:
    assert len(Dataset.range(5).filter(lambda x: x > 1).assert_cardinality(3)) == 3
    for wrong in (0, 2, 4):
        elements = iter(Dataset.range(3).assert_cardinality(wrong))
        assert [int(next(elements)) for _ in range(min(wrong, 3))] == [0, 1, 2][:wrong]
        for _ in range(max(1, 3 - wrong)):  # each further element, or the missing ones
            with pytest.raises(FailedPreconditionError, match=f"expected {wrong}"):
                next(elements)
        assert next(elements, None) is None


def test_windows_tell_that_there_are_more_elements_than_stated_also_in_gaps_and_at_the_end() -> None:
    numbers = Dataset.range(5).filter(lambda x: x >= 0).assert_cardinality(1)
    for window in (numbers.window(1, 2), numbers.window(3, 2, 2, drop_remainder=True)):
        with pytest.raises(FailedPreconditionError, match="expected 1 elements, there are more"):
            list(window)


@pytest.mark.parametrize("shapes", [None, [None], [-1]])
def test_buckets_are_padded_to_their_boundary_also_where_shapes_are_given(shapes: Any) -> None:
    rows = Dataset.from_generator(
        lambda: iter([[1, 1], [1] * 5]), output_signature=TensorSpec((None,), np.int64)
    )
    buckets = rows.bucket_by_sequence_length(len, [4, 8], [1, 1, 1], shapes, pad_to_bucket_boundary=True)
    assert [batch.shape for batch in buckets] == [(1, 3), (1, 7)]
    short = rows.bucket_by_sequence_length(len, [4], [1, 1], shapes, pad_to_bucket_boundary=True)
    with pytest.raises(InvalidArgumentError, match="above all boundaries"):
        list(short)


def test_a_padded_shape_may_be_a_number_or_an_array() -> None:
    rows = Dataset.range(1, 3).map(lambda x: np.arange(x))
    for shape in (3, [3], np.array([3]), (np.int64(3),)):
        (batch,) = rows.padded_batch(2, padded_shapes=shape)
        assert batch.tolist() == [[0, 0, 0], [0, 1, 0]]
    with pytest.raises(TypeError, match=r"a padded shape has numbers and None, got 1\.5"):
        rows.padded_batch(2, padded_shapes=1.5)


def test_keys_are_truths_and_numbers_of_int64() -> None:
    groups = Dataset.range(4).group_by_window(lambda x: x > 1, lambda key, window: window.batch(9), 9)
    assert [batch.tolist() for batch in groups] == [[0, 1], [2, 3]]
    too_great = Dataset.range(1).group_by_window(
        lambda x: np.uint64(2**63), lambda key, window: window.batch(9), 9
    )
    with pytest.raises(InvalidArgumentError, match="a key is one whole number of int64"):
        list(too_great)
