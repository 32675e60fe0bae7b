"""Distributed values: what they are, and what they refuse."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.distribute import Mirrored, PerReplica, get_replica_context
from workbench.errors import CaptureError, CollectiveMismatch, InvalidArgumentError


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x + 1,
        lambda x: 1 - x,
        lambda x: x @ x,
        lambda x: -x,
        lambda x: x < 1,
        float,
        lambda x: x[0],
        list,
    ],
)
def test_computing_with_a_per_replica_outside_says_what_to_do(use: Any) -> None:
    with pytest.raises(TypeError, match=r"strategy\.run.*strategy\.reduce"):
        use(PerReplica((np.ones(2), np.ones(2))))


def test_a_per_replica_is_no_array_outside() -> None:
    with pytest.raises(ValueError, match=r"strategy\.run.*strategy\.reduce"):
        np.asarray(PerReplica((np.ones(2), np.ones(2))))


def test_gathering_plain_sparse_rows_is_refused(strategy: Any) -> None:
    with pytest.raises(NotImplementedError, match=r"dense\(\)"):
        strategy.gather(wb.IndexedSlices(np.ones((1, 2)), [0], (3, 2)), axis=0)


def test_gathering_different_ranks_is_an_invalid_argument(strategy: Any) -> None:
    def gather() -> Any:
        ctx = get_replica_context()
        return ctx.all_gather(np.ones((1,) * (1 + ctx.replica_id_in_sync_group)), axis=0)

    with pytest.raises(InvalidArgumentError) as caught:
        strategy.run(gather)
    assert isinstance(caught.value, CollectiveMismatch)


def test_an_attribute_of_arrays_is_missing_and_says_where_the_arrays_are() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'mean'.*strategy\.local_results"):
        _ = PerReplica((np.ones(2),)).mean
    assert not hasattr(PerReplica.__new__(PerReplica), "__array_interface__")


def test_components_come_in_replica_order(strategy: Any) -> None:
    value = strategy.distribute_values_from_function(lambda c: 10 * c.replica_id_in_sync_group)
    assert strategy.experimental_local_results(value) == (0, 10)
    assert strategy.run(lambda x: x + 1, args=(value,)).values == (1, 11)


def test_a_mirrored_value_reads_as_its_first_component() -> None:
    assert np.asarray(Mirrored((np.float32(3), np.float32(3)))) == 3


def test_local_results_follow_structures(strategy: Any) -> None:
    value = strategy.distribute_values_from_function(lambda c: {"x": c.replica_id_in_sync_group})
    assert strategy.local_results({"a": value, "b": 5}) == ({"a": {"x": 0}, "b": 5}, {"a": {"x": 1}, "b": 5})
    assert strategy.local_results([1, 2]) == ([1, 2], [1, 2])
    assert strategy.local_results({}) == ({}, {})
    assert strategy.local_results(None) == (None,)
    plain = wb.Variable(1.0)  # has one component, the same for all
    first, second = strategy.local_results((plain, value))
    assert first[0] is second[0] is plain


def test_variables_can_be_the_components_of_a_value(strategy: Any) -> None:
    value = strategy.distribute_values_from_function(lambda context: wb.Variable(1.0, name="w"))
    assert [component.name for component in value.values] == ["w:0", "w:0"]


def test_a_value_for_another_number_of_replicas_is_refused(strategy: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"3 components.*2 replicas"):
        strategy.run(lambda x: x, args=(PerReplica((1, 2, 3)),))


def test_a_captured_value_of_replicas_is_refused_before_anything_runs(strategy: Any) -> None:
    value = strategy.run(lambda: np.ones(2))
    with pytest.raises(CaptureError, match=r"args=\(value,\)"):
        pickle.dumps(value)
    assert pickle.loads(pickle.dumps(PerReplica((1, 2)))).values == (1, 2)


def test_value_functions_must_agree_on_the_structure(strategy: Any) -> None:
    with pytest.raises(ValueError, match="replica 1"):
        strategy.distribute_values_from_function(lambda c: (1,) * (1 + c.replica_id_in_sync_group))
