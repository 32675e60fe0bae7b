"""In a replica function, every method works or raises at once: also where replicas are threads of this process."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tqdm import tqdm

import workbench as wb
from tests.distribute.inside_replicas import OBJECTS, PUBLIC, is_method, public
from workbench import distribute
from workbench.errors import CaptureError

pytestmark = pytest.mark.timeout(60)  # code that waits for itself would wait forever

# Every refusal says what to do instead, or why there is nothing to do here.
_REMEDY = re.compile(
    r"outside|an? argument|notebook|inside (it|the function)|replica function|replica's own|the variable itself|"
    r"; use |on all replicas|wb\.connect|no Dask pages|; give what strategy\.run|the strategy's scope"
)


@pytest.fixture(params=["mirrored", "central"])
def strategy(cluster: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Two replicas, whose variables are with each of them or with one."""
    of = {
        "mirrored": distribute.MirroredStrategy,
        "central": distribute.experimental.CentralStorageStrategy,
    }
    made = of[request.param](["CPU:0", "CPU:1"])
    yield made
    made.group.close()


@pytest.fixture
def objects(strategy: Any, cluster: Any) -> dict[str, Any]:
    """What a replica function may have captured."""
    with strategy.scope():
        variable = wb.Variable(np.zeros(2, np.float32), name="w", aggregation="SUM")
    dataset = strategy.distribute_dataset(wb.data.Dataset.range(8).batch(4))
    return {
        "strategy": strategy,
        "extended": strategy.extended,
        "ops": distribute.CrossDeviceOps(),
        "dataset": dataset,
        "iterator": iter(dataset),
        "variable": variable,
        "component": variable.values[0],
        "per_replica": strategy.run(_rank),
        "mirrored": distribute.Mirrored([1, 1]),
        "cluster": cluster,
        "data": wb.data.Dataset.range(8),
        "data_iterator": iter(wb.data.Dataset.range(8)),
    }


def _rank() -> int:
    return int(distribute.get_replica_context().replica_id_in_sync_group)


def _tried(attempts: dict[str, Callable[[], Any]]) -> dict[str, str]:
    """Name -> the error of each attempt; "" for a success."""
    found = {}
    for name, attempt in attempts.items():
        try:
            attempt()
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
        else:
            found[name] = ""
    return found


def _on_replicas(strategy: Any, step: Callable[[], dict[str, str]]) -> dict[str, set[str]]:
    """Name -> the outcomes of all replicas. A function that cannot be captured runs on none."""
    try:
        found = strategy.run(lambda: [step()])
    except CaptureError as error:
        return {"capturing it": {f"CaptureError: {error}"}}
    outcomes: list[dict[str, str]] = [part[0] for part in strategy.local_results(found)]
    return {name: {outcome[name] for outcome in outcomes} for name in outcomes[0]}


def _expect_clear(outcomes: dict[str, set[str]], strategy: Any) -> None:
    unclear = {
        name: found
        for name, found in outcomes.items()
        if any(error and not _REMEDY.search(error) for error in found)
    }
    assert not unclear
    assert strategy.local_results(strategy.run(_rank)) == (0, 1)  # and it has no waiters, or has been closed


@pytest.mark.parametrize("kind", OBJECTS)
def test_every_public_method_has_a_call(kind: str) -> None:
    of, calls = OBJECTS[kind]
    methods = {name for name in public(of) if is_method(of, name)}
    assert methods == {name for name in calls if not name.startswith("_")}


def test_every_public_name_has_a_call() -> None:
    assert set(PUBLIC) == set(wb.__all__)


@pytest.mark.parametrize("kind", [kind for kind in OBJECTS if kind != "context"])
def test_each_method_works_or_raises_at_once(objects: dict[str, Any], strategy: Any, kind: str) -> None:
    of, calls = OBJECTS[kind]
    target = objects[kind]
    names = [name for name in public(of) if not is_method(of, name)]

    def step() -> dict[str, str]:
        attempts = {name: lambda call=call: call(target) for name, call in calls.items()}
        looks = {name: lambda name=name: getattr(target, name) for name in names}
        return _tried({**attempts, **looks})

    _expect_clear(_on_replicas(strategy, step), strategy)


def _in_a_thread(step: Callable[[], dict[str, str]]) -> dict[str, str]:
    found: list[dict[str, str]] = []
    thread = threading.Thread(target=lambda: found.append(step()))
    thread.start()
    thread.join()  # the module's deadline is the subject of the test
    return found[0]


def _in_a_pool(step: Callable[[], dict[str, str]]) -> dict[str, str]:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(step).result()


@pytest.mark.parametrize("started", [_in_a_thread, _in_a_pool])
@pytest.mark.parametrize("kind", [kind for kind in OBJECTS if kind != "context"])
def test_each_method_works_or_raises_at_once_on_a_thread_that_a_replica_function_starts(
    objects: dict[str, Any], strategy: Any, kind: str, started: Callable[..., dict[str, str]]
) -> None:
    of, calls = OBJECTS[kind]
    target = objects[kind]
    names = [name for name in public(of) if not is_method(of, name)]

    def step() -> dict[str, str]:
        # These get the replica's environment, which such a thread does not have.
        given = ("all_reduce_arrays", "own_component")
        own = {name: call for name, call in calls.items() if name not in given}
        attempts = {name: lambda call=call: call(target) for name, call in own.items()}
        looks = {name: lambda name=name: getattr(target, name) for name in names}
        return _tried({**attempts, **looks})

    _expect_clear(_on_replicas(strategy, lambda: started(step)), strategy)


def test_a_thread_of_the_notebooks_pool_counts_as_the_replica_that_it_works_for(local: Any) -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(int).result() == 0  # no step started its thread

        def step() -> None:
            pool.submit(local.run, _rank).result()

        with pytest.raises(
            RuntimeError, match=r"run was called .* by a thread that was started by replica [01]"
        ):
            local.run(step)
        assert pool.submit(lambda: local.local_results(local.run(_rank))).result() == (0, 1)


def test_threads_of_threads_count_as_well(local: Any) -> None:
    def step() -> list[str]:
        return [_in_a_thread(lambda: _in_a_thread(lambda: _tried({"run": lambda: local.run(_rank)})))["run"]]

    errors = local.local_results(local.run(lambda: step()))
    assert all("by a thread that was started by replica" in error for (error,) in errors)


def test_a_thread_that_outlives_its_step_is_free(local: Any) -> None:
    ended, found = threading.Event(), []

    def later() -> None:
        assert ended.wait(30)
        found.append(local.local_results(local.run(_rank)))

    threads = [threading.Thread(target=later) for _ in range(2)]
    local.run(lambda: threads[_rank()].start())
    ended.set()
    for thread in threads:
        thread.join(30)
    assert found == [(0, 1), (0, 1)]


def test_each_method_of_the_context_works(strategy: Any) -> None:
    of, calls = OBJECTS["context"]

    def step() -> dict[str, str]:
        context = distribute.get_replica_context()
        looks = {n: lambda n=n: getattr(context, n) for n in public(of) if not is_method(of, n)}
        return _tried({**{name: lambda call=call: call(context) for name, call in calls.items()}, **looks})

    assert set().union(*_on_replicas(strategy, step).values()) == {""}


def test_each_public_function_works_or_raises_at_once(
    objects: dict[str, Any], strategy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tqdm, "monitor_interval", 0)  # its thread would outlive the test

    def step() -> dict[str, str]:
        folder = str(tmp_path)
        return _tried({name: lambda call=call: call(strategy, folder) for name, call in PUBLIC.items()})

    _expect_clear(_on_replicas(strategy, step), strategy)


def test_what_waits_for_the_replicas_names_itself_and_what_to_do(local: Any) -> None:
    dataset = wb.data.Dataset.range(8).batch(4)
    with pytest.raises(RuntimeError, match=r"distribute_dataset was called inside a replica function.*args="):
        local.run(lambda: local.distribute_dataset(dataset))
    with pytest.raises(RuntimeError, match=r"connect was called inside a replica function"):
        local.run(lambda: wb.connect(replicas=1))
    assert local.local_results(local.run(_rank)) == (0, 1)


def test_functions_may_name_what_shows_the_cluster(strategy: Any) -> None:
    collectives = wb.collectives

    def inside() -> str:
        return f"{wb.devices.__name__} {collectives is wb.collectives}"

    assert set(strategy.local_results(strategy.run(inside))) == {"devices True"}


def test_a_variable_stands_for_itself_where_values_have_handles(strategy: Any) -> None:
    with strategy.scope():
        variable = wb.Variable(np.zeros(2, np.float32), name="w", aggregation="SUM")
    assert variable.handle is None
    assert variable.component_text(0).startswith("<Variable 'w:0' float32[2] on ")
    with pytest.raises(TypeError, match="pass the variable itself"):
        variable.handle_for(strategy.group)


def test_the_components_of_a_variable_can_be_gathered(strategy: Any) -> None:
    with strategy.scope():
        variable = wb.Variable(np.arange(3.0), name="w", aggregation="SUM")
    if strategy.holder is None:
        np.testing.assert_array_equal(strategy.gather(variable, axis=0), [0, 1, 2, 0, 1, 2])
    else:
        with pytest.raises(ValueError, match="use its value"):
            strategy.gather(variable, axis=0)
