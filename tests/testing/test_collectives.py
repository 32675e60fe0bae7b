"""Checks of what replicas asked of each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.errors import CollectiveMismatch
from workbench.testing import Collective, assert_collectives, inject, trace


@wb.function
def step(gradient: Any) -> Any:
    ctx = wb.distribute.get_replica_context()
    mean = ctx.all_reduce("mean", gradient)
    return ctx.all_gather(mean[:2], axis=0)


GRADIENT = np.ones(640, np.float32)
SUM = Collective("all_reduce", redop="mean", dtype="float32", count=640, bytes=2560, replicas=2)


def test_a_trace_holds_the_steps_of_its_block_only(strategy: wb.MirroredStrategy) -> None:
    strategy.run(step, args=(GRADIENT,))
    with trace(strategy) as steps:
        for _ in range(3):
            strategy.run(step, args=(GRADIENT,))
    strategy.run(step, args=(GRADIENT,))

    assert len(steps) == 6
    assert_collectives(steps, ["all_reduce", "all_gather"] * 3)
    assert_collectives(steps, [SUM, Collective("all_gather", count=2)] * 3)
    assert len({each.step for each in steps}) == 3


def test_a_step_without_collectives_leaves_an_empty_trace(strategy: wb.MirroredStrategy) -> None:
    with trace(strategy) as steps:
        strategy.run(lambda: 1)

    assert_collectives(steps, [])
    assert repr(steps) == "0 collectives"


def test_what_workbench_needs_itself_is_left_out(strategy: wb.MirroredStrategy) -> None:
    data = strategy.distribute_dataset(wb.data.Dataset.range(8).batch(4))
    with trace(strategy) as steps:
        for batch in data:
            strategy.run(lambda x: x, args=(batch,))

    assert_collectives(steps, [])


@pytest.mark.parametrize(
    ("expected", "number"),
    [
        (["all_reduce"], 2),
        (["all_reduce", "all_gather", "barrier"], 3),
        (["all_gather", "all_reduce"], 1),
        ([Collective("all_reduce", redop="sum"), "all_gather"], 1),
        (["all_reduce", Collective("all_gather", bytes=999)], 2),
    ],
)
def test_the_text_tells_where_expected_and_found_part(
    strategy: wb.MirroredStrategy, expected: list[Any], number: int
) -> None:
    with trace(strategy) as steps:
        strategy.run(step, args=(GRADIENT,))

    match = rf"{len(expected)} collectives expected, 2 found; they differ from number {number}:"
    with pytest.raises(AssertionError, match=match) as caught:
        assert_collectives(steps, expected)
    (marked, *_) = [line for line in str(caught.value).splitlines() if line.endswith("<--")]
    assert marked.split()[0] == str(number)


def test_the_found_ones_are_described_in_full(strategy: wb.MirroredStrategy) -> None:
    with trace(strategy) as steps:
        strategy.run(step, args=(GRADIENT,))

    number = strategy.group.number - 1
    assert (
        f"all_reduce mean float32[640] 2.50 KiB on 2 replicas in step {number} at test_collectives.py:"
    ) in repr(steps)


def test_a_collective_that_failed_is_no_collective_that_was_expected(strategy: wb.MirroredStrategy) -> None:
    with pytest.raises(CollectiveMismatch), trace(strategy) as steps:
        strategy.run(inject(step, wb.testing.OtherCollective(1)), args=(GRADIENT,)).values

    (found,) = steps
    assert (found.state, found.op) == ("mismatch", "all_reduce | barrier")
    with pytest.raises(AssertionError, match=r"\(mismatch\)"):
        assert_collectives(steps, ["all_reduce"])


def test_other_objects_are_refused_with_what_to_write() -> None:
    with pytest.raises(TypeError, match=r"with wb\.testing\.trace\(strategy\) as steps"):
        assert_collectives([], ["all_reduce"])  # type: ignore[arg-type]
