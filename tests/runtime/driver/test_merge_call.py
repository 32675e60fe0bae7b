"""Merge calls: all replicas pause, one function runs at the driver, each replica goes on with its result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.runtime.conftest import Run
from workbench.communicators import Reduction
from workbench.errors import CollectiveMismatch, WorkbenchError
from workbench.runtime import Group, PerRank
from workbench.runtime.replica.env import ReplicaEnv


def _call(fn: Any, args: Any, kwargs: Any) -> Any:
    return fn(*args, **kwargs)


def test_the_function_gets_handles_and_all_replicas_its_result(run_any: Run) -> None:
    def total(handle: Any, offset: Any) -> Any:
        return sum(handle.values()) + offset.value(0)

    def program(env: ReplicaEnv) -> Any:
        return env.merge(total, (env.rank + 1.0,), {"offset": 10})

    assert run_any(program, on_merge=_call).values() == [13.0, 13.0]


def test_a_result_may_differ_by_replica(run_any: Run) -> None:
    def program(env: ReplicaEnv) -> Any:
        return env.merge(lambda: {"a": PerRank(["first", "second"]), "b": 1})

    assert run_any(program, on_merge=_call)["a"].values() == ["first", "second"]


def test_the_function_may_run_programs_on_the_paused_replicas(any_group: Group, run_any: Run) -> None:
    def reduce(handle: Any) -> Any:
        return run_any(lambda env, x: env.communicator.all_reduce([x], Reduction("sum"))[0], handle)

    def program(env: ReplicaEnv) -> Any:
        return float(env.merge(None, (np.full(10_000, env.rank + 1.0),))[5])

    assert run_any(program, on_merge=lambda fn, args, kwargs: reduce(*args)).values() == [3.0, 3.0]


def test_several_merges_in_one_step(run_any: Run) -> None:
    def program(env: ReplicaEnv) -> Any:
        return [env.merge(lambda x: sum(x.values()), (env.rank + i,)) for i in range(5)]

    assert [handle.value(1) for handle in run_any(program, on_merge=_call)] == [1, 3, 5, 7, 9]


def test_assignments_of_a_merge_are_undone_with_its_step(run_any: Run) -> None:
    def assign() -> None:
        run_any(lambda env: env.store.__setitem__("v", 2))

    def program(env: ReplicaEnv, fail: bool) -> None:
        env.store["w"] = 3
        env.merge(None)
        if fail and env.rank:
            raise ValueError("after the merge")

    run_any(lambda env: env.store.update({}) or env.store.__setitem__("v", 1))
    with pytest.raises(ValueError, match="after the merge"):
        run_any(program, True, on_merge=lambda fn, args, kwargs: assign())
    assert run_any(lambda env: (env.store["v"], env.store.get("w", 0)))[0].values() == [1, 1]
    run_any(program, False, on_merge=lambda fn, args, kwargs: assign())
    assert run_any(lambda env: env.store["v"]).values() == [2, 2]


def test_a_replica_that_skips_the_merge_is_named(run_any: Run) -> None:
    def program(env: ReplicaEnv) -> Any:
        return env.merge(lambda: 1) if env.rank == 0 else 1

    with pytest.raises(
        RuntimeError, match=r"replicas \[0\] called merge_call, replicas \[1\] ended the step"
    ):
        run_any(program, on_merge=_call)
    assert run_any(lambda env: 1).values() == [1, 1]


def test_a_replica_that_fails_instead_is_the_cause(run_any: Run) -> None:
    def program(env: ReplicaEnv) -> Any:
        if env.rank:
            raise KeyError("mine")
        return env.merge(lambda: 1)

    with pytest.raises(KeyError, match="mine"):
        run_any(program, on_merge=_call)


def test_a_merge_against_a_collective_is_a_mismatch(run_any: Run) -> None:
    def program(env: ReplicaEnv) -> Any:
        return env.merge(lambda: 1) if env.rank == 0 else env.communicator.barrier(site="here.py:1")

    with pytest.raises(
        CollectiveMismatch, match=r"replica 0 waits in merge_call, replica 1 in barrier #1 \(here.py:1\)"
    ):
        run_any(program, on_merge=_call)
    assert run_any(lambda env: 1).values() == [1, 1]


def test_different_argument_structures_are_refused(run_any: Run) -> None:
    def program(env: ReplicaEnv) -> Any:
        return env.merge(lambda x: 1, (1 if env.rank else (1, 2),))

    with pytest.raises(WorkbenchError, match="another structure"):
        run_any(program, on_merge=_call)


def test_what_the_function_raises_is_raised_by_the_step(run_any: Run) -> None:
    class Odd(Exception):
        pass

    def fails() -> None:
        raise Odd("in the merge")

    def program(env: ReplicaEnv) -> Any:
        env.store["v"] = 1
        return env.merge(fails)

    with pytest.raises(Odd, match="in the merge"):
        run_any(program, on_merge=_call)
    assert run_any(lambda env: "v" in env.store).values() == [False, False]


def test_merging_where_it_cannot_be_is_refused(run_any: Run) -> None:
    with pytest.raises(WorkbenchError, match="merge_call is not possible"):
        run_any(lambda env: env.merge(lambda: 1))


@pytest.mark.parametrize("during", ["a step", "tidying"])
def test_values_that_are_dropped_during_a_merge_reach_the_steps_behind_it(
    any_group: Group, run_any: Run, during: str
) -> None:
    def merged(fn: Any, args: Any, kwargs: Any) -> None:
        run_any(lambda env: None) if during == "a step" else any_group.gang.tidy()

    def program(env: ReplicaEnv, x: Any) -> Any:
        env.merge(None)
        return x

    prepared = any_group.prepare(program, user_function=program)
    any_group.run(prepared, (0,), on_merge=merged)
    values = [run_any(lambda env, i: i, i) for i in range(6)]
    handles = []
    while values:
        handles.append(any_group.run(prepared, (values.pop(0),), pipelined=True, on_merge=merged))
    assert [handle.value(1) for handle in handles] == [0, 1, 2, 3, 4, 5]


def test_a_merge_in_pipelined_steps_keeps_their_order(any_group: Group) -> None:
    seen: list[int] = []

    def program(env: ReplicaEnv, i: int) -> Any:
        return env.merge(lambda x: x.value(0), (i,))

    prepared = any_group.prepare(program, user_function=program)
    any_group.run(prepared, (0,), on_merge=_call)
    handles = [
        any_group.run(
            prepared,
            (i,),
            pipelined=True,
            on_merge=lambda fn, args, kwargs: seen.append(fn(*args)) or seen[-1],
        )
        for i in range(1, 6)
    ]
    assert [handle.value(1) for handle in handles] == [1, 2, 3, 4, 5]
    assert seen == [1, 2, 3, 4, 5]
