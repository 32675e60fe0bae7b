"""Values of types that one process has and another has not: told where they are looked at, and nothing breaks."""

from __future__ import annotations

import sys
import types
from collections import namedtuple
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.runtime.conftest import Run, runner
from workbench.distribute import PerReplica
from workbench.errors import CaptureError
from workbench.runtime import Group
from workbench.runtime.replica.env import ReplicaEnv


class Unreadable(Exception):
    def __str__(self) -> str:
        raise ValueError("not even its text")


def only_there(padding: int) -> Any:
    """An object of a class in a module that the calling process makes up."""
    module = types.ModuleType("workbench_only_there")
    kind = type("Kind", (), {"__module__": module.__name__})
    vars(module)["Kind"] = kind
    sys.modules[module.__name__] = module
    made = kind()
    made.padding = "x" * padding  # type: ignore[attr-defined]
    return made


def _held(env: ReplicaEnv) -> int:
    import gc

    from workbench.runtime.replica.executor import DeviceExecutor

    return sum(each.holds() for each in gc.get_objects() if type(each) is DeviceExecutor)


@pytest.fixture
def only_here() -> Iterator[Any]:
    """An object of a class in a module that this process makes up."""
    module = types.ModuleType("workbench_only_here")
    kind = type("Kind", (), {"__module__": module.__name__})
    vars(module)["Kind"] = kind
    sys.modules[module.__name__] = module
    yield kind()
    del sys.modules[module.__name__]


@pytest.fixture
def run(group: Group) -> Run:
    return runner(group)


@pytest.mark.parametrize("padding", [0, 10_000])
def test_a_result_whose_class_only_the_worker_has_is_told_when_it_is_looked_at(
    run: Run, padding: int
) -> None:
    result = run(lambda env: only_there(padding))

    for _ in range(2):
        with pytest.raises(CaptureError, match="No module named 'workbench_only_there'; install here too"):
            result.value(0)
    # The replicas have it, and continue with it.
    assert run(lambda env, made: len(made.padding), result).values() == [padding] * 2


def test_a_structure_of_which_only_the_worker_has_the_class_is_an_error_of_the_step(run: Run) -> None:
    def program(env: ReplicaEnv) -> Any:
        pair = namedtuple("pair", "a b")
        module = types.ModuleType("workbench_only_there")
        vars(module)["pair"] = pair
        pair.__module__ = module.__name__
        sys.modules[module.__name__] = module
        return pair(1, 2)

    with pytest.raises(CaptureError, match=r"structure of a result.*workbench_only_there"):
        run(program)
    assert run(lambda env: env.rank).values() == [0, 1]


def test_a_value_whose_class_only_the_notebook_has_is_told_where_it_is_used(
    group: Group, run: Run, only_here: Any
) -> None:
    pids = [worker.pid for worker in group.gang.workers.values()]
    put = group.put([only_here, only_here])

    with pytest.raises(CaptureError, match=r"a value for the replicas cannot be made.*workbench_only_here"):
        run(lambda env, value: value, put)
    assert run(lambda env: env.rank).values() == [0, 1]
    assert [worker.pid for worker in group.gang.workers.values()] == pids


def test_a_component_that_cannot_be_sent_is_named_and_sent_to_nobody(group: Group, run: Run) -> None:
    class Fails:
        def __reduce__(self) -> Any:
            raise Unreadable

    before = max(run(_held).values())
    with pytest.raises(
        CaptureError, match=r"the component of replica 1 .*Fails does not pickle \(<its __str__"
    ):
        group.put([np.zeros(3), Fails()])
    assert max(run(_held).values()) <= before + 1  # that of the step that counts


def test_values_of_types_that_are_not_here_can_be_shown(run: Run) -> None:
    result = run(lambda env: only_there(0))

    assert repr(PerReplica(result)).count("value of a type that this process does not have") == 2
    assert result.specs() == [None, None]


def test_small_results_are_one_object_however_often_they_are_looked_at(run: Run) -> None:
    result = run(lambda env: np.array([env.rank, 2], ml_dtypes.bfloat16))

    assert result.value(1) is result.value(1)
    assert result.value(1).tolist() == [1, 2]
    assert result.specs() == [("bfloat16", (2,))] * 2


@pytest.mark.parametrize("kind", [Unreadable, KeyError])
def test_a_result_whose_pickling_fails_in_any_way_is_told(run: Run, kind: type[Exception]) -> None:
    class Fails:
        def __reduce__(self) -> Any:
            raise kind("on its way")

    result = run(lambda env: Fails())

    with pytest.raises(
        CaptureError, match=f"a Fails that a replica function returned cannot.*{kind.__name__}"
    ):
        result.value(0)
    assert run(lambda env: env.rank).values() == [0, 1]


@pytest.mark.parametrize("kind", [Unreadable, TypeError])
def test_a_merge_result_that_cannot_be_sent_is_told_and_nobody_waits_for_it(
    run: Run, kind: type[Exception]
) -> None:
    class Fails:
        def __reduce__(self) -> Any:
            raise kind("on its way")

    def program(env: ReplicaEnv) -> Any:
        return env.merge(None)

    with pytest.raises(CaptureError, match=r"the result\[1\] of the merge function.*Fails does not pickle"):
        run(program, on_merge=lambda fn, args, kwargs: (1, Fails()))
    assert run(program, on_merge=lambda fn, args, kwargs: 5).values() == [5, 5]


def test_a_merge_function_that_only_the_worker_has_is_told_and_nobody_waits_for_it(run: Run) -> None:
    def program(env: ReplicaEnv) -> Any:
        return env.merge(None, (), {"option": type(only_there(0))})

    def with_option(fn: Any, args: Any, kwargs: Any) -> Any:
        return kwargs["option"].value(0)

    with pytest.raises(CaptureError, match="workbench_only_there"):
        run(program, on_merge=with_option)
    assert run(lambda env: env.merge(None), on_merge=lambda *_: 5).values() == [5, 5]


def test_a_merge_call_with_a_function_that_only_the_worker_has_is_told(run: Run) -> None:
    def program(env: ReplicaEnv) -> Any:
        return env.merge(type(only_there(0)))

    with pytest.raises(
        CaptureError, match=r"the merge_call of replica [01] cannot be made.*workbench_only_there"
    ):
        run(program, on_merge=lambda *_: 5)
    assert run(lambda env: env.merge(None), on_merge=lambda *_: 5).values() == [5, 5]
