"""A function is traced and compiled once per shapes; what runs afterwards is the program."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import workbench as wb
from tests.tpu.conftest import REPLICAS, by_replica, ids


def counting() -> Any:
    """A function that tells in which trace it was compiled: what is no array is fixed by the trace."""
    traces = itertools.count()

    @wb.function
    def step(x: Any, *more: Any, **options: Any) -> Any:
        return x * 2, next(traces)

    return step


def trace_of(strategy: Any, step: Any, *args: Any, **kwargs: Any) -> int:
    _, number = strategy.run(step, args, kwargs)
    return int(strategy.local_results(number)[0])


def test_equal_shapes_share_one_trace(strategy: Any) -> None:
    step = counting()

    traces = [trace_of(strategy, step, np.full(3, n, np.float32)) for n in range(5)]

    assert traces == [0] * 5


def test_shapes_dtypes_and_structures_have_traces_of_their_own(strategy: Any) -> None:
    step = counting()
    x = np.ones(3, np.float32)

    traces = [
        trace_of(strategy, step, x),
        trace_of(strategy, step, np.ones(4, np.float32)),
        trace_of(strategy, step, np.ones(3, np.int32)),
        trace_of(strategy, step, x, x),
        trace_of(strategy, step, x, scale=x),
        trace_of(strategy, step, ids(strategy)),
        trace_of(strategy, step, x),
        trace_of(strategy, step, np.ones(4, np.float32)),
    ]

    assert traces == [0, 1, 2, 3, 4, 5, 0, 1]


def test_numbers_are_values_and_other_objects_are_part_of_the_program(strategy: Any) -> None:
    step = counting()

    assert [trace_of(strategy, step, n) for n in (1, 2, 3)] == [0, 0, 0]
    assert trace_of(strategy, step, 1.5) == 1
    assert [trace_of(strategy, step, 1, mode=mode) for mode in ("a", "b", "a")] == [2, 3, 2]


def test_plain_functions_are_compiled_once_too(strategy: Any) -> None:
    traces = itertools.count()

    def step(x: Any) -> Any:
        return x + 1, next(traces)

    numbers = [strategy.run(step, (np.float32(n),))[1] for n in range(3)]

    assert [int(strategy.local_results(number)[0]) for number in numbers] == [0, 0, 0]


def test_an_edited_global_is_seen_by_plain_functions(strategy: Any) -> None:
    scales = [2.0]

    def step(x: Any) -> Any:
        return x * scales[0]

    before = strategy.local_results(strategy.run(step, (np.float32(3),)))[0]
    scales[0] = 5.0
    after = strategy.local_results(strategy.run(step, (np.float32(3),)))[0]

    assert (before, after) == (6, 15)


def test_padded_batches_share_one_program(strategy: Any) -> None:
    step = counting()
    options = wb.distribute.RunOptions(partial_batch="pad")

    traces = []
    for rows in (4, 3, 4, 1):
        value = by_replica(strategy, *[np.ones((rows, 2), np.float32)] * REPLICAS)
        _, number = strategy.run(step, (value,), options=options)
        traces.append(int(strategy.local_results(number)[0]))

    assert traces == [0] * 4


def test_many_pipelined_steps_keep_their_order(strategy: Any) -> None:
    with strategy.scope():
        count = wb.Variable(0, aggregation="ONLY_FIRST_REPLICA")

    @wb.function
    def step() -> Any:
        count.assign_add(1)
        return count.value()

    results = [strategy.run(step) for _ in range(100)]

    assert [int(strategy.local_results(result)[0]) for result in results] == list(range(1, 101))


def test_a_step_is_recorded_for_each_replica(strategy: Any, cluster: Any) -> None:
    @wb.function
    def recorded(x: Any) -> Any:
        return wb.distribute.get_replica_context().all_reduce("SUM", x)

    for _ in range(3):
        strategy.run(recorded, (np.ones(100, np.float32),))
    strategy.group.wait()
    cluster.flush_telemetry(60)

    rows = cluster.feed.to_arrow().to_pylist()
    steps = [row for row in rows if row["op"] == "step" and row["site"] == "recorded"]
    assert {row["replica"] for row in steps} == set(range(REPLICAS))
    assert {(row["bytes"], row["count"]) for row in steps} == {(400, 1)}


def test_collectives_are_timed_in_sampled_steps(strategy: Any) -> None:
    @wb.function
    def step(x: Any) -> Any:
        return wb.distribute.get_replica_context().all_reduce("SUM", x * 2)

    found = strategy.sample_collectives(step, (np.ones(1000, np.float32),), steps=3)

    assert [item.samples for item in found] == [3 * REPLICAS]
    assert 0 < found[0].min_ns <= found[0].median_ns <= found[0].max_ns
    assert "12 samples" in str(found[0])


def test_sampled_collectives_are_in_the_table_and_labelled(strategy: Any) -> None:
    @wb.function
    def step(x: Any) -> Any:
        ctx = wb.distribute.get_replica_context()
        return ctx.all_gather(ctx.all_reduce("SUM", x * 2), 0)

    strategy.sample_collectives(step, (np.ones(2000, np.float32),), steps=3)
    shown = wb.collectives(strategy)
    rows = {row.op: row for row in shown.rows if row.algorithm == "sampled" and row.count == 2000}

    assert {op: (row.size_bytes, row.redop, row.samples) for op, row in rows.items()} == {
        "all_reduce": (8000, "sum", 3),
        "all_gather": (8000 * REPLICAS, "", 3),
    }
    assert all(row.busbw is not None for row in rows.values())
    assert "sampled: of a few profiled steps" in repr(shown)
    assert max(map(len, repr(shown).splitlines())) <= 88
