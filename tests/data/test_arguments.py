"""What the methods of datasets say to arguments that make no sense, and when."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import workbench as wb
from workbench.data import (
    CsvDataset,
    Dataset,
    Options,
    TensorSpec,
    TextLineDataset,
    TFRecordDataset,
    experimental,
)
from workbench.data.experimental import from_list
from workbench.data.service.dispatcher import DispatchServer
from workbench.data.service.worker import WorkerConfig, WorkerServer
from workbench.errors import InvalidArgumentError

_FIVE = Dataset.range(5)
_NO_FUNCTION: dict[str, Callable[[Any], Any]] = {
    "apply": _FIVE.apply,
    "bucket_by_sequence_length": lambda no: _FIVE.bucket_by_sequence_length(no, [2], [2, 2]),
    "filter": _FIVE.filter,
    "flat_map": _FIVE.flat_map,
    "group_by_window: key_func": lambda no: _FIVE.group_by_window(no, lambda key, window: window, 2),
    "group_by_window: reduce_func": lambda no: _FIVE.group_by_window(lambda x: x, no, 2),
    "group_by_window: window_size_func": lambda no: _FIVE.group_by_window(
        lambda x: x, lambda key, window: window, window_size_func=no
    ),
    "interleave": _FIVE.interleave,
    "map": _FIVE.map,
    "map_batches": lambda no: _FIVE.map_batches(no, 2),
    "reduce": lambda no: Dataset.range(0).reduce(0, no),
    "rejection_resample": lambda no: _FIVE.rejection_resample(no, [1.0]),
    "scan": lambda no: _FIVE.scan(0, no),
    "snapshot: reader_func": lambda no: _FIVE.snapshot("nowhere", reader_func=no),
    "snapshot: shard_func": lambda no: _FIVE.snapshot("nowhere", shard_func=no),
    "save": lambda no: Dataset.range(0).save("nowhere", shard_func=no),
    "take_while": _FIVE.take_while,
}
_HERE = str(Path(__file__))
_FLAGS: dict[str, Callable[[Any], Any]] = {
    "batch": lambda given: _FIVE.batch(2, drop_remainder=given),
    "batch: deterministic": lambda given: _FIVE.batch(2, deterministic=given),
    "bucket_by_sequence_length: drop_remainder": lambda given: _FIVE.bucket_by_sequence_length(
        lambda x: 1, [2], [2, 2], drop_remainder=given
    ),
    "bucket_by_sequence_length: no_padding": lambda given: _FIVE.bucket_by_sequence_length(
        lambda x: 1, [2], [2, 2], no_padding=given
    ),
    "choose_from_datasets": lambda given: Dataset.choose_from_datasets([_FIVE], Dataset.range(1), given),
    "CsvDataset: header": lambda given: CsvDataset(_HERE, header=given),
    "CsvDataset of tf.data: header": lambda given: experimental.CsvDataset(_HERE, [""], header=given),
    "CsvDataset of tf.data: use_quote_delim": lambda given: experimental.CsvDataset(
        _HERE, [""], use_quote_delim=given
    ),
    "ignore_errors": lambda given: _FIVE.ignore_errors(given),
    "interleave": lambda given: _FIVE.interleave(Dataset.from_tensors, deterministic=given),
    "list_files": lambda given: Dataset.list_files(_HERE, shuffle=given),
    **{
        f"make_batched_features_dataset: {name}": lambda given, name=name: (
            experimental.make_batched_features_dataset(
                _HERE, 2, {"a": wb.io.VarLenFeature("int64")}, **{name: given}
            )
        )
        for name in ("shuffle", "sloppy_ordering", "drop_final_batch")
    },
    **{
        f"make_csv_dataset: {name}": lambda given, name=name: experimental.make_csv_dataset(
            _HERE, 2, ["a"], [""], **{name: given}
        )
        for name in ("header", "use_quote_delim", "shuffle", "sloppy", "ignore_errors")
    },
    "map": lambda given: _FIVE.map(lambda x: x, synchronous=given),
    "map: deterministic": lambda given: _FIVE.map(lambda x: x, deterministic=given),
    "map_batches": lambda given: _FIVE.map_batches(lambda x: x, 2, deterministic=given),
    "padded_batch": lambda given: _FIVE.padded_batch(2, drop_remainder=given),
    "padded_batch: deterministic": lambda given: _FIVE.padded_batch(2, deterministic=given),
    "parallel_interleave": lambda given: _FIVE.apply(
        experimental.parallel_interleave(Dataset.from_tensors, 2, sloppy=given)
    ),
    "parse_example": lambda given: Dataset.from_tensors(np.array([b""], object)).apply(
        experimental.parse_example_dataset({"a": wb.io.VarLenFeature("int64")}, deterministic=given)
    ),
    "random": lambda given: Dataset.random(1, given),
    "rebatch": lambda given: _FIVE.batch(2).rebatch(3, drop_remainder=given),
    "sample_from_datasets": lambda given: Dataset.sample_from_datasets([_FIVE], stop_on_empty_dataset=given),
    "sample_from_datasets: each iteration": lambda given: Dataset.sample_from_datasets(
        [_FIVE], rerandomize_each_iteration=given
    ),
    "TextLineDataset": lambda given: TextLineDataset(_HERE, strict=given),
    "TFRecordDataset": lambda given: TFRecordDataset(_HERE, strict=given),
    "shuffle": lambda given: _FIVE.shuffle(2, reshuffle_each_iteration=given),
    "window": lambda given: _FIVE.window(2, drop_remainder=given),
}


@pytest.mark.parametrize("call", _NO_FUNCTION.values(), ids=_NO_FUNCTION)
@pytest.mark.parametrize("given", [3, "map", np.arange(3)])
def test_what_cannot_be_called_is_refused_at_once(call: Callable[[Any], Any], given: Any) -> None:
    with pytest.raises(TypeError, match=r"must be a function, got (int|str|ndarray)"):
        call(given)


@pytest.mark.parametrize("number", [True, np.True_, np.array(True), 0, np.int64(0), np.array(0)])
def test_numbers_of_explain_sharding_are_whole_ones_of_any_library(number: Any) -> None:
    dataset = Dataset.range(8).batch(4)
    with pytest.raises(InvalidArgumentError, match="replicas_per_host must be an integer of at least 1"):
        wb.explain_sharding(dataset, number)
    for name in ("max_steps", "max_elements", "hosts"):
        with pytest.raises(InvalidArgumentError, match=f"{name} must be an integer of at least 1"):
            wb.explain_sharding(dataset, **{name: number})
    two = wb.explain_sharding(dataset, 2, max_steps=1)
    assert repr(wb.explain_sharding(dataset, np.array(2), max_steps=np.int64(1))) == repr(two)


def test_options_take_numbers_and_flags_of_numpy() -> None:
    options = Options()
    for number in (3, np.int64(3), np.array(3)):
        options.autotune.cpu_budget = number
        assert type(options.autotune.cpu_budget) is int
    options.deterministic = np.False_
    assert options.deterministic is False
    for wrong in (True, np.True_, 2.0, "2"):
        with pytest.raises(TypeError, match="option cpu_budget of AutotuneOptions takes int"):
            options.autotune.cpu_budget = wrong
    for wrong in (True, np.True_, "2"):
        with pytest.raises(InvalidArgumentError, match="unknown auto_shard_policy"):
            options.experimental_distribute.auto_shard_policy = wrong
    with pytest.raises(TypeError, match="takes bool"):
        options.deterministic = 1


def test_whether_a_service_starts_is_a_flag() -> None:
    with pytest.raises(TypeError, match="start must be True or False"):
        DispatchServer(start="False")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="start must be True or False"):
        WorkerServer(WorkerConfig("localhost:1"), start="False")  # type: ignore[arg-type]


def test_a_stored_dataset_is_read_by_a_function(tmp_path: Path) -> None:
    _FIVE.save(tmp_path / "five")
    with pytest.raises(TypeError, match="reader_func must be a function, got int 3"):
        Dataset.load(tmp_path / "five", reader_func=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("call", _FLAGS.values(), ids=_FLAGS)
def test_only_true_and_false_are_taken_for_an_answer(call: Callable[[Any], Any]) -> None:
    for given in (True, False, np.True_, np.False_):
        assert isinstance(call(given), Dataset)
    for given in ("False", 1, [False], np.array([True])):
        with pytest.raises(TypeError, match="must be True or False, got "):
            call(given)


@pytest.mark.parametrize("seed", [1.5, "1", [1], True])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    for make in (
        lambda: _FIVE.shuffle(2, seed),
        lambda: Dataset.random(seed),
        lambda: Dataset.sample_from_datasets([_FIVE], seed=seed),
        lambda: _FIVE.rejection_resample(lambda x: 0, [1.0], seed=seed),
    ):
        with pytest.raises(TypeError, match="seed must be a whole number"):
            make()


@pytest.mark.parametrize("number", [True, np.True_, 1.0, "1", np.array([1])])
def test_how_many_is_said_by_a_whole_number(number: Any) -> None:
    calls: dict[str, Callable[[], Any]] = {
        "range: each number": lambda: Dataset.range(number),
        "take: count": lambda: _FIVE.take(number),
        "batch: batch_size": lambda: _FIVE.batch(number),
        "prefetch: buffer_size": lambda: _FIVE.prefetch(number),
        "map: num_parallel_calls": lambda: _FIVE.map(lambda x: x, number),
    }
    for argument, call in calls.items():
        says = f"^{argument} must be a whole number, got {type(number).__name__} {re.escape(repr(number))}"
        with pytest.raises(TypeError, match=says):
            call()
    assert list(_FIVE.take(np.array(1)[()])) == list(_FIVE.take(np.array(1))) == [0]  # type: ignore[arg-type]
    with pytest.raises(
        InvalidArgumentError, match="explain: elements must be an integer of at least 1, or None"
    ):
        _FIVE.explain(elements=number)


def test_a_length_and_sizes_of_buckets_and_windows_are_whole_numbers() -> None:
    with pytest.raises(TypeError, match=r"the length of an element must be a whole number, got float 1.5"):
        list(_FIVE.bucket_by_sequence_length(lambda x: 1.5, [2], [2, 2]))
    with pytest.raises(TypeError, match=r"each batch size must be a whole number, got float 2.5"):
        _FIVE.bucket_by_sequence_length(lambda x: 1, [2], [2, 2.5])  # type: ignore[list-item]
    windows = _FIVE.group_by_window(
        lambda x: np.int64(0), lambda key, window: window, window_size_func=lambda key: 2.5
    )
    with pytest.raises(
        TypeError, match=r"what window_size_func returns must be a whole number, got float 2.5"
    ):
        list(windows)


@pytest.mark.parametrize("signature", [3, "int32", np.int32, None, (), [TensorSpec((), np.int32)]])
def test_a_signature_consists_of_specs(signature: Any) -> None:
    with pytest.raises(TypeError, match="output_signature"):
        Dataset.from_generator(lambda: iter([1]), output_signature=signature)


def test_no_dtype_is_none_that_stands_for_float64() -> None:
    with pytest.raises(TypeError, match="a dtype is missing"):
        Dataset.range(3, output_type=None)
    with pytest.raises(TypeError, match="a dtype is missing"):
        TensorSpec((), None)


@pytest.mark.parametrize("nothing", [None, (), {}, (None, {})])
def test_an_element_has_a_component(nothing: Any) -> None:
    with pytest.raises(ValueError, match="a component at least"):
        Dataset.from_tensors(nothing)
    with pytest.raises(ValueError, match="a component at least"):
        list(_FIVE.map(lambda x: nothing))
    with pytest.raises(ValueError, match="a component at least"):
        list(_FIVE.scan(np.int64(0), lambda state, x: (state, nothing)))
    with pytest.raises(ValueError, match=r"^from_list: an element has a component at least, got "):
        from_list([nothing, nothing])
    assert list(Dataset.from_tensors((nothing, 1))) == [(nothing, 1)]


def test_datasets_are_zipped_only_where_there_are_some() -> None:
    for nothing in ((), {}, ((), {})):
        with pytest.raises(ValueError, match="zip combines one dataset at least"):
            Dataset.zip(nothing)
    for other in (None, (_FIVE, None)):
        with pytest.raises(TypeError, match="zip takes datasets"):
            Dataset.zip(other)


@pytest.mark.parametrize(
    "before",
    [
        lambda dataset: dataset.map(lambda x: x + 1),
        lambda dataset: dataset.map(lambda x: (x, x)).map(lambda x, y: x * y).batch(2),
        lambda dataset: dataset.map(lambda x: x + 1).filter(lambda x: x > 1).shuffle(2),
    ],
    ids=["map", "maps and batch", "map, filter and shuffle"],
)
def test_a_result_that_no_element_can_hold_is_refused_at_once_behind_other_stages(before: Any) -> None:
    with pytest.raises(TypeError, match="cannot hold set"):
        before(_FIVE).map(lambda x: {1, 2})
    with pytest.raises(InvalidArgumentError, match="a component at least, got None"):
        before(_FIVE).map(lambda x: None)
    with pytest.raises(TypeError, match="cannot take an element of 1 component"):
        before(_FIVE).map(lambda x, y: x)


def _one_by_one(x: Any) -> Any:
    print("only whoever reads the values gets here")
    yield x


@pytest.mark.parametrize(
    ("fn", "kind"),
    [
        (lambda x: (i for i in range(3)), "generator"),
        (lambda x: (x + i for i in range(x.ndim)), "generator"),
        (lambda x: _one_by_one(x + 1), "generator"),
        (lambda x: (x, _one_by_one(x)), "generator"),
        (lambda x: map(abs, range(3)), "map"),
        (lambda x: zip(range(3), range(3)), "zip"),  # noqa: B905
    ],
)
@pytest.mark.parametrize("before", [lambda dataset: dataset, lambda dataset: dataset.map(lambda x: x + 1)])
def test_a_function_that_returns_a_generator_is_refused_at_once_with_the_remedy(
    fn: Any, kind: str, before: Any
) -> None:
    with pytest.raises(TypeError, match=rf"cannot hold {kind} .*one by one.*list.*flat_map\(") as caught:
        before(_FIVE).map(fn)
    assert "in stage map(<lambda>)" in caught.value.__notes__[0]


def test_functions_behind_others_are_not_called_if_a_call_may_have_an_effect() -> None:
    called: list[Any] = []

    def counted(x: Any) -> Any:
        called.append(x)
        return x

    def counted_later(x: Any) -> Any:
        called.append(x)
        yield x

    _FIVE.map(counted).map(lambda x: {1, 2})
    _FIVE.map(lambda x: x + 1).map(counted)
    for fn in (
        lambda x: (i for i in counted(range(3))),
        lambda x: [i for i in counted_later(x)],  # noqa: C416
        lambda x: (lambda: counted(x))(),
        lambda x: sum(counted_later(x)),
    ):
        _FIVE.map(fn)
    with pytest.raises(ValueError, match="not enough values"):
        list(_FIVE.map(_unpacked(counted_later)))
    assert len(called) == 1


def _unpacked(values: Any) -> Any:
    def fn(x: Any) -> Any:
        a, b = values(x)
        return a + b

    return fn


def test_a_result_that_no_element_can_hold_names_stage_element_and_the_line_of_the_function() -> None:
    def refused(x: Any) -> Any:
        return object()

    line = refused.__code__.co_firstlineno
    for elements in (_FIVE.map(refused), _FIVE.map(refused, num_parallel_calls=2)):
        with pytest.raises(TypeError, match="cannot hold object") as caught:
            next(iter(elements))
        assert caught.value.__notes__ == [
            f"returned by refused at test_arguments.py:{line}",
            "in stage map(refused) of a dataset, at element 0",
        ]


def _only_made_up(x: Any) -> Any:
    """Accepts the made-up values 1 and 2, and no others."""
    if x == 1 or x == 2:
        raise ValueError("made up")
    return {"a", "b"}


def _pair_with_a_set(state: Any, x: Any) -> Any:
    return state, _only_made_up(x)


def _state_of_text(state: Any, x: Any) -> Any:
    return "text"


@pytest.mark.parametrize(
    ("iterate", "fn", "message", "place"),
    [
        (lambda d: list(d.filter(_only_made_up)), _only_made_up, "one bool per element", "filter"),
        (lambda d: list(d.take_while(_only_made_up)), _only_made_up, "one bool per element", "take_while"),
        (lambda d: list(d.flat_map(_only_made_up)), _only_made_up, "must return a Dataset", "flat_map"),
        (lambda d: list(d.interleave(_only_made_up)), _only_made_up, "must return a Dataset", "interleave"),
        (lambda d: list(d.scan(0, _pair_with_a_set)), _pair_with_a_set, "cannot hold set", "scan"),
        (lambda d: d.reduce(0, _state_of_text), _state_of_text, "the state was", "reduce"),
        (
            lambda d: list(d.rejection_resample(_only_made_up, [0.5, 0.5])),
            _only_made_up,
            "cannot hold set",
            "rejection_resample",
        ),
    ],
)
def test_what_a_function_should_not_have_returned_names_the_line_of_the_function(
    iterate: Callable[[Dataset], Any], fn: Any, message: str, place: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=message) as caught:
        iterate(Dataset.range(7, 9))
    returned, where = caught.value.__notes__[:2]
    assert returned == f"returned by {fn.__name__} at test_arguments.py:{fn.__code__.co_firstlineno}"
    assert re.fullmatch(rf"in stage {place}.* of a dataset, at element 0", where)


def test_a_window_that_is_reduced_to_no_dataset_names_the_line_of_the_function() -> None:
    def reduced(key: Any, window: Any) -> Any:
        if key < 2:
            return window
        return 5

    grouped = Dataset.range(7, 9).group_by_window(lambda x: x, reduced, window_size=1)
    with pytest.raises(TypeError, match="reduce_func must return a Dataset, got int") as caught:
        list(grouped)
    line = reduced.__code__.co_firstlineno
    assert caught.value.__notes__[0] == f"returned by reduced at test_arguments.py:{line}"


def test_a_result_that_no_element_can_hold_is_refused_at_once_if_a_call_has_no_effect() -> None:
    calls = []

    def counted(x: Any) -> None:
        calls.append(x)

    with pytest.raises(ValueError, match="an element has a component at least, got None") as refused:
        _FIVE.map(lambda x: None)
    assert "in stage map(<lambda>)" in refused.value.__notes__[0]
    with pytest.raises(TypeError, match="may hold only text and bytes, item 0 is type"):
        _FIVE.map(lambda x: (x, np.float32))
    dataset = _FIVE.map(counted)
    assert not calls
    with pytest.raises(ValueError, match="a component at least"):
        next(iter(dataset))
    assert calls == [0]


def test_a_number_of_elements_that_is_asserted_is_one_or_none() -> None:
    endless = _FIVE.assert_cardinality(wb.data.INFINITE_CARDINALITY)
    assert endless.cardinality() == wb.data.INFINITE_CARDINALITY
    elements = iter(endless)
    assert [int(next(elements)) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(wb.errors.FailedPreconditionError, match="expected endless elements"):
        next(elements)
    assert len(list(zip(_FIVE, _FIVE.repeat().assert_cardinality(-1), strict=False))) == 5
    with pytest.raises(ValueError, match="-2 is not a number of elements"):
        _FIVE.assert_cardinality(wb.data.UNKNOWN_CARDINALITY)


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, np.uint64(2**63), 10**400])
@pytest.mark.parametrize(
    "call",
    [
        _FIVE.batch,
        _FIVE.padded_batch,
        _FIVE.take,
        _FIVE.skip,
        _FIVE.repeat,
        _FIVE.shuffle,
        _FIVE.prefetch,
        _FIVE.window,
        _FIVE.enumerate,
        _FIVE.assert_cardinality,
        _FIVE.batch(2).rebatch,
        Dataset.range,
        lambda number: _FIVE.shard(number, 0),
        lambda number: _FIVE.map(lambda x: x, num_parallel_calls=number),
        lambda number: _FIVE.interleave(lambda x: _FIVE, cycle_length=number),
        lambda number: _FIVE.interleave(lambda x: _FIVE, block_length=number),
    ],
)
def test_numbers_that_int64_cannot_hold_are_refused(call: Callable[[int], Any], number: int) -> None:
    with pytest.raises(wb.errors.InvalidArgumentError, match="int64 cannot hold"):
        call(number)


@pytest.mark.parametrize("number", [np.int64(2), np.int32(2), np.uint8(2), np.array(2)[()]])
def test_numbers_of_numpy_count_as_those_of_python_do(number: Any) -> None:
    dataset = _FIVE.batch(2)
    assert wb.explain_sharding(dataset, number).steps == wb.explain_sharding(dataset, 2).steps
    one_each = wb.explain_sharding(dataset, hosts=number, replicas_per_host=np.int64(1))
    assert one_each.steps == wb.explain_sharding(dataset, hosts=2).steps
    options = wb.data.context.InputOptions(experimental_per_replica_buffer_size=number)
    assert type(options.experimental_per_replica_buffer_size) is int


@pytest.mark.parametrize("wrong", [0, np.int64(0), -1, True, np.True_, 1.0, np.float32(2), "2"])
def test_what_is_no_number_of_hosts_or_steps_is_refused(wrong: Any) -> None:
    says = f"must be an integer of at least 1, got {re.escape(repr(wrong))}$"
    with pytest.raises(InvalidArgumentError, match=f"^hosts {says}"):
        wb.explain_sharding(_FIVE.batch(2), hosts=wrong)
    with pytest.raises(InvalidArgumentError, match=f"^experimental_per_replica_buffer_size {says}"):
        wb.data.context.InputOptions(experimental_per_replica_buffer_size=wrong)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (np.int64, 1.5), (np.int64, True), (np.int64, 2**63), (np.uint8, 300), (np.uint8, -1),
        (np.bool_, 1), (np.float16, 1e6), (np.float32, 1j), (np.float32, False), (np.int64, float("nan")),
        (np.uint8, float("inf")), (ml_dtypes.bfloat16, 1e300), (ml_dtypes.int4, 8),
    ],
)  # fmt: skip
def test_a_padding_value_is_what_is_padded_with(dtype: Any, value: Any) -> None:
    rows = Dataset.from_tensor_slices(np.zeros((2, 2), dtype))
    with pytest.raises(TypeError, match="cannot hold the padding value"):
        rows.padded_batch(2, [3], value)


def test_a_padding_value_keeps_its_digits_and_is_one_number() -> None:
    rows = Dataset.from_tensor_slices(np.zeros((1, 1)))
    assert next(iter(rows.padded_batch(1, [2], 0.1))).tolist() == [[0.0, 0.1]]
    assert next(iter(rows.padded_batch(1, [2], 7))).tolist() == [[0.0, 7.0]]
    assert np.isnan(next(iter(rows.padded_batch(1, [2], float("nan"))))[0, 1])
    assert np.isinf(next(iter(rows.padded_batch(1, [2], -float("inf"))))[0, 1])
    narrow = Dataset.from_tensor_slices(np.zeros((1, 1), ml_dtypes.bfloat16))
    assert next(iter(narrow.padded_batch(1, [2], 0.1))).tolist() == [[0.0, ml_dtypes.bfloat16(0.1)]]
    assert np.isnan(next(iter(narrow.padded_batch(1, [2], float("nan"))))[0, 1])
    with pytest.raises(ValueError, match="a padding value is one number"):
        rows.padded_batch(1, [2], np.array([2.0]))
