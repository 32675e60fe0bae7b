"""What TensorFlow 2.21 was seen to do where a plausible pipeline does otherwise."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench import tree
from workbench.data import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset, DatasetSpec, TensorSpec
from workbench.errors import FailedPreconditionError, InvalidArgumentError

SCALAR = TensorSpec((), np.int64)


def passes(*sizes: int) -> Dataset:
    """A dataset whose passes have so many elements each."""
    following = iter(sizes)

    def elements() -> Iterator[int]:
        yield from range(next(following))

    return Dataset.from_generator(elements, output_signature=SCALAR)


def ints(dataset: Dataset) -> list[int]:
    return [int(x) for x in dataset]


def padded(padding_values: Any) -> list[list[int]]:
    pair = (np.array([1], np.int32), np.array([2], np.int32))
    dataset = Dataset.from_tensors(pair).padded_batch(1, ([2], [2]), padding_values)
    return [part.tolist() for part in dataset.first()]


@pytest.mark.parametrize(
    ("padding_values", "expected"),
    [
        ((-1, None), [[[1, -1]], [[2, 0]]]),
        ((None, -1), [[[1, 0]], [[2, -1]]]),
        ((None, None), [[[1, 0]], [[2, 0]]]),
        (-1, [[[1, -1]], [[2, -1]]]),
        (None, [[[1, 0]], [[2, 0]]]),
    ],
)
def test_a_component_without_a_padding_value_is_padded_with_its_default(
    padding_values: Any, expected: list[list[int]]
) -> None:
    assert padded(padding_values) == expected


@pytest.mark.parametrize("padding_values", [(-1,), (-1, None, 3), (None,)])
def test_padding_values_are_one_for_all_or_one_per_component(padding_values: Any) -> None:
    with pytest.raises(ValueError, match="padding values for 2 components"):
        padded(padding_values)


def test_text_is_padded_with_empty_text_by_default() -> None:
    dataset = Dataset.from_tensors((["a"], np.array([2]))).padded_batch(1, ([2], [2]), (None, 7))
    text, number = dataset.first()
    assert text.tolist() == [[b"a", b""]]
    assert number.tolist() == [[2, 7]]


def test_a_finite_repeat_goes_on_after_an_empty_pass() -> None:
    assert ints(passes(0, 0, 1, 0, 2, 0).repeat(6)) == [0, 0, 1]


def test_an_endless_repeat_ends_at_an_empty_pass() -> None:
    assert ints(passes(2, 1, 0, 3).repeat()) == [0, 1, 0]
    assert ints(passes(2, 1, 0, 3).shuffle(1).repeat()) == [0, 1, 0]


def test_a_cache_is_complete_with_its_last_element() -> None:
    dataset = Dataset.range(10).shuffle(10).cache()
    elements = iter(dataset)
    order = [int(next(elements)) for _ in range(10)]
    assert ints(dataset) == order


def test_a_cache_that_was_left_before_its_last_element_is_read_anew() -> None:
    dataset = Dataset.range(40).shuffle(40).map(lambda x: x).cache()
    first = [int(x) for _, x in zip(range(39), dataset, strict=False)]
    assert ints(dataset)[:39] != first


def test_files_of_caches_are_complete_under_zip(tmp_path: Path) -> None:
    caches = [Dataset.range(20).shuffle(20).cache(str(tmp_path / str(part))) for part in range(3)]
    dataset = Dataset.zip(*caches)
    first = list(dataset)
    assert first == list(dataset)
    assert len(list(tmp_path.iterdir())) == 3


def test_a_file_cache_of_a_number_of_elements_that_is_not_known_is_complete_at_the_end(
    tmp_path: Path,
) -> None:
    dataset = passes(3, 5).cache(str(tmp_path / "c"))
    assert ints(dataset) == ints(dataset) == [0, 1, 2]


# Errors and their time


def test_a_function_that_gives_no_dataset_is_refused_when_the_stage_is_made() -> None:
    for make in (Dataset.flat_map, Dataset.interleave):
        with pytest.raises(
            TypeError, match=r"must return a Dataset, got int64; wrap it: Dataset\.from_tensors"
        ):
            make(Dataset.range(3), lambda x: x)


def test_a_function_that_refuses_made_up_values_is_tried_by_the_first_pass() -> None:
    def picky(x: Any) -> Dataset:
        return {0: Dataset.range(1), 5: Dataset.range(2)}[int(x)]

    assert ints(Dataset.range(0, 10, 5).flat_map(picky)) == [0, 0, 1]


def test_components_of_different_lengths_cannot_be_unbatched() -> None:
    with pytest.raises(ValueError, match="differ in it"):
        Dataset.from_tensors((np.zeros(2), np.zeros(3))).unbatch()


def test_padding_that_cannot_fit_is_refused_when_the_stage_is_made() -> None:
    with pytest.raises(ValueError, match="does not fit the padded shape"):
        Dataset.from_tensors(np.zeros(3)).padded_batch(1, [2])
    with pytest.raises(TypeError, match="padded_batch pads arrays"):
        Dataset.range(4).window(2).padded_batch(2)


def test_output_types_are_no_list() -> None:
    with pytest.raises(TypeError, match="a list stands for one array"):
        Dataset.from_generator(lambda: [1], output_types=[np.int64])


def test_datasets_of_datasets_give_no_numpy_elements() -> None:
    with pytest.raises(TypeError, match="elements hold datasets"):
        Dataset.range(4).window(2).as_numpy_iterator()


def test_another_structure_of_the_state_is_an_invalid_argument() -> None:
    with pytest.raises(InvalidArgumentError, match="the function made it"):
        Dataset.range(3).reduce(np.int64(0), lambda state, x: ())
    with pytest.raises(TypeError, match="float32"):
        Dataset.range(3).reduce(np.int64(0), lambda state, x: 1.5)


# Elements


@pytest.mark.parametrize(
    ("value", "signature"),
    [
        ((1, 2), TensorSpec((None,), np.int32)),
        ({"c": (9,)}, {"c": TensorSpec((None,), np.int32)}),
        (((1, 2), 3), (TensorSpec((2,), np.int32), TensorSpec((), np.int32))),
        (((1, 2), (3, 4)), TensorSpec((2, 2), np.int32)),
    ],
)
def test_a_tuple_of_a_generator_is_an_array_where_the_signature_has_one(value: Any, signature: Any) -> None:
    dataset = Dataset.from_generator(lambda: [value], output_signature=signature)
    found = tree.map(lambda part: part.tolist(), dataset.first())
    assert tree.flatten(found)[0] == tree.flatten(value)[0]
    assert tree.map(lambda part: part.dtype, dataset.first()) == tree.map(lambda part: part.dtype, signature)


def test_datasets_are_elements_that_can_be_sliced_batched_and_unbatched() -> None:
    slices = Dataset.from_tensor_slices([Dataset.range(2), Dataset.range(3)])
    assert slices.element_spec == DatasetSpec(SCALAR)
    assert [ints(inner) for inner in slices] == [[0, 1], [0, 1, 2]]
    windows = Dataset.range(5).window(2).batch(2)
    assert windows.element_spec == DatasetSpec(SCALAR, (None,))
    assert [[ints(inner) for inner in batch] for batch in windows] == [[[0, 1], [2, 3]], [[4]]]
    assert windows.unbatch().element_spec == DatasetSpec(SCALAR)
    assert [ints(inner) for inner in windows.unbatch()] == [[0, 1], [2, 3], [4]]
    pairs = Dataset.zip(Dataset.range(4), Dataset.range(4).window(1)).batch(4).unbatch()
    assert [(int(x), ints(inner)) for x, inner in pairs] == [(x, [x]) for x in range(4)]


# Cardinalities


def test_endless_input_stays_endless_through_grouping_and_parallel_interleave() -> None:
    endless, finite = Dataset.range(3).repeat(), Dataset.range(3)
    for dataset, expected in ((endless, INFINITE_CARDINALITY), (finite, UNKNOWN_CARDINALITY)):
        grouped = dataset.group_by_window(lambda x: x % 2, lambda key, window: window.batch(2), window_size=2)
        assert grouped.cardinality() == expected
        rows = dataset.map(lambda x: np.zeros(3))
        assert rows.bucket_by_sequence_length(len, [4], [2, 2]).cardinality() == expected
        assert dataset.interleave(Dataset.from_tensors, num_parallel_calls=2).cardinality() == expected
        assert dataset.interleave(Dataset.from_tensors).cardinality() == UNKNOWN_CARDINALITY


@pytest.mark.parametrize(
    "make",
    [
        lambda dataset: dataset.take(1.5),
        lambda dataset: dataset.skip("1"),
        lambda dataset: dataset.repeat(2.0),
        lambda dataset: dataset.shard(2, 0.5),
        lambda dataset: dataset.shuffle(2.5),
        lambda dataset: dataset.prefetch(1.5),
        lambda dataset: dataset.enumerate(0.5),
        lambda dataset: dataset.batch(1.5),
        lambda dataset: dataset.padded_batch(1.5),
        lambda dataset: dataset.batch(2).rebatch([1.5]),
        lambda dataset: dataset.window(2, shift=1.5),
        lambda dataset: Dataset.range(2.5),
    ],
)
def test_numbers_of_elements_are_whole(make: Any) -> None:
    with pytest.raises(TypeError, match="whole number"):
        make(Dataset.range(5))


def test_numbers_of_elements_may_be_arrays_of_one() -> None:
    assert ints(Dataset.range(5).skip(np.int32(1)).take(np.array(2))) == [1, 2]


def test_a_group_has_a_key_of_one_whole_number_and_becomes_a_dataset() -> None:
    for key in (1.5, "k", [1]):
        dataset = Dataset.range(2).group_by_window(lambda x, key=key: key, lambda k, w: w.batch(2), 2)
        with pytest.raises(InvalidArgumentError, match="one whole number"):
            list(dataset)
    with pytest.raises(TypeError, match="reduce_func must return a Dataset, got NoneType"):
        list(Dataset.range(2).group_by_window(lambda x: 0, lambda k, w: None, 2))
    with pytest.raises(TypeError, match="reduce_func must return a Dataset, got int64"):
        _ = Dataset.range(2).group_by_window(lambda x: 0, lambda k, w: k, 2).element_spec


def test_a_list_of_datasets_cannot_be_zipped() -> None:
    with pytest.raises(TypeError, match="got list"):
        Dataset.zip([Dataset.range(2), Dataset.range(2)])


def test_a_sample_of_one_dataset_has_its_cardinality() -> None:
    numbers = Dataset.range(3)
    sample = Dataset.sample_from_datasets([numbers, numbers], [1.0, 0.0], stop_on_empty_dataset=True)
    assert (sample.cardinality(), ints(sample)) == (3, [0, 1, 2])


def test_a_generator_may_yield_another_dtype_with_the_same_values() -> None:
    whole = Dataset.from_generator(lambda: [2.0, np.complex64(3)], output_signature=SCALAR)
    assert [(x.dtype, int(x)) for x in whole] == [(np.int64, 2), (np.int64, 3)]
    for wrong in (1.5, 1j, float("nan")):
        dataset = Dataset.from_generator(lambda wrong=wrong: [wrong], output_signature=SCALAR)
        with pytest.raises(InvalidArgumentError, match="does not fit into int64"):
            list(dataset)


def test_a_generator_that_was_made_already_is_refused() -> None:
    def numbers() -> Any:
        yield 1

    with pytest.raises(
        TypeError, match=r"a function that returns an iterable.*got generator; leave out the call"
    ):
        Dataset.from_generator(numbers(), output_signature=SCALAR)  # type: ignore[arg-type]
    once = numbers()
    dataset = Dataset.from_generator(lambda: once, output_signature=SCALAR)
    assert list(dataset) == [1]
    with pytest.raises(
        FailedPreconditionError, match=r"a generator that has ended.*make a new one in each call"
    ):
        list(dataset)


class _Countdown(Generator[int, Any, None]):
    def __init__(self) -> None:
        self.left = 3

    def send(self, value: Any) -> int:
        if not self.left:
            raise StopIteration
        self.left -= 1
        return self.left

    def throw(self, *error: Any) -> int:
        raise StopIteration


def test_the_function_of_a_generator_may_return_a_generator_of_another_class() -> None:
    assert ints(Dataset.from_generator(_Countdown, output_signature=SCALAR)) == [2, 1, 0]


@pytest.mark.parametrize("made", [5, None, np.array(5)])
def test_what_the_function_of_a_generator_returned_is_named_if_it_yields_nothing(made: Any) -> None:
    dataset = Dataset.from_generator(lambda: made, output_signature=SCALAR)
    with pytest.raises(
        TypeError, match=f"the function returned {type(made).__name__}.*; let it yield elements"
    ):
        list(dataset)


def test_an_error_of_a_generator_says_at_which_element() -> None:
    def fails() -> Any:
        yield 1
        raise LookupError("nothing left")

    elements = iter(Dataset.from_generator(fails, output_signature=SCALAR))
    assert next(elements) == 1
    with pytest.raises(LookupError) as caught:
        next(elements)
    assert caught.value.__notes__ == ["in the generator of a dataset, at element 1"]
    assert list(elements) == []


def test_an_error_that_is_raised_in_each_iteration_has_one_note() -> None:
    error = LookupError("nothing left")

    def fails() -> Any:
        yield 1
        raise error

    dataset = Dataset.from_generator(fails, output_signature=SCALAR)
    for _ in range(3):
        with pytest.raises(LookupError):
            list(dataset)
    assert error.__notes__ == ["in the generator of a dataset, at element 1"]


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        (0.1, np.float64),
        ([0.1, 1e300], np.float64),
        ((0.1, 1e300), np.float64),
        (0.1, np.float16),
        (2**63 + 1, np.uint64),
        ([2**63 + 1, 0], np.uint64),  # NumPy turns these into floats
        (2**70, np.float64),
        ([2**70, 1.5], np.float64),
        ([2**70, 1j], np.complex128),
        ([10**100, 1 + 0j], np.complex128),
        (2**53 + 1, np.int64),
        (0.1, np.complex128),
        ([0.1 + 1e300j], np.complex128),
        (range(3), np.float64),
    ],
)
def test_python_numbers_of_a_generator_keep_all_the_digits_that_their_dtype_has(
    given: Any, dtype: Any
) -> None:
    signature = TensorSpec(np.shape(given), dtype)
    want = np.asarray(given, dtype)
    for dataset in (
        Dataset.from_generator(lambda: [given], output_signature=signature),
        Dataset.from_generator(lambda: [{"a": given}], output_signature={"a": signature}).map(
            lambda x: x["a"]
        ),
    ):
        (got,) = dataset
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, want, strict=True)


@pytest.mark.parametrize("other", [2.0, 2 + 0j])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_integers_of_a_generator_keep_all_their_digits_next_to_another_number(dtype: Any, other: Any) -> None:
    given = [[2**53 + 1, other], [True, 0]]
    (got,) = Dataset.from_generator(lambda: [given], output_signature=TensorSpec((2, 2), dtype))
    np.testing.assert_array_equal(got, np.array([[2**53 + 1, 2], [1, 0]], dtype), strict=True)


class _Watched(float):
    asked = 0

    def is_integer(self) -> bool:
        type(self).asked += 1
        return super().is_integer()


def test_floats_of_a_generator_are_asked_one_by_one_only_if_an_integer_may_have_lost_digits() -> None:
    for largest, asked in ((2.0**53 - 1, 0), (2.0**53, 2)):
        given = [_Watched(largest), _Watched(-3), 2]
        (got,) = Dataset.from_generator(
            lambda given=given: [given], output_signature=TensorSpec((3,), np.int64)
        )
        assert (got.tolist(), _Watched.asked) == (given, asked)


@pytest.mark.parametrize(
    ("wrong", "dtype"),
    [
        ([2**63 + 1, -1], np.uint64),
        ([2**64, 0], np.uint64),
        ([2**63, -1], np.int64),
        ([2**53 + 1, 1.5], np.int64),
        ([2**64, 1.0], np.int64),
        ([2**53 + 1, 1j], np.int64),
        ([1.0, float("inf")], np.int64),
        (10**400, np.float64),
        ([10**400, 1j], np.complex128),
        ([2**70, 1j], np.float64),
    ],
)
def test_python_numbers_of_a_generator_that_do_not_fit_are_named(wrong: Any, dtype: Any) -> None:
    dataset = Dataset.from_generator(lambda: [wrong], output_signature=TensorSpec(np.shape(wrong), dtype))
    with pytest.raises(InvalidArgumentError, match=r"element 0 is .*, which does not fit into"):
        list(dataset)


def test_a_generator_may_yield_numbers_that_have_to_be_rounded() -> None:
    given = [0.1, np.float64(0.1), np.complex128(0.1), np.longdouble(0.1), float("inf"), np.float64("nan")]
    dataset = Dataset.from_generator(lambda: given, output_signature=TensorSpec((), np.float32))
    tenth = np.float32(0.1)
    np.testing.assert_array_equal(list(dataset), [tenth, tenth, tenth, tenth, np.inf, np.nan])
    assert {x.dtype for x in dataset} == {np.dtype(np.float32)}
    for lost in (np.complex64(1 + 2j), np.float64(1e300), np.complex128(-1e300), b"1", "a"):
        wrong = Dataset.from_generator(lambda lost=lost: [lost], output_signature=TensorSpec((), np.float32))
        with pytest.raises(InvalidArgumentError, match=r"element 0 is .*, which does not fit into float32"):
            list(wrong)


@pytest.mark.parametrize("wrong", [1.5, 3, np.arange(2)])
def test_numbers_of_a_generator_are_no_texts(wrong: Any) -> None:
    dataset = Dataset.from_generator(lambda: [wrong], output_signature=TensorSpec(np.shape(wrong), "string"))
    with pytest.raises(InvalidArgumentError, match=r"element 0 .* does not fit into string"):
        list(dataset)


@pytest.mark.parametrize("wrong", [300, -129, np.array(["a"], object)])
def test_what_does_not_fit_into_the_dtype_of_a_generator_is_named(wrong: Any) -> None:
    dataset = Dataset.from_generator(lambda: [wrong], output_signature=TensorSpec(np.shape(wrong), np.int8))
    with pytest.raises(InvalidArgumentError, match=r"element 0 .* does not fit into int8"):
        list(dataset)


def test_a_state_that_grows_has_no_known_size() -> None:
    grown = Dataset.range(3).scan(np.zeros(0), lambda s, x: (np.append(s, 1.0), s))
    assert grown.element_spec == TensorSpec((None,), np.float64)
    assert [len(x) for x in grown] == [0, 1, 2]


@pytest.mark.parametrize("number", [2**63, [1e300], 1e300, -1e39])
def test_numbers_too_large_for_an_element_are_refused(number: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="not fit into"):
        Dataset.from_tensors(number)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"size": 2}, ["refused", [2, 3], "refused"]),
        ({"size": 2, "shift": 1}, ["refused", "refused", [2, 3], "refused", "refused", [5]]),
        ({"size": 2, "shift": 2, "stride": 2, "drop_remainder": True}, [[0, 2], "refused"]),
        ({"size": 4, "drop_remainder": True}, ["refused"]),
    ],
)
def test_a_window_fails_with_any_of_its_elements(arguments: dict[str, Any], expected: list[Any]) -> None:
    def refuse(x: Any) -> Any:
        if x % 3 == 1:
            raise ValueError("refused")
        return x

    windows = iter(Dataset.range(6).map(refuse).window(**arguments))
    found: list[Any] = []
    while len(found) <= len(expected):
        try:
            found.append(ints(next(windows)))
        except StopIteration:
            break
        except ValueError as error:
            found.append(str(error))
    assert found == expected


@pytest.mark.parametrize("shapes", [({"a": [-1, 3]},), {"a": [None, 3]}])
def test_padded_shapes_may_be_nested_around_one_component(shapes: Any) -> None:
    element = {"a": np.ones((2, 2, 2))}
    dataset = Dataset.from_tensor_slices((element,) if isinstance(shapes, tuple) else element)
    batch = dataset.padded_batch(2, padded_shapes=shapes).first()
    assert [part.shape for part in tree.flatten(batch)[0]] == [(2, 2, 3)]
