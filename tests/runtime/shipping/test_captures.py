"""Functions on their way to the workers: what cannot travel is named, what is too large is refused."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from distributed import Client

from tests.runtime.conftest import Run
from workbench.errors import CaptureError
from workbench.runtime import Cluster, Group
from workbench.runtime.comm.codec import PICKLED
from workbench.runtime.driver.arguments import explain_unpicklable_argument
from workbench.runtime.replica.env import ReplicaEnv
from workbench.runtime.shipping.captures import captured, check_size
from workbench.runtime.shipping.function_registry import Shipping

threshold = 1


def _explained(function: Any) -> str:
    with pytest.raises(CaptureError) as caught:
        Shipping(PICKLED).prepare(function, function)
    return str(caught.value)


def test_a_lock_is_named() -> None:
    lock = threading.Lock()

    def step(env: ReplicaEnv) -> Any:
        return lock

    text = _explained(step)
    assert "'lock', a _thread.lock" in text
    assert "step" in text


def test_a_socket_a_generator_and_a_client_are_named(cluster: Cluster) -> None:
    import socket

    with socket.socket() as endpoint:
        things = {"endpoint": endpoint}

        def uses_endpoint(env: ReplicaEnv) -> Any:
            return things["endpoint"]

        assert "things → ['endpoint']" in _explained(uses_endpoint)
    numbers = (i for i in range(3))
    assert "'numbers', a builtins.generator" in _explained(lambda env: next(numbers))
    client: Client = cluster.client
    assert "'client', a distributed.client.Client" in _explained(lambda env: client.id)


def test_the_path_leads_through_nested_functions() -> None:
    lock = threading.Lock()

    def inner() -> Any:
        return lock

    def middle() -> Any:
        return inner()

    def step(env: ReplicaEnv) -> Any:
        return middle()

    assert "'middle → inner → lock'" in _explained(step)


def test_methods_partials_and_defaults_are_looked_into() -> None:
    import functools

    class Model:
        def __init__(self) -> None:
            self.guard = threading.Lock()

        def step(self, env: ReplicaEnv) -> Any:
            return self

    lock = threading.Lock()

    def with_default(env: ReplicaEnv, guard: Any = lock) -> Any:
        return guard

    assert "self" in _explained(Model().step)
    assert "argument 0" in _explained(functools.partial(lambda guard, env: None, lock))
    assert "'guard='" in _explained(with_default)


def test_an_argument_that_cannot_travel_is_named() -> None:
    found = explain_unpicklable_argument("step", ((1, {"guard": threading.Lock()}), {}), TypeError("lock"))
    assert "args[1]['guard'] of 'step' cannot be sent to the workers: a _thread.lock" in str(found)
    found = explain_unpicklable_argument("step", ((), {"x": threading.Lock()}), TypeError("lock"))
    assert "kwargs['x'] of 'step'" in str(found)


def test_a_large_array_is_named_with_its_size_and_the_remedies() -> None:
    table = np.zeros(2_000_000)

    def step(env: ReplicaEnv) -> Any:
        return table[0]

    text = _explained(step)
    for part in ("'table'", "16 MB", "wb.Variable", "distribute_dataset", "distribute_values_from_function"):
        assert part in text


def test_an_array_below_the_limit_travels(run: Run) -> None:
    table = np.arange(1_000_000)
    assert run(lambda env: int(table[-1])).values() == [999_999] * 2


def test_size_is_checked_also_where_nothing_is_pickled() -> None:
    table = np.zeros(2_000_000)
    with pytest.raises(CaptureError, match="table"):
        check_size(lambda env: table, table.nbytes)


def test_captures_are_found_by_name() -> None:
    value = [1, 2]

    def step() -> Any:
        return value

    assert dict(captured(step))["value"] is value


def test_edits_to_globals_are_seen_by_the_next_run(run: Run) -> None:
    namespace: dict[str, Any] = {"threshold": 1, "__name__": "__main__"}
    exec("def step(env): return threshold", namespace)
    assert run(namespace["step"]).values() == [1, 1]
    namespace["threshold"] = 2
    assert run(namespace["step"]).values() == [2, 2]


def test_the_same_content_travels_once(group: Group) -> None:
    def step(env: ReplicaEnv) -> int:
        return 7

    first = group.prepare(step, user_function=step)
    group.run(first)
    worker, _ = group.place(0)
    known = set(worker.shipped)
    again = group.prepare(step, user_function=step)
    group.run(again)
    assert again.function == first.function
    assert worker.shipped == known


def _objects(env: ReplicaEnv) -> int:
    import gc

    from workbench.runtime.replica.object_cache import ShippedObjects

    return sum(
        len(each._loaded) + len(each._pickled) for each in gc.get_objects() if type(each) is ShippedObjects
    )


def test_functions_that_differ_in_each_step_are_not_kept_for_good(group: Group, run: Run) -> None:
    def step_of(number: int) -> Any:
        return lambda env: number

    kept = run(step_of(-1))
    held = group.prepare(step_of(-2))
    for number in range(600):
        assert run(step_of(number)).value(0) == number

    assert len(group.gang.shipping.pickled) < 400
    assert max(run(_objects).values()) < 400
    assert group.run(held).values() == [-2, -2]  # the function has references, so it is still there
    assert run(step_of(0)).values() == [0, 0]  # it was forgotten, so it is sent again
    assert kept.values() == [-1, -1]


def test_large_functions_that_nobody_holds_are_kept_up_to_a_size(group: Group, run: Run) -> None:
    before = group.gang.shipping.pickled.copy()
    for number in range(24):
        batch = np.full(500_000, number, np.float64)
        run(lambda env, batch=batch: float(batch[0]))

    new = [size for id, size in group.gang.shipping.pickled.items() if id not in before]
    assert sum(map(len, new)) <= 64 * 1024 * 1024


def test_classes_of_the_notebook_travel_by_value_in_arguments_too(run: Run) -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec("class Batch:\n    def __init__(self, x): self.x = x", namespace)
    import __main__

    __main__.Batch = namespace["Batch"]  # type: ignore[attr-defined]
    try:
        assert run(lambda env, batch: batch.x + env.rank, namespace["Batch"](5)).values() == [5, 6]
    finally:
        del __main__.Batch  # type: ignore[attr-defined]


def test_a_function_that_fails_to_load_is_an_error_of_its_step(run: Run) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return eval, ("1 / 0",)

    trap = Trap()
    with pytest.raises(ZeroDivisionError):
        run(lambda env: trap)
    assert run(lambda env: 1).values() == [1, 1]
