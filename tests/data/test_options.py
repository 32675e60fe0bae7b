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
    for wrong in ("SOMETIMES", 99):
        with pytest.raises(ValueError, match=f"unknown {name} .*use one of {next(iter(kind.__members__))}"):
            setattr(options, name, wrong)


def test_none_takes_an_option_back() -> None:
    options = Options()
    options.experimental_slack = True
    options.experimental_slack = None
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
