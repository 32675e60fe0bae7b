"""Options of both generations: names, types, merging, and travelling."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from workbench.data import Dataset, Options
from workbench.data.experimental import (
    AutoShardPolicy,
    AutotuneAlgorithm,
    AutotuneOptions,
    DistributeOptions,
    ExternalStatePolicy,
    OptimizationOptions,
    StatsOptions,
    ThreadingOptions,
)

SETTINGS = (
    Options, AutotuneOptions, DistributeOptions, OptimizationOptions, StatsOptions, ThreadingOptions,
)  # fmt: skip


@pytest.mark.filterwarnings("error")
def test_names_of_frameworks_are_joined() -> None:
    one, other = Options(), Options()
    one.framework_type = ["a"]
    other.framework_type = ["b", "a"]
    chained = Dataset.range(3).with_options(one).map(lambda x: x).with_options(other).repeat(2)
    assert chained.options().framework_type == ["a", "b", "a"]
    zipped = Dataset.zip((Dataset.range(3).with_options(one), Dataset.range(3).with_options(other)))
    assert zipped.options().framework_type == ["a", "b", "a"]
    assert one.framework_type == ["a"]


def test_both_spellings_are_one_option() -> None:
    options = Options()
    options.deterministic = False
    assert options.experimental_deterministic is False
    options.experimental_deterministic = True
    assert options.deterministic is True
    options.threading.private_threadpool_size = 4
    assert options.experimental_threading.private_threadpool_size == 4
    options.threading = ThreadingOptions()
    assert options.experimental_threading == ThreadingOptions()


@pytest.mark.parametrize("kind", SETTINGS)
def test_unknown_names_are_refused_and_the_known_ones_named(kind: Any) -> None:
    options = kind()
    with pytest.raises(AttributeError, match="has no option 'nonsense'; it has "):
        options.nonsense = 1
    with pytest.raises(AttributeError, match="has no option 'nonsense'"):
        options.nonsense


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (Options, "deterministic", 1),
        (Options, "experimental_slack", "yes"),
        (Options, "dataset_name", 3),
        (Options, "experimental_threading", AutotuneOptions()),
        (Options, "framework_type", "tf"),
        (ThreadingOptions, "private_threadpool_size", True),
        (AutotuneOptions, "cpu_budget", 1.5),
        (OptimizationOptions, "map_fusion", 1),
        (StatsOptions, "prefix", 1),
    ],
)
def test_a_value_of_another_type_is_refused(kind: Any, name: str, value: Any) -> None:
    options = kind()
    with pytest.raises(TypeError, match=rf"option \w+ of {kind.__name__} takes \w+, got"):
        setattr(options, name, value)
    assert options == kind()


@pytest.mark.parametrize(
    ("options", "name", "kind"),
    [
        (Options(), "experimental_external_state_policy", ExternalStatePolicy),
        (AutotuneOptions(), "autotune_algorithm", AutotuneAlgorithm),
        (DistributeOptions(), "auto_shard_policy", AutoShardPolicy),
    ],
)
def test_an_enumeration_takes_members_names_and_numbers(options: Any, name: str, kind: Any) -> None:
    for member in kind:
        for given in (member, member.name, int(member)):
            setattr(options, name, given)
            assert getattr(options, name) is member
    for wrong in ("SOMETIMES", 99, float(member), True):
        with pytest.raises(ValueError, match=f"unknown {name} .*use one of {next(iter(kind.__members__))}"):
            setattr(options, name, wrong)


def test_none_takes_an_option_back() -> None:
    options = Options()
    options.experimental_slack = True
    options.experimental_slack = None
    options.autotune.cpu_budget = 2
    options.autotune = None
    options.experimental_distribute.auto_shard_policy = "OFF"
    options.experimental_distribute.auto_shard_policy = None
    options.framework_type = ["arrays"]
    options.framework_type = None
    assert options == Options()


def test_merging_takes_both_and_warns_where_they_differ() -> None:
    first, second = Options(), Options()
    first.deterministic = True
    first.autotune.cpu_budget = 2
    second.autotune.ram_budget = 10
    second.experimental_optimization.map_fusion = True
    merged = first.merge(second)
    assert (merged.deterministic, merged.autotune.cpu_budget, merged.autotune.ram_budget) == (True, 2, 10)
    assert merged.experimental_optimization.map_fusion is True
    second.deterministic = False
    with pytest.warns(UserWarning, match="experimental_deterministic was True and becomes False"):
        assert first.merge(second).deterministic is False
    assert first.deterministic is True


def test_options_travel() -> None:
    options = Options()
    options.autotune.enabled = False
    options.framework_type = ["arrays"]
    for other in (copy.deepcopy(options), pickle.loads(pickle.dumps(options))):
        assert other == options
        other.framework_type.append("more")
        assert options.framework_type == ["arrays"]


def test_a_dataset_hands_its_options_on() -> None:
    options = Options()
    options.dataset_name = "train"
    assert Dataset.range(3).with_options(options).map(lambda x: x).batch(2).options().dataset_name == "train"
    assert "dataset_name='train'" in repr(options)


def _with(name: str, value: Any, dataset: Dataset | None = None) -> Dataset:
    options = Options()
    options.dataset_name = name
    options.experimental_distribute.auto_shard_policy = value
    return (dataset or Dataset.range(3)).with_options(options)


@pytest.mark.parametrize(
    "combined",
    [
        lambda one, other: Dataset.zip((other, one)),
        lambda one, other: Dataset.zip({"a": other, "b": (other, one)}),
        lambda one, other: other.concatenate(one),
        lambda one, other: one.concatenate(other),
        lambda one, other: Dataset.choose_from_datasets([other, one], Dataset.range(2)),
        lambda one, other: Dataset.choose_from_datasets([other, other], one),
        lambda one, other: Dataset.sample_from_datasets([one, other]),
        lambda one, other: Dataset.zip((one, other)).map(lambda x, y: x).batch(2),
    ],
)
def test_a_combination_has_the_options_of_what_it_combines(combined: Any) -> None:
    """As tf.data, where `zip` of datasets that must not be sharded is not sharded either."""
    options = combined(_with("train", AutoShardPolicy.OFF), Dataset.range(3)).options()
    assert options.dataset_name == "train"
    assert options.experimental_distribute.auto_shard_policy is AutoShardPolicy.OFF


def test_of_options_that_differ_those_of_the_later_dataset_win() -> None:
    one, other = _with("one", AutoShardPolicy.OFF), _with("other", AutoShardPolicy.DATA)
    with (
        pytest.warns(UserWarning, match="dataset_name was 'one' and becomes 'other'") as of_name,
        pytest.warns(UserWarning, match="auto_shard_policy was .*OFF.* and becomes .*DATA") as of_policy,
    ):
        options = Dataset.zip((one, other)).options()
    assert {warning.filename for warning in (*of_name, *of_policy)} == {__file__}
    assert options.experimental_distribute.auto_shard_policy is AutoShardPolicy.DATA
