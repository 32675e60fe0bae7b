"""The experimental spellings give what the methods give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from workbench.data import Dataset, TensorSpec, experimental
from workbench.data.tables import items
from workbench.errors import InvalidArgumentError, OutOfRangeError


def values(dataset: Any) -> list[Any]:
    return [
        np.asarray(part).tolist()
        for element in dataset
        for part in (element if type(element) is tuple else [element])
    ]


D = Dataset.range(10)
PAIRS: dict[str, tuple[Any, Any]] = {
    "Counter": (lambda: experimental.Counter(2, 3).take(3), lambda: Dataset.counter(2, 3).take(3)),
    "RandomDataset": (lambda: experimental.RandomDataset(5).take(3), lambda: Dataset.random(5).take(3)),
    "assert_cardinality": (lambda: D.apply(experimental.assert_cardinality(10)), lambda: D),
    "bucket_by_sequence_length": (
        lambda: D.window(3).flat_map(lambda w: w.batch(3)).apply(
            experimental.bucket_by_sequence_length(len, [2], [2, 2])
        ),
        lambda: D.window(3).flat_map(lambda w: w.batch(3)).bucket_by_sequence_length(len, [2], [2, 2]),
    ),
    "choose_from_datasets": (
        lambda: experimental.choose_from_datasets([D, D.skip(5)], D.map(lambda x: x % 2)),
        lambda: Dataset.choose_from_datasets([D, D.skip(5)], D.map(lambda x: x % 2), False),
    ),
    "enumerate_dataset": (lambda: D.apply(experimental.enumerate_dataset(3)), lambda: D.enumerate(3)),
    "group_by_window": (
        lambda: D.apply(experimental.group_by_window(lambda x: x % 2, lambda k, w: w.batch(4), 4)),
        lambda: D.group_by_window(lambda x: x % 2, lambda k, w: w.batch(4), 4),
    ),
    "ignore_errors": (
        lambda: D.map(lambda x: 6 // int(x)).apply(experimental.ignore_errors()),
        lambda: D.skip(1).map(lambda x: 6 // int(x)),
    ),
    "map_and_batch": (
        lambda: D.apply(experimental.map_and_batch(lambda x: x * 2, 4, num_parallel_calls=2)),
        lambda: D.map(lambda x: x * 2).batch(4),
    ),
    "parallel_interleave": (
        lambda: D.apply(experimental.parallel_interleave(lambda x: Dataset.from_tensors(x).repeat(2), 2)),
        lambda: D.interleave(lambda x: Dataset.from_tensors(x).repeat(2), 2),
    ),
    "rejection_resample": (
        lambda: D.apply(experimental.rejection_resample(lambda x: x % 2, [0.5, 0.5], seed=1)),
        lambda: D.rejection_resample(lambda x: x % 2, [0.5, 0.5], seed=1),
    ),
    "sample_from_datasets": (
        lambda: experimental.sample_from_datasets([D, D.skip(5)], [0.3, 0.7], seed=2),
        lambda: Dataset.sample_from_datasets([D, D.skip(5)], [0.3, 0.7], seed=2),
    ),
    "scan": (
        lambda: D.apply(experimental.scan(np.int64(1), lambda state, x: (state + x, state))),
        lambda: D.scan(np.int64(1), lambda state, x: (state + x, state)),
    ),
    "take_while": (lambda: D.apply(experimental.take_while(lambda x: x < 4)), lambda: D.take(4)),
    "unbatch": (lambda: D.batch(3).apply(experimental.unbatch()), lambda: D),
    "unique": (lambda: D.repeat(2).apply(experimental.unique()), lambda: D),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_it_gives_what_the_method_gives(name: str) -> None:
    experimental_one, method = PAIRS[name]
    expected = values(method())
    assert expected
    assert values(experimental_one()) == expected


def test_saving_and_loading(tmp_path: Any) -> None:
    experimental.save(D, str(tmp_path / "d"))
    assert values(experimental.load(str(tmp_path / "d"))) == values(D)


class TestMapAndBatch:
    def test_parallel_batches_and_remainders(self) -> None:
        made = D.apply(
            experimental.map_and_batch(lambda x: x + 1, 4, num_parallel_batches=2, drop_remainder=True)
        )
        assert values(made) == [[1, 2, 3, 4], [5, 6, 7, 8]]

    @pytest.mark.parametrize(
        "arguments", [{"num_parallel_calls": 2, "num_parallel_batches": 2}, {"num_parallel_batches": 0}]
    )
    def test_what_cannot_work_is_refused(self, arguments: dict[str, int]) -> None:
        with pytest.raises(InvalidArgumentError, match="num_parallel_batches"):
            experimental.map_and_batch(lambda x: x, 4, **arguments)


class TestGroupByReducer:
    MEAN = experimental.Reducer(
        lambda key: (np.int64(0), np.int64(0)),
        lambda state, x: (state[0] + x, state[1] + 1),
        lambda total, count: total / count if count else np.float64(0),
    )

    def test_one_value_for_each_key_in_their_order(self) -> None:
        means = D.apply(experimental.group_by_reducer(lambda x: 2 - x % 3, self.MEAN))
        assert values(means) == [5.0, 4.0, 4.5]
        assert means.element_spec == TensorSpec((), np.float64)

    def test_the_state_of_a_key_begins_with_the_key(self) -> None:
        last = experimental.Reducer(lambda key: key * 100, lambda state, x: state + x, lambda state: state)
        assert values(D.apply(experimental.group_by_reducer(lambda x: x // 5, last))) == [10, 135]

    def test_a_state_that_is_no_tuple_is_one_argument(self) -> None:
        count = experimental.Reducer(
            lambda key: {"n": 0}, lambda state, x: {"n": state["n"] + 1}, lambda s: s["n"]
        )
        assert values(D.apply(experimental.group_by_reducer(lambda x: x % 2, count))) == [5, 5]

    def test_a_tuple_is_one_argument_of_the_reducer(self) -> None:
        pairs = Dataset.zip(D, D.map(lambda x: x * 10))
        reducer = experimental.Reducer(lambda key: np.int64(0), lambda s, pair: s + pair[1], lambda s: s)
        assert values(pairs.apply(experimental.group_by_reducer(lambda a, b: a % 2, reducer))) == [200, 250]

    def test_an_element_that_fails_is_raised_once_and_the_others_count(self) -> None:
        def key(x: Any) -> Any:
            if x == 3:
                raise ValueError("no key")
            return np.int64(0)

        total = experimental.Reducer(lambda key: np.int64(0), lambda s, x: s + x, lambda s: s)
        elements = iter(D.apply(experimental.group_by_reducer(key, total)))
        with pytest.raises(ValueError, match="no key") as caught:
            next(elements)
        assert "element 3" in "".join(caught.value.__notes__)
        assert int(next(elements)) == 42

    def test_a_value_comes_from_the_elements_of_its_key(self) -> None:
        means = D.apply(experimental.group_by_reducer(lambda x: x % 2, self.MEAN))
        current = means.next_pass(provenance=True)
        assert [ids.tolist() for _, _, ids in items(means.open(current), True) if ids is not None] == [
            [0, 2, 4, 6, 8], [1, 3, 5, 7, 9],
        ]  # fmt: skip

    def test_what_is_no_reducer_or_key_is_refused(self) -> None:
        with pytest.raises(TypeError, match="takes a Reducer"):
            experimental.group_by_reducer(lambda x: x, lambda x: x)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError, match="whole number"):
            list(D.apply(experimental.group_by_reducer(lambda x: 0.5, self.MEAN)))


@pytest.mark.parametrize(
    "refused",
    [experimental.dense_to_ragged_batch(2), experimental.dense_to_sparse_batch(2, (3,))],
)
def test_ragged_and_sparse_batches_say_what_to_use(refused: Any) -> None:
    with pytest.raises(NotImplementedError, match=r"use padded_batch\(2"):
        D.apply(refused)


class TestAt:
    @pytest.mark.parametrize(
        ("dataset", "index", "expected"),
        [
            (D, 3, 3),
            (D.map(lambda x: x * x), 9, 81),
            (D.batch(4), 2, [8, 9]),
        ],
    )
    def test_the_element_of_a_position(self, dataset: Dataset, index: int, expected: Any) -> None:
        assert np.asarray(experimental.at(dataset, index)).tolist() == expected

    @pytest.mark.parametrize("dataset", [D, D.filter(lambda x: True)])
    @pytest.mark.parametrize("index", [-1, 10, 11])
    def test_a_position_that_does_not_exist(self, dataset: Dataset, index: int) -> None:
        with pytest.raises(OutOfRangeError):
            experimental.at(dataset, index)

    def test_functions_are_called_for_one_element(self) -> None:
        called: list[int] = []
        assert int(experimental.at(D.map(lambda x: called.append(int(x)) or x), 7)) == 7  # type: ignore[func-returns-value]
        assert called[-1] == 7


def test_structures_and_optionals() -> None:
    assert experimental.get_structure(D) == experimental.get_structure(iter(D)) == TensorSpec((), np.int64)
    with pytest.raises(TypeError, match="dataset or an iterator"):
        experimental.get_structure([1])
    assert int(experimental.get_next_as_optional(iter(D)).get_value()) == 0
    assert int(experimental.get_single_element(D.take(1))) == 0


def test_a_dataset_travels_in_an_array() -> None:
    variant = experimental.to_variant(D)
    assert (variant.shape, variant.dtype) == ((), np.dtype(object))
    assert values(experimental.from_variant(variant, D.element_spec)) == values(D)
    with pytest.raises(InvalidArgumentError, match="not TensorSpec"):
        experimental.from_variant(variant, TensorSpec((2,), np.int64))
    with pytest.raises(InvalidArgumentError, match="to_variant"):
        experimental.from_variant(np.zeros(3), D.element_spec)
    with pytest.raises(TypeError, match="takes a dataset"):
        experimental.to_variant(3)  # type: ignore[arg-type]


def test_every_name_is_listed() -> None:
    public = {name for name in vars(experimental) if not name.startswith("_")}
    own = {
        name
        for name in public
        if getattr(vars(experimental)[name], "__module__", "") == experimental.__name__
    }
    assert own <= set(experimental.__all__)
