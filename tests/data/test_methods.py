"""Sources of numbers, choices between datasets, and stages that carry a state, resample or pass over failures."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

import numpy as np
import pytest

from workbench.data import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset, TensorSpec
from workbench.errors import DataWarning, FailedPreconditionError, InvalidArgumentError


def ints(dataset: Any) -> list[int]:
    return [int(x) for x in dataset]


def fails_at(*bad: int) -> Any:
    def checked(x: Any) -> Any:
        if int(x) in bad:
            raise ValueError(f"{int(x)} is bad")
        return x

    return checked


class TestScan:
    def test_the_state_goes_from_element_to_element(self) -> None:
        sums = Dataset.range(1, 6).scan(np.int64(0), lambda state, x: (state + x, state + x))
        assert ints(sums) == [1, 3, 6, 10, 15]
        assert ints(sums) == [1, 3, 6, 10, 15]  # each pass starts with the initial state
        assert sums.element_spec == TensorSpec((), np.int64)
        assert sums.cardinality() == 5

    def test_a_tuple_is_one_argument(self) -> None:
        pairs = Dataset.zip(Dataset.range(3), Dataset.range(10, 13))
        swapped = pairs.scan(np.int64(0), lambda count, pair: (count + 1, (pair[1], count)))
        assert [(int(a), int(b)) for a, b in swapped] == [(10, 0), (11, 1), (12, 2)]
        assert swapped.element_spec == (TensorSpec((), np.int64), TensorSpec((), np.int64))

    def test_a_list_in_the_output_is_one_array(self) -> None:
        pairs = Dataset.range(2).scan(np.int64(0), lambda state, x: (state, [x, x]))
        assert [pair.tolist() for pair in pairs] == [[0, 0], [1, 1]]
        assert pairs.element_spec == TensorSpec((2,), np.int64)

    def test_an_element_that_fails_leaves_the_state(self) -> None:
        def count(state: Any, x: Any) -> Any:
            return state + 1, (fails_at(1)(x), state)

        elements = iter(Dataset.range(3).scan(np.int64(0), count))
        assert [int(part) for part in next(elements)] == [0, 0]
        with pytest.raises(ValueError, match="1 is bad"):
            next(elements)
        assert [int(part) for part in next(elements)] == [2, 1]

    def test_a_state_of_another_dtype_is_refused(self) -> None:
        with pytest.raises(TypeError, match=r"scan: the state was .*int64.*float64.*astype"):
            list(Dataset.range(3).scan(np.int64(0), lambda state, x: (state + 0.5, x)))

    def test_a_result_that_is_no_pair_is_refused(self) -> None:
        with pytest.raises(TypeError, match="scan: the function must return"):
            list(Dataset.range(3).scan(np.int64(0), lambda state, x: state))


class TestRandom:
    def test_the_same_seed_gives_the_same_numbers(self) -> None:
        first, second = (ints(Dataset.random(seed=4).take(3000)) for _ in range(2))
        assert first == second
        assert all(0 <= number < 2**32 for number in first)
        assert len(set(first)) > 2990  # blocks differ, too

    def test_each_iteration_has_the_same_numbers_unless_told_otherwise(self) -> None:
        kept, other = Dataset.random(4).take(5), Dataset.random(4, rerandomize_each_iteration=True).take(5)
        assert ints(kept) == ints(kept)
        assert ints(other) != ints(other)

    def test_it_is_endless(self) -> None:
        assert Dataset.random().cardinality() == INFINITE_CARDINALITY
        assert Dataset.random().element_spec == TensorSpec((), np.int64)


class TestCounter:
    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [((), [0, 1, 2]), ((5,), [5, 6, 7]), ((5, -2), [5, 3, 1]), ((1, 2, np.int32), [1, 3, 5])],
    )
    def test_it_counts(self, arguments: tuple[Any, ...], expected: list[int]) -> None:
        counted = Dataset.counter(*arguments)
        assert ints(counted.take(3)) == expected
        assert counted.cardinality() == INFINITE_CARDINALITY
        assert counted.element_spec == TensorSpec(
            (), (*arguments, np.int64)[2] if len(arguments) > 2 else np.int64
        )

    @pytest.mark.parametrize(
        ("arguments", "told"),
        [
            ((1.5,), "start is 1.5, which int64 cannot hold"),
            ((0, 0.5), "step is 0.5, which int64 cannot hold"),
            (("a",), "start is 'a'"),
            ((300, 1, np.uint8), "start is 300, which uint8 cannot hold"),
            ((0, 1, "string"), "dtype is 'string'"),
            ((0, 1, bool), "dtype is"),
            ((2**70,), "which int64 cannot hold"),
            ((2**70, 1, np.float16), "which float16 cannot hold"),
            ((0, 10**400, np.float64), "which float64 cannot hold"),
        ],
    )
    def test_numbers_that_the_dtype_cannot_hold_are_refused(
        self, arguments: tuple[Any, ...], told: str
    ) -> None:
        with pytest.raises(InvalidArgumentError, match=told):
            Dataset.counter(*arguments)

    def test_floats_begin_where_no_int64_does(self) -> None:
        counted = Dataset.counter(2**70, 2**60, np.float32).take(2)
        assert [x.item() for x in counted] == [np.float32(2**70), np.float32(2**70 + 2**60)]
        assert ints(Dataset.counter(True).take(2)) == [1, 2]

    def test_a_narrow_dtype_wraps_around_in_elements_and_in_batches(self) -> None:
        counted = Dataset.counter(254, dtype=np.uint8).take(4)
        assert ints(counted) == [254, 255, 0, 1]
        assert [batch.tolist() for batch in counted.batch(4)] == [[254, 255, 0, 1]]
        assert ints(Dataset.counter(1, -1, np.uint8).take(3)) == [1, 0, 255]

    @pytest.mark.parametrize(
        ("start", "step", "dtype", "expected"),
        [
            (2**63, 1, np.uint64, [2**63, 2**63 + 1, 2**63 + 2]),
            (1, 2**63, np.uint64, [1, 2**63 + 1, 1]),
            (2**64 - 1, 1, np.uint64, [2**64 - 1, 0, 1]),
            (1, -1, np.uint64, [1, 0, 2**64 - 1]),
            (2**63 - 1, 1, np.int64, [2**63 - 1, -(2**63), 1 - 2**63]),
            (-128, -1, np.int8, [-128, 127, 126]),
            (0, 2**63 + 1, np.int8, [0, 1, 2]),
        ],
    )
    def test_batches_hold_the_numbers_of_elements_up_to_the_bounds_of_a_dtype(
        self, start: int, step: int, dtype: Any, expected: list[int]
    ) -> None:
        counted = Dataset.counter(start, step, dtype).take(3)
        assert ints(counted) == expected
        (batch,) = counted.batch(3)
        assert (batch.dtype, batch.tolist()) == (dtype, expected)

    def test_it_goes_on_past_its_first_block(self) -> None:
        assert ints(Dataset.counter(0, 3).skip(100_000).take(2)) == [300_000, 300_003]


class TestChoices:
    def test_endless_datasets_chosen_without_end_are_endless(self) -> None:
        endless, ended = Dataset.range(3).repeat(), Dataset.range(3)
        choice = Dataset.range(2).repeat()
        assert Dataset.choose_from_datasets([endless, endless], choice).cardinality() == INFINITE_CARDINALITY
        assert Dataset.choose_from_datasets([endless, ended], choice).cardinality() == UNKNOWN_CARDINALITY
        assert (
            Dataset.choose_from_datasets([endless, endless], choice.take(3)).cardinality()
            == UNKNOWN_CARDINALITY
        )

    def test_a_choice_that_is_none_raises_once_and_the_next_ones_follow(self) -> None:
        choice = Dataset.from_tensor_slices(np.array([0, 2, 1]))
        elements = iter(Dataset.choose_from_datasets([Dataset.range(2), Dataset.range(5, 7)], choice))
        assert next(elements) == 0
        with pytest.raises(InvalidArgumentError, match="2 chosen, but there are 2 datasets"):
            next(elements)
        assert ints(elements) == [5]

    @pytest.mark.parametrize("choice", [None, [0, 1]])
    def test_choices_that_are_no_dataset_are_refused(self, choice: Any) -> None:
        with pytest.raises(TypeError, match="choice_dataset takes datasets, got"):
            Dataset.choose_from_datasets([Dataset.range(2)], choice)

    def test_the_choices_say_which_dataset_is_next(self) -> None:
        choice = Dataset.from_tensor_slices(np.array([0, 2, 1, 0, 2]))
        datasets = [Dataset.range(n, n + 10) for n in (0, 10, 20)]
        assert ints(Dataset.choose_from_datasets(datasets, choice)) == [0, 20, 10, 1, 21]

    def test_all_ends_with_a_dataset_that_has_ended(self) -> None:
        choice = Dataset.from_tensor_slices(np.array([0, 0, 0, 1]))
        datasets = [Dataset.range(2), Dataset.range(10, 12)]
        assert ints(Dataset.choose_from_datasets(datasets, choice)) == [0, 1]
        assert ints(Dataset.choose_from_datasets(datasets, choice, stop_on_empty_dataset=False)) == [0, 1, 10]

    def test_a_choice_of_a_dataset_that_is_not_there_names_it(self) -> None:
        chosen = Dataset.choose_from_datasets([Dataset.range(2)], Dataset.from_tensor_slices(np.array([1])))
        with pytest.raises(InvalidArgumentError, match="1"):
            list(chosen)

    def test_samples_come_in_proportion_to_the_weights(self) -> None:
        datasets = [Dataset.from_tensors(np.int64(n)).repeat() for n in range(3)]
        drawn = Counter(ints(Dataset.sample_from_datasets(datasets, [0.5, 0.5, 0], seed=1).take(4000)))
        assert 1800 < drawn[0] < 2200
        assert drawn[2] == 0

    def test_weights_may_change_with_the_elements(self) -> None:
        datasets = [Dataset.from_tensors(np.int64(n)).repeat() for n in range(2)]
        weights = Dataset.from_tensor_slices(np.array([[1.0, 0.0], [0.0, 1.0]])).repeat()
        assert ints(Dataset.sample_from_datasets(datasets, weights).take(6)) == [0, 1, 0, 1, 0, 1]

    def test_choices_of_nothing_but_datasets_that_have_ended_end(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("workbench.data.sources.combine._MOST_PASSED_OVER", 50)
        ended, left = Dataset.range(2), Dataset.range(3)
        weights = Dataset.from_tensors(np.array([1.0, 0.0])).repeat()
        for chosen in (
            Dataset.sample_from_datasets([ended, left], weights),
            Dataset.choose_from_datasets(
                [ended, left], Dataset.range(1).repeat(), stop_on_empty_dataset=False
            ),
        ):
            elements = iter(chosen.take(9))
            assert [int(next(elements)), int(next(elements))] == [0, 1]
            with pytest.raises(
                FailedPreconditionError, match=r"last 50 choices .*that are left, too: number 1"
            ):
                next(elements)
            assert list(elements) == []
        finite = Dataset.from_tensors(np.array([1.0, 0.0])).repeat(200)
        assert ints(Dataset.sample_from_datasets([ended, left], finite)) == [0, 1]
        perhaps_endless = Dataset.sample_from_datasets([ended, left], finite.filter(lambda x: True))
        with pytest.warns(DataWarning, match=r"last 50 choices .*that are left, too: number 1") as told:
            assert list(perhaps_endless) == [0, 1]
        assert [each.filename for each in told] == [__file__]

    def test_samples_of_datasets_that_end(self) -> None:
        datasets = [Dataset.range(3), Dataset.range(100, 103)]
        assert sorted(ints(Dataset.sample_from_datasets(datasets, seed=3))) == [0, 1, 2, 100, 101, 102]
        stopped = ints(Dataset.sample_from_datasets(datasets, seed=3, stop_on_empty_dataset=True))
        assert len(stopped) < 6
        assert {0, 1, 2} <= set(stopped) or {100, 101, 102} <= set(stopped)

    @pytest.mark.parametrize("weights", [[1.0], [-1.0, 2.0], [0.0, 0.0], [np.nan, 1.0]])
    def test_weights_that_fit_no_datasets_are_refused(self, weights: list[float]) -> None:
        with pytest.raises(InvalidArgumentError, match="weights"):
            Dataset.sample_from_datasets([Dataset.range(3), Dataset.range(3)], weights)

    @pytest.mark.parametrize("name", ["choose_from_datasets", "sample_from_datasets"])
    def test_no_dataset_is_refused(self, name: str) -> None:
        arguments = (Dataset.range(1),) if name == "choose_from_datasets" else ()
        with pytest.raises(InvalidArgumentError, match="dataset"):
            getattr(Dataset, name)([], *arguments)


class TestRejectionResample:
    @pytest.mark.parametrize("initial", [None, [0.9, 0.1]])
    def test_classes_come_in_the_wanted_proportions(self, initial: list[float] | None) -> None:
        values = np.random.default_rng(0).choice(2, size=20_000, p=[0.9, 0.1])
        dataset = Dataset.from_tensor_slices(values)
        even = dataset.rejection_resample(lambda x: x, [0.5, 0.5], initial, seed=7)
        pairs = [(int(label), int(value)) for label, value in even]
        assert all(label == value for label, value in pairs)
        assert 0.45 < np.mean([label for label, _ in pairs]) < 0.55
        assert len(pairs) > 3000  # none of 2,000 rare elements is lost once the shares are known
        assert even.cardinality() == UNKNOWN_CARDINALITY
        assert even.element_spec == (TensorSpec((), np.int64), TensorSpec((), np.int64))

    @pytest.mark.parametrize(
        ("target", "initial"),
        [([], None), ([-1.0, 1.0], None), ([0.0, 0.0], None), ([0.5, 0.5], [1.0]), ([np.nan, 1.0], None)],
    )
    def test_what_is_no_distribution_is_refused(
        self, target: list[float], initial: list[float] | None
    ) -> None:
        with pytest.raises(InvalidArgumentError, match=r"rejection_resample: \w+_dist"):
            Dataset.range(3).rejection_resample(lambda x: x, target, initial)

    def test_where_the_shares_agree_all_elements_stay(self) -> None:
        same = Dataset.range(9).rejection_resample(lambda x: x % 2, [0.5, 0.5], [1, 1])
        assert (len(list(same)), same.cardinality()) == (9, 9)
        other = Dataset.range(9).rejection_resample(lambda x: x % 2, [0.5, 0.5], [0.9, 0.1])
        assert other.cardinality() == UNKNOWN_CARDINALITY

    def test_a_class_that_is_told_not_to_occur_is_kept_if_it_is_wanted(self) -> None:
        def kept(target: list[float], initial: list[float]) -> set[int]:
            resampled = Dataset.range(30).rejection_resample(lambda x: x % 3, target, initial, seed=1)
            return {int(value) % 3 for _, value in resampled}

        assert kept([0.3, 0.3, 0.4], [0.5, 0.5, 0.0]) == {0, 1, 2}
        assert kept([0.5, 0.5, 0.0], [0.5, 0.5, 0.0]) == {0, 1}
        certain = Dataset.range(30).rejection_resample(lambda x: x % 2, [0.5, 0.5], [1.0, 0.0], seed=1)
        assert len(list(certain)) == 30

    def test_a_class_out_of_range_names_the_stage_and_element(self) -> None:
        resampled = Dataset.range(3).rejection_resample(lambda x: x, [0.5, 0.5], [0.5, 0.5], name="balance")
        with pytest.raises(InvalidArgumentError, match="class_func returned 2") as caught:
            list(resampled)
        assert "balance" in "".join(caught.value.__notes__)
        assert "element 2" in "".join(caught.value.__notes__)


class TestIgnoreErrors:
    def test_elements_that_fail_are_left_out(self) -> None:
        dataset = Dataset.range(6).map(fails_at(0, 3, 5))
        assert ints(dataset.ignore_errors()) == [1, 2, 4]
        assert dataset.ignore_errors().cardinality() == UNKNOWN_CARDINALITY

    def test_only_what_is_before_it_may_fail(self) -> None:
        later = Dataset.range(6).ignore_errors().map(fails_at(3))
        with pytest.raises(ValueError, match="3 is bad"):
            list(later)

    def test_each_is_logged_on_request(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.WARNING, "workbench.data"):
            assert ints(Dataset.range(4).map(fails_at(1, 2)).ignore_errors(log_warning=True)) == [0, 3]
        assert [record.getMessage() for record in caplog.records] == [
            f"an element was left out: ValueError: {n} is bad" for n in (1, 2)
        ]

    def test_a_generator_that_fails_ends(self) -> None:
        def two() -> Any:
            yield from (1, 2)
            raise OSError("gone")

        dataset = Dataset.from_generator(two, output_signature=TensorSpec((), np.int64))
        assert ints(dataset.ignore_errors()) == [1, 2]


class TestGetSingleElement:
    def test_it_is_the_element(self) -> None:
        assert Dataset.from_tensors(np.arange(3)).get_single_element().tolist() == [0, 1, 2]

    @pytest.mark.parametrize(("count", "message"), [(0, "has no element"), (2, "more than one element")])
    def test_there_must_be_one(self, count: int, message: str) -> None:
        with pytest.raises(InvalidArgumentError, match=f"get_single_element 'last': .*{message}"):
            Dataset.range(count).get_single_element(name="last")


NAMED = {
    "batch": lambda d, n: d.batch(2, name=n),
    "cache": lambda d, n: d.cache(name=n),
    "concatenate": lambda d, n: d.concatenate(d, name=n),
    "counter": lambda d, n: Dataset.counter(name=n),
    "enumerate": lambda d, n: d.enumerate(name=n),
    "filter": lambda d, n: d.filter(lambda x: x > 1, name=n),
    "flat_map": lambda d, n: d.flat_map(Dataset.range, name=n),
    "from_generator": lambda d, n: Dataset.from_generator(lambda: [1], np.int64, name=n),
    "from_tensors": lambda d, n: Dataset.from_tensors(1, name=n),
    "from_tensor_slices": lambda d, n: Dataset.from_tensor_slices([1], name=n),
    "group_by_window": lambda d, n: d.group_by_window(
        lambda x: x % 2, lambda key, w: w.batch(2), window_size=2, name=n
    ),
    "ignore_errors": lambda d, n: d.ignore_errors(name=n),
    "interleave": lambda d, n: d.interleave(Dataset.range, name=n),
    "map": lambda d, n: d.map(lambda x: x, name=n),
    "padded_batch": lambda d, n: d.padded_batch(2, name=n),
    "prefetch": lambda d, n: d.prefetch(1, name=n),
    "random": lambda d, n: Dataset.random(name=n),
    "range": lambda d, n: Dataset.range(3, name=n),
    "rejection_resample": lambda d, n: d.rejection_resample(lambda x: x, [1.0], name=n),
    "repeat": lambda d, n: d.repeat(2, name=n),
    "scan": lambda d, n: d.scan(0, lambda s, x: (s, x), name=n),
    "shard": lambda d, n: d.shard(2, 0, name=n),
    "shuffle": lambda d, n: d.shuffle(2, name=n),
    "skip": lambda d, n: d.skip(1, name=n),
    "take": lambda d, n: d.take(1, name=n),
    "take_while": lambda d, n: d.take_while(lambda x: x < 2, name=n),
    "unbatch": lambda d, n: d.batch(2).unbatch(name=n),
    "unique": lambda d, n: d.unique(name=n),
    "window": lambda d, n: d.window(2, name=n),
    "zip": lambda d, n: Dataset.zip(d, d, name=n),
}


@pytest.mark.parametrize("method", NAMED)
def test_every_method_takes_a_name_and_shows_it(method: str) -> None:
    dataset = Dataset.range(4)
    assert "my part" in repr(NAMED[method](dataset, "my part"))
    assert "my part" not in repr(NAMED[method](dataset, None))


def test_a_failing_function_names_its_stage() -> None:
    with pytest.raises(ValueError, match="2 is bad") as caught:
        list(Dataset.range(4).map(fails_at(2), name="decode"))
    assert "decode" in "".join(caught.value.__notes__)


def test_a_full_shuffle_needs_no_size() -> None:
    shuffled = Dataset.range(5000).shuffle(UNKNOWN_CARDINALITY, seed=1)
    values = ints(shuffled)
    assert sorted(values) == list(range(5000))
    assert max(values[:100]) > 4000  # from the whole dataset, not from its beginning
    with pytest.raises(InvalidArgumentError, match="endless"):
        Dataset.counter().shuffle(UNKNOWN_CARDINALITY)


def test_contradicting_arguments_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="synchronous"):
        Dataset.range(3).map(lambda x: x, synchronous=True, num_parallel_calls=2)
