"""What a step does, on every layout of replicas: results, arguments, state, errors, order."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from tests.runtime.conftest import Run, runner
from workbench.communicators import Reduction
from workbench.errors import CaptureError, InvalidArgumentError, ReplicaError, StaleGeneration, WorkbenchError
from workbench.runtime import Group, Handle
from workbench.runtime.driver.group import MAX_IN_FLIGHT
from workbench.runtime.replica.env import ReplicaEnv


def _held(env: ReplicaEnv) -> int:
    import gc

    from workbench.runtime.replica.executor import DeviceExecutor

    return sum(o.holds() for o in gc.get_objects() if type(o) is DeviceExecutor)


def test_small_results_are_there_at_once_and_large_ones_are_fetched(run_any: Run) -> None:
    def program(env: ReplicaEnv) -> Any:
        return {"small": env.rank, "text": "x" * env.rank, "large": np.full(100_000, env.rank)}

    result = run_any(program)
    assert result["small"].values() == [0, 1]
    assert result["text"].values() == ["", "x"]
    assert [value[99_999] for value in result["large"].values()] == [0, 1]
    assert result["large"].value(1) is result["large"].value(1)
    assert result["large"].specs() == [("int64", (100_000,))] * 2
    assert result["small"].specs() == [None, None]


def test_structure_of_the_result_is_that_of_the_program(run_any: Run) -> None:
    first, (second, nothing) = run_any(lambda env: (1, (2, None)))
    assert isinstance(first, Handle)
    assert second.values() == [2, 2]
    assert nothing is None


def test_handles_stand_for_the_component_of_each_replica(any_group: Group, run_any: Run) -> None:
    large = run_any(lambda env: np.arange(10_000) + env.rank)
    given = any_group.put([10, 20])
    result = run_any(lambda env, a, b: int(a[0]) + b["x"][0], large, {"x": [given]})
    assert result.values() == [10, 21]
    by_name = any_group.run(any_group.prepare(lambda env, *, a: a), (), {"a": given})
    assert by_name.values() == [10, 20]


def test_put_values_come_back(any_group: Group) -> None:
    handle = any_group.put([np.arange(3), np.arange(100_000)])
    assert handle.value(0).tolist() == [0, 1, 2]
    assert handle.value(1)[-1] == 99_999
    assert handle.specs() == [("int64", (3,)), ("int64", (100_000,))]


def test_replicas_know_where_they_are(any_group: Group, run_any: Run) -> None:
    def program(env: ReplicaEnv) -> Any:
        return env.rank, env.size, env.group_id, env.generation, env.step, str(env.device), len(env.devices)

    columns = [handle.values() for handle in run_any(program)]
    devices = [str(device) for device in any_group.devices]
    assert columns == [[0, 1], [2, 2], [any_group.id] * 2, [0, 0], [0, 0], devices, [2, 2]]


def test_steps_count_and_internal_work_does_not(any_group: Group, run_any: Run) -> None:
    assert run_any(lambda env: env.step).values() == [0, 0]
    any_group.run(any_group.prepare(lambda env: None))
    assert run_any(lambda env: env.step).values() == [1, 1]


def test_a_step_whose_arguments_cannot_travel_is_not_counted(group: Group) -> None:
    run = runner(group)
    assert run(lambda env: env.step).values() == [0, 0]
    with pytest.raises(CaptureError, match="cannot be sent"):
        run(lambda env, guard: None, threading.Lock())
    assert group.at_steps() == [0, 0]
    assert run(lambda env: env.step).values() == [1, 1]


def test_replicas_may_be_chosen(any_group: Group, run_any: Run) -> None:
    handle = run_any(lambda env: env.rank, ranks=[1])
    assert handle.value(1) == 1
    with pytest.raises(IndexError, match="no component for replica 0"):
        handle.value(0)


def test_different_structures_are_refused_by_name(run_any: Run) -> None:
    def program(env: ReplicaEnv) -> Any:
        return 1 if env.rank else (1, 2)

    with pytest.raises(
        InvalidArgumentError, match=r"'.*program' returned different structures.*replica 0.*replica 1"
    ):
        run_any(program)
    assert run_any(lambda env: 5).values() == [5, 5]


def test_state_stays_between_steps(run_any: Run) -> None:
    def keep(env: ReplicaEnv) -> None:
        env.store["v"] = env.rank + 5

    run_any(keep)
    assert run_any(lambda env: env.store["v"]).values() == [5, 6]


def test_a_step_that_fails_somewhere_leaves_no_trace_anywhere(run_any: Run) -> None:
    def keep(env: ReplicaEnv, value: int, failing: int) -> None:
        env.store["v"] = value
        env.store[value] = value
        if env.rank == failing:
            raise KeyError("oops")

    run_any(keep, 1, -1)
    for failing in (0, 1):
        with pytest.raises(KeyError):
            run_any(keep, 99, failing)
        assert run_any(lambda env: (env.store["v"], 99 in env.store))[0].values() == [1, 1]


def test_an_error_is_of_the_users_type_and_shows_the_replicas_own_lines(
    any_group: Group, run_any: Run
) -> None:
    class Custom(ValueError):
        def __init__(self, text: str) -> None:
            super().__init__(text)
            self.detail = [1, 2]

    def fails(env: ReplicaEnv) -> None:
        if env.rank == 1:
            raise Custom("no good")

    with pytest.raises(Custom) as caught:
        run_any(fails)
    error: Any = caught.value
    assert isinstance(error, ReplicaError)
    assert "no good" in str(error)
    assert 'raise Custom("no good")' in str(error)
    assert error.detail == [1, 2]
    assert (error.replica, error.step, error.generation) == (1, 0, 0)
    assert error.worker == any_group.place(1)[0].address
    assert any("conftest.py:" in note for note in error.__notes__)  # the line that called `run`


def test_different_texts_of_one_type_become_notes(run_any: Run) -> None:
    def fails(env: ReplicaEnv) -> None:
        raise ValueError(f"text {env.rank}")

    with pytest.raises(ValueError, match="text 0") as caught:
        run_any(fails)
    assert any("also on replica 1: ValueError: text 1" in note for note in caught.value.__notes__)


def test_different_types_become_a_group_in_the_order_of_the_replicas(run_any: Run) -> None:
    def fails(env: ReplicaEnv) -> None:
        raise (KeyError, OSError)[env.rank]("x")

    with pytest.raises(ExceptionGroup) as caught:
        run_any(fails)
    assert [type(error).__mro__[2].__name__ for error in caught.value.exceptions] == [
        "KeyError",
        "OSError",
    ] or [
        isinstance(error, kind)
        for error, kind in zip(caught.value.exceptions, (KeyError, OSError), strict=True)
    ] == [True, True]


def test_exceptions_that_cannot_travel_arrive_as_text_and_type(run_any: Run) -> None:
    class Unpicklable(Exception):
        def __reduce__(self) -> Any:
            raise RuntimeError("cannot")

    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("cannot speak")

    def unpicklable(env: ReplicaEnv) -> None:
        raise Unpicklable("the reason")

    def mute(env: ReplicaEnv) -> None:
        raise Mute

    def huge(env: ReplicaEnv) -> None:
        raise ValueError("x" * 100_000_000)

    with pytest.raises(ReplicaError, match=r"Unpicklable on replica 0.*the reason"):
        run_any(unpicklable)
    with pytest.raises(ReplicaError, match="its __str__ raised RuntimeError"):
        run_any(mute)
    with pytest.raises(ReplicaError, match="100,000,000 characters") as caught:
        run_any(huge)
    assert len(str(caught.value)) < 30_000


def test_results_that_do_not_pickle_stay_usable_on_their_replica(run_any: Run) -> None:
    def make(env: ReplicaEnv) -> Any:
        import threading

        return threading.Lock(), env.rank

    lock, _ = run_any(make)
    assert run_any(lambda env, lock: lock.acquire(timeout=1), lock).values() == [True, True]


def test_pipelined_steps_run_in_order(any_group: Group) -> None:
    def append(env: ReplicaEnv, value: int) -> int:
        env.store["log"] = (*env.store.get("log", ()), value)
        return value

    prepared = any_group.prepare(append, user_function=append)
    any_group.run(prepared, (0,))
    handles = [any_group.run(prepared, (i,), pipelined=True) for i in range(1, 3 * MAX_IN_FLIGHT)]
    assert any_group.in_flight <= MAX_IN_FLIGHT
    assert handles[-1].values() == [3 * MAX_IN_FLIGHT - 1] * 2
    assert runner(any_group)(lambda env: env.store["log"] == tuple(range(3 * MAX_IN_FLIGHT))).values() == [
        True,
        True,
    ]


def test_a_pipelined_error_surfaces_once_and_undoes_what_came_behind(any_group: Group) -> None:
    def program(env: ReplicaEnv, value: int) -> int:
        env.store["v"] = value
        if value == 3 and env.rank == 1:
            raise ValueError("three")
        return value

    prepared = any_group.prepare(program, user_function=program)
    any_group.run(prepared, (0,))
    handles = [any_group.run(prepared, (i,), pipelined=True) for i in range(1, 6)]
    with pytest.raises(ValueError, match="three") as caught:
        any_group.wait()
    assert any("test_step.py:" in note for note in caught.value.__notes__)
    any_group.wait()
    assert handles[1].values() == [2, 2]
    with pytest.raises(ValueError, match="three"):
        handles[4].values()
    assert runner(any_group)(lambda env: env.store["v"]).values() == [2, 2]


def test_a_pipelined_error_is_raised_by_the_next_run(any_group: Group) -> None:
    def program(env: ReplicaEnv, value: int) -> int:
        return 1 // value

    prepared = any_group.prepare(program, user_function=program)
    any_group.run(prepared, (1,))
    handle = any_group.run(prepared, (0,), pipelined=True)

    def go_on() -> None:
        for _ in range(2 * MAX_IN_FLIGHT):
            any_group.run(prepared, (1,), pipelined=True)
        any_group.wait()

    with pytest.raises(ZeroDivisionError):
        go_on()
    assert any_group.run(prepared, (1,)).values() == [1, 1]
    with pytest.raises(ZeroDivisionError):
        handle.values()


def test_values_are_freed_when_their_handles_go(run_any: Run) -> None:
    before = run_any(_held).value(0)
    handles = [run_any(lambda env: np.zeros(10_000)) for _ in range(5)]
    grown = run_any(_held).value(0)
    del handles
    run_any(lambda env: None)
    after = run_any(_held).value(0)
    assert grown > before
    assert after <= before + 1


def test_results_of_failed_steps_are_freed(run_any: Run) -> None:
    def fails(env: ReplicaEnv) -> Any:
        if env.rank:
            raise ValueError("x")
        return [np.zeros(10_000)] * 3

    before = run_any(_held).value(0)
    for _ in range(4):
        with pytest.raises(ValueError, match="x"):
            run_any(fails)
    run_any(lambda env: None)
    assert run_any(_held).value(0) <= before + 1


def test_groups_keep_apart(any_group: Group) -> None:
    other = any_group.gang.cluster.group(any_group.devices[::-1], label="Other")  # type: ignore[union-attr]
    runner(any_group)(lambda env: env.store.__setitem__("v", "first"))
    assert runner(other)(lambda env: env.store.get("v", "nothing")).values() == ["nothing"] * 2
    assert runner(other)(lambda env: str(env.device)).values() == [str(d) for d in other.devices]
    other.close()
    with pytest.raises(WorkbenchError):
        runner(other)(lambda env: None)
    assert runner(any_group)(lambda env: env.store["v"]).values() == ["first"] * 2


def test_a_value_of_another_group_cannot_be_used_by_accident(any_group: Group) -> None:
    single = any_group.gang.cluster.group(any_group.devices[:1], label="Single")  # type: ignore[union-attr]
    handle = runner(single)(lambda env: np.zeros(10_000))
    with pytest.raises(StaleGeneration):
        runner(any_group)(lambda env, x: None, handle)
    single.close()


def test_collectives_join_the_replicas(run_any: Run) -> None:
    def program(env: ReplicaEnv) -> Any:
        (total,) = env.communicator.all_reduce([np.full(1000, env.rank + 1.0)], Reduction("sum"))
        return float(total[0]), float(env.communicator.all_gather(np.array([env.rank]), 0)[1])

    total, gathered = run_any(program)
    assert total.values() == [3.0, 3.0]
    assert gathered.values() == [1.0, 1.0]
