"""What is no plain array of numbers: the same is refused, with the same remedy, by both ways of reducing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.distribute import PerReplica, get_replica_context

MASKED = np.ma.MaskedArray([1.0, 2.0], mask=[False, True])
RECORDS = np.zeros(2, [("a", np.int32), ("b", ">f4")])
BIG = np.array([1.0, 2.0], ">f4")


def _reduced(strategy: Any, value: Any, way: str) -> Any:
    """The sum of a value that all replicas hold, by one of the possible ways."""
    match way:
        case "all_reduce":
            return strategy.local_results(
                strategy.run(lambda: get_replica_context().all_reduce("SUM", value))
            )[1]
        case "all_reduce in a tree":
            found = strategy.run(lambda: get_replica_context().all_reduce("SUM", {"a": value, "b": 1.0}))
            return strategy.local_results(found["a"])[1]
        case "reduce":
            return strategy.reduce("SUM", strategy.run(lambda: value), axis=None)
        case "reduce_to":
            with strategy.scope():
                both = PerReplica([value, value])
                total = strategy.extended.reduce_to("SUM", strategy.run(lambda x: x, (both,)), both)
            return strategy.local_results(total)[0]
    raise AssertionError(way)


WAYS = pytest.mark.parametrize("way", ["all_reduce", "all_reduce in a tree", "reduce", "reduce_to"])


@WAYS
@pytest.mark.parametrize(
    ("value", "says"),
    [
        (MASKED, r"masked array.*x\.filled\(0\)"),
        (RECORDS, r"\{a: int32, b: float32.*\}.*x\[name\]"),
        (np.array([True, False]), r"dtype bool.*astype"),
        (True, r"dtype bool.*astype"),
    ],
    ids=["masked", "records", "bools", "bool"],
)
def test_what_has_no_sum_is_refused_by_each_way_of_reducing(
    strategy: Any, way: str, value: Any, says: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=f"(?s){says}"):
        _reduced(strategy, value, way)


@WAYS
def test_a_sum_has_the_byte_order_of_the_machine(strategy: Any, way: str) -> None:
    total = np.asarray(_reduced(strategy, BIG, way))
    assert total.dtype == np.dtype(np.float32)
    assert total.dtype.isnative
    assert total.tolist() == [2.0, 4.0]


def _by_rank() -> Any:
    mine = BIG if get_replica_context().replica_id_in_sync_group else BIG.astype("=f4")
    return mine, get_replica_context().all_reduce("SUM", mine), get_replica_context().all_gather(mine, 0)


def test_byte_orders_may_differ_by_replica(strategy: Any) -> None:
    mine, total, together = strategy.run(_by_rank)
    assert strategy.reduce("SUM", mine, axis=None).tolist() == [2.0, 4.0]
    assert strategy.local_results(total)[1].tolist() == [2.0, 4.0]
    assert strategy.gather(mine, axis=0).tolist() == [1.0, 2.0, 1.0, 2.0]
    assert strategy.local_results(together)[0].tolist() == [1.0, 2.0, 1.0, 2.0]


def test_records_are_gathered_if_their_fields_agree(strategy: Any) -> None:
    def gathered(same: bool) -> Any:
        context = get_replica_context()
        other = np.zeros(2, [("a", np.float32), ("b", np.float32)])
        mine = RECORDS if same or context.replica_id_in_sync_group else other
        return mine, context.all_gather(mine, 0)

    mine, together = strategy.run(gathered, (True,))
    assert strategy.local_results(together)[0].dtype.names == ("a", "b")
    assert len(strategy.gather(mine, axis=0)) == 4
    with pytest.raises(wb.errors.CollectiveMismatch, match=r"\{a: float32, b: float32\}"):
        strategy.run(gathered, (False,))
    with pytest.raises(ValueError, match=r"replica 0 has \{a: float32, b: float32\}.*\{a: int32, b: float32"):
        strategy.gather(PerReplica([np.zeros(2, [("a", "f4"), ("b", "f4")]), RECORDS]), axis=0)


def test_masks_are_refused_where_they_would_be_lost_and_kept_elsewhere(strategy: Any) -> None:
    kept = strategy.local_results(strategy.run(lambda x: x, (MASKED,)))
    assert [part.mask.tolist() for part in kept] == [[False, True]] * 2
    with pytest.raises(TypeError, match="masked array"):
        strategy.gather(strategy.run(lambda: MASKED), axis=0)
    with pytest.raises(TypeError, match="masked array"):
        strategy.run(lambda: get_replica_context().all_gather(MASKED, 0))
    with strategy.scope():
        variable = wb.Variable(np.zeros(2))
        with pytest.raises(TypeError, match="masked array"):
            wb.Variable(MASKED)
    with pytest.raises(TypeError, match="masked array"):
        variable.assign(MASKED)
    with pytest.raises(TypeError, match="masked array"):
        strategy.run(lambda: variable.assign(MASKED))
    with pytest.raises(TypeError, match="masked array"):
        wb.data.Dataset.from_tensor_slices(MASKED)
    assert variable.numpy().tolist() == [0, 0]


def test_a_variable_has_the_byte_order_of_the_machine(strategy: Any) -> None:
    with strategy.scope():
        variable = wb.Variable(BIG)
    assert variable.dtype.isnative
    strategy.run(lambda: variable.assign_add(BIG))
    assert variable.numpy().tolist() == [2.0, 4.0]
    assert wb.Variable([1.0], dtype=">f4").dtype.isnative
