"""Datasets as descriptions: building, iterating, looking at them, sending them."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from workbench.data import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    AutoShardPolicy,
    Dataset,
    DatasetSpec,
    Options,
    TensorSpec,
    experimental,
    set_seed,
)
from workbench.errors import InvalidArgumentError, OutOfRangeError

INT = TensorSpec((), np.int64)


def ints(dataset: Dataset) -> list[int]:
    return [int(x) for x in dataset]


def add(x: Any) -> Any:
    return x + 1


def test_using_datasets_imports_neither_dask_nor_an_accelerator_library() -> None:
    code = (
        "import sys, workbench.data as d; list(d.Dataset.range(3).shuffle(2).batch(2)); d.explain_sharding;"
        "print([m for m in ('dask', 'distributed', 'cupy', 'jax', 'torch', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_iterators_are_independent_and_stay_exhausted() -> None:
    dataset = Dataset.range(2)
    first, second = iter(dataset), iter(dataset)
    assert [int(next(first)), int(next(first)), int(next(second))] == [0, 1, 0]
    with pytest.raises(StopIteration):
        next(first)
    with pytest.raises(OutOfRangeError):
        first.get_next()
    assert not first.get_next_as_optional().has_value()
    assert second.get_next_as_optional().get_value() == 1
    assert second.element_spec == TensorSpec((), np.int64)


def test_an_optional_without_value_says_so() -> None:
    empty = iter(Dataset.range(0)).get_next_as_optional()
    assert repr(empty) == "Optional(no value)"
    with pytest.raises(InvalidArgumentError, match="has_value"):
        empty.get_value()


def test_a_dataset_is_true_even_when_empty_and_len_needs_a_known_count() -> None:
    assert Dataset.range(0)
    assert len(Dataset.range(7).batch(2)) == 4
    with pytest.raises(TypeError, match="infinite"):
        len(Dataset.range(3).repeat())
    with pytest.raises(TypeError, match="unknown"):
        len(Dataset.range(3).filter(lambda x: x > 1))


def test_slices_are_views_that_cannot_be_written() -> None:
    rows = np.zeros((4, 2))
    batch = next(iter(Dataset.from_tensor_slices(rows).batch(2)))
    assert np.shares_memory(batch, rows)
    with pytest.raises(ValueError, match="read-only"):
        batch += 1
    assert rows.flags.writeable


def test_shuffled_batches_are_copies_that_may_be_written() -> None:
    rows = np.zeros((4, 2))
    batch = next(iter(Dataset.from_tensor_slices(rows).shuffle(4).batch(2)))
    batch += 1
    assert not rows.any()


def test_slices_stay_read_only_in_another_process() -> None:
    for dataset in (
        Dataset.from_tensor_slices(np.zeros((4, 2))).batch(2),
        Dataset.from_tensors(np.zeros((4, 2))),
    ):
        with pytest.raises(ValueError, match="read-only"):
            next(iter(pickle.loads(pickle.dumps(dataset))))[0] = 1


@pytest.mark.parametrize("value", [5, (np.zeros(2), np.zeros(3))])
def test_slices_need_one_first_dimension(value: object) -> None:
    with pytest.raises(ValueError, match="from_tensor_slices"):
        Dataset.from_tensor_slices(value)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((), r"range takes 1 to 3 numbers .*, got 0"),
        ((1, 2, 3, 4), r"range takes 1 to 3 numbers .*, got 4"),
        ((1, 2, 0), r"range\(1, 2, 0\): the step must not be zero"),
    ],
)
def test_range_checks_its_arguments(args: tuple[int, ...], says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"^{says}$"):
        Dataset.range(*args)


def test_generators_are_called_anew_and_held_to_their_signature() -> None:
    calls = []

    def numbers(n: int) -> Any:
        calls.append(n)
        yield from ([1], [2, 3], [[4]])

    dataset = Dataset.from_generator(numbers, args=(3,), output_signature=TensorSpec((None,), np.int32))
    iterator = iter(dataset)
    assert [next(iterator).tolist(), next(iterator).tolist()] == [[1], [2, 3]]
    with pytest.raises(InvalidArgumentError, match="element 2 has shape"):
        next(iterator)
    next(iter(dataset))
    assert calls == [3, 3]


def test_generator_types_and_shapes_make_a_signature() -> None:
    dataset = Dataset.from_generator(lambda: iter([(1, "a")]), (np.int64, "string"), ((), ()))
    assert dataset.element_spec == (TensorSpec((), np.int64), TensorSpec((), "string"))
    assert next(iter(dataset)) == (1, b"a")
    with pytest.raises(TypeError, match="output_signature"):
        Dataset.from_generator(lambda: iter([1]))


def test_shapes_of_a_generator_may_be_unknown_inside_a_structure() -> None:
    dataset = Dataset.from_generator(lambda: iter([{"a": [1, 2]}]), {"a": np.int64}, {"a": None})
    assert dataset.element_spec == {"a": TensorSpec(None, np.int64)}
    (element,) = dataset
    assert element["a"].tolist() == [1, 2]


def test_a_dataset_in_the_place_of_an_array_is_told() -> None:
    dataset = Dataset.from_generator(lambda: iter([Dataset.range(2)]), output_signature=INT)
    with pytest.raises(
        InvalidArgumentError, match=r"element 0 has <Dataset: range.*the signature TensorSpec"
    ):
        list(dataset)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda d: d.concatenate(1), "concatenate takes a dataset, got int 1"),
        (lambda d: d.with_options(b"a"), "with_options takes Options, got bytes b'a'"),
        (lambda d: d.map(lambda x: x, [2]), "map: num_parallel_calls must be a whole number, got list"),
        (
            lambda d: d.bucket_by_sequence_length(len, [None], [1, 1]),
            "each boundary must be a whole number, got NoneType",
        ),
    ],
)
def test_arguments_of_another_kind_are_named(make: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make(Dataset.range(3))


def test_a_range_of_more_numbers_than_can_be_counted_is_refused() -> None:
    assert [len(Dataset.range(*args)) for args in ((5, 0, -2), (0, 5, 2), (5, 0), (0, 5, -1))] == [3, 3, 0, 0]
    with pytest.raises(InvalidArgumentError, match="more than int64 can count"):
        Dataset.range(-(2**63), 1)
    with pytest.raises(InvalidArgumentError, match="start is 9223372036854775808, which int64 cannot hold"):
        Dataset.range(2).enumerate(2**63)


def test_a_range_of_texts_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="output_type is 'string'; it counts in numbers"):
        Dataset.range(3, output_type="string")


@pytest.mark.parametrize(
    ("signature", "value"),
    [
        ((INT,), 1),
        (INT, {"a": 1}),
        ({"a": INT}, 1),
        ({"a": INT}, {"b": 1}),
        ((INT,), {"a": 1}),
        (((INT,),), (1,)),
        ({"a": INT}, (1,)),
    ],
)
def test_a_generator_yields_the_structure_of_its_signature_also_with_one_component(
    signature: Any, value: Any
) -> None:
    with pytest.raises(InvalidArgumentError, match="make the generator yield that structure"):
        list(Dataset.from_generator(lambda: iter([value]), output_signature=signature))


def test_pickled_datasets_go_on_where_their_epochs_were() -> None:
    dataset = Dataset.range(50).shuffle(50).map(add).batch(8)
    list(dataset)
    copy = pickle.loads(pickle.dumps(dataset))
    assert [b.tolist() for b in copy] == [b.tolist() for b in dataset]


def test_epochs_differ_and_rebuilt_datasets_repeat_them() -> None:
    def build() -> Dataset:
        return Dataset.range(30).shuffle(10, seed=3)

    first, second = build(), build()
    orders = [ints(first), ints(first)]
    assert orders[0] != orders[1]
    assert [ints(second), ints(second)] == orders


def test_unseeded_shuffles_are_repeatable_with_a_global_seed() -> None:
    try:
        set_seed(7)
        a = [ints(Dataset.range(20).shuffle(20)), ints(Dataset.range(20).shuffle(20))]
        set_seed(7)
        b = [ints(Dataset.range(20).shuffle(20)), ints(Dataset.range(20).shuffle(20))]
    finally:
        set_seed(None)
    assert a == b
    assert a[0] != a[1]


def test_element_spec_finds_out_what_a_function_returns() -> None:
    batches = Dataset.range(10).batch(4)
    assert batches.map(lambda x: x * 2).element_spec == TensorSpec((None,), np.int64)
    assert batches.map(lambda x: {"s": x.sum(), "c": "t"}).element_spec == {
        "s": TensorSpec((), np.int64),
        "c": TensorSpec((), "string"),
    }
    grown = Dataset.range(1, 5).map(lambda x: np.zeros(int(x), np.float32))
    assert grown.element_spec == TensorSpec((None,), np.float32)


def test_a_function_that_refuses_made_up_values_is_asked_about_the_first_element() -> None:
    def only_known(name: bytes) -> Any:
        return {b"cat": np.int8(1), b"dog": np.int8(2)}[name]

    assert Dataset.from_tensor_slices(["cat", "dog"]).map(only_known).element_spec == TensorSpec((), np.int8)


def test_a_function_with_the_wrong_number_of_arguments_is_refused_when_building() -> None:
    with pytest.raises(TypeError, match="2 component"):
        Dataset.range(3).enumerate().map(lambda x: x)


def test_options_are_carried_on_and_merged() -> None:
    options = Options()
    options.experimental_distribute.auto_shard_policy = "DATA"  # type: ignore[assignment]
    options.experimental_slack = True
    dataset = Dataset.range(3).with_options(options).batch(2)
    assert dataset.options().experimental_distribute.auto_shard_policy is AutoShardPolicy.DATA
    other = Options()
    other.experimental_slack = False
    with pytest.warns(UserWarning, match="experimental_slack"):
        assert dataset.with_options(other).options().experimental_slack is False
    assert dataset.options().experimental_slack is True


def test_the_options_of_a_dataset_cannot_be_changed() -> None:
    dataset = Dataset.range(3)
    for options in (dataset.options(), dataset.batch(2).options(), dataset.with_options(Options()).options()):
        with pytest.raises(ValueError, match=r"no effect.*with_options"):
            options.experimental_slack = True
        with pytest.raises(ValueError, match="no effect"):
            options.deterministic = False
        with pytest.raises(ValueError, match="no effect"):
            options.experimental_distribute.num_devices = 1
        assert options == Options()


def test_options_set_for_one_dataset_leave_its_relatives_alone() -> None:
    options = Options()
    options.experimental_slack = True
    parent = Dataset.range(3)
    child = parent.batch(2).with_options(options)
    options.experimental_slack = False  # the dataset has its own copy
    assert parent.options().experimental_slack is None
    assert child.take(1).options().experimental_slack is True


def test_what_was_made_of_the_options_of_a_dataset_can_be_changed() -> None:
    made = Dataset.range(3).options().merge(Options())
    made.experimental_slack = True
    made.experimental_distribute.num_devices = 2
    assert (made.experimental_slack, made.experimental_distribute.num_devices) == (True, 2)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda options: pickle.loads(pickle.dumps(options))])
def test_options_travel_as_they_are(copied: Callable[[Options], Options]) -> None:
    options = Options()
    options.threading.private_threadpool_size = 2
    assert copied(options) == options
    copied(options).deterministic = True
    frozen = copied(Dataset.range(3).with_options(options).options())
    assert frozen == options
    with pytest.raises(ValueError, match="no effect"):
        frozen.deterministic = True


def test_misspelt_options_and_unknown_policies_are_refused() -> None:
    options = Options()
    with pytest.raises(AttributeError, match="experimental_slack"):
        options.slack = True  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="AUTO"):
        options.experimental_distribute.auto_shard_policy = "SOMETIMES"  # type: ignore[assignment]
    assert options == Options()
    assert "DATA" not in repr(options)


def test_apply_takes_only_functions_of_datasets() -> None:
    assert ints(Dataset.range(3).apply(experimental.shuffle_and_repeat(1, 2))) == [0, 1, 2, 0, 1, 2]
    with pytest.raises(TypeError, match="Dataset"):
        Dataset.range(3).apply(lambda d: 3)  # type: ignore[arg-type, return-value]


def test_reduce_folds_and_keeps_the_type_of_the_state() -> None:
    assert Dataset.range(5).reduce(np.int64(0), lambda s, x: s + x) == 10
    total, count = Dataset.range(4).reduce((np.int64(0), 0), lambda s, x: (s[0] + x, s[1] + np.int32(1)))
    assert (int(total), int(count)) == (6, 4)
    with pytest.raises(TypeError, match="float"):
        Dataset.range(5).reduce(np.int64(0), lambda s, x: s + 0.5)


def test_texts_show_the_pipeline_without_running_it() -> None:
    def never(x: Any) -> Any:
        raise AssertionError("a repr called the user's function")

    dataset = Dataset.range(100).shuffle(10).batch(8).map(never)
    assert repr(dataset) == "<Dataset: range → shuffle(10) → batch(8) → map(never), 13 elements>"
    iterator = iter(Dataset.range(13))
    next(iterator)
    assert repr(iterator) == "<DatasetIterator of <Dataset: range, 13 elements>: 1 given>"
    both = Dataset.zip((Dataset.range(3), Dataset.range(4))).repeat()
    assert repr(both) == "<Dataset: zip[range, range] → repeat(), endless>"
    assert len(repr(dataset.take(1).skip(0).repeat(2).take(1).skip(0).repeat(2).prefetch(3))) <= 88


def test_html_escapes_names() -> None:
    def fn(x: Any) -> Any:
        return x

    fn.__name__ = "<script>"
    bundle = Dataset.range(3).map(fn)._repr_mimebundle_()
    assert "<script>" not in bundle["text/html"]
    assert "map(<script>)" in bundle["text/plain"]


def test_names_are_listed_and_unknown_ones_refused() -> None:
    import workbench.data as data

    assert "Dataset" in dir(data)
    assert all(hasattr(data, name) for name in data.__all__)
    with pytest.raises(AttributeError, match="Datset"):
        data.Datset  # type: ignore[attr-defined]
    assert (INFINITE_CARDINALITY, UNKNOWN_CARDINALITY) == (-1, -2)


def test_an_empty_list_of_a_generator_has_the_dtype_of_the_signature() -> None:
    dataset = Dataset.from_generator(lambda: iter([[1], []]), output_signature=TensorSpec((None,), np.int64))
    assert [(x.dtype, x.tolist()) for x in dataset] == [(np.int64, [1]), (np.int64, [])]


@pytest.mark.parametrize(("dtype", "value"), [("string", b"a"), (np.float32, 0.5), (np.bool_, True)])
def test_a_generator_may_yield_empty_lists_of_every_dtype(dtype: Any, value: Any) -> None:
    dataset = Dataset.from_generator(lambda: iter([[], [value]]), output_signature=TensorSpec((None,), dtype))
    assert [x.tolist() for x in dataset] == [[], [value]]
    assert {x.dtype for x in dataset} == {TensorSpec((None,), dtype).dtype}


def test_a_generator_may_yield_datasets() -> None:
    signature = DatasetSpec(TensorSpec((), np.int64))
    dataset = Dataset.from_generator(lambda: iter([Dataset.range(2), 3]), output_signature=signature)
    elements = iter(dataset)
    assert list(next(elements)) == [0, 1]
    with pytest.raises(InvalidArgumentError, match="element 1 has"):
        next(elements)
