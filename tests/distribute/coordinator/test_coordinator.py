"""Functions run on whichever worker is free; their results, errors, arguments and datasets."""

from __future__ import annotations

import contextlib
import copy
import gc
import os
import re
import resource
import threading
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench import distribute
from workbench.distribute.coordinator import lane
from workbench.distribute.coordinator.call_queue import CallQueue
from workbench.distribute.coordinator.shipment import Shipment
from workbench.distribute.experimental import coordinator as experimental
from workbench.errors import (
    CancelledError,
    CaptureError,
    FailedPreconditionError,
    OutOfRangeError,
    ReplicaError,
)


def test_functions_update_variables(strategy: Any, coordinator: Any) -> None:
    with strategy.scope():
        v = wb.Variable(0.0)

    @wb.function
    def step(x: float) -> Any:
        v.assign_add(x)
        return v.read_value()

    values = [coordinator.schedule(step, args=(2.0,)) for _ in range(100)]
    coordinator.join()

    assert coordinator.done()
    assert float(v) == 200
    assert max(float(value.fetch()) for value in values) == 200
    assert sorted(set(map(type, values)), key=repr) == [experimental.RemoteValue]


def test_functions_run_beside_more_than_a_thousand_open_files(strategy: Any) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.ExitStack() as stack:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for _ in range(1024):
            stack.enter_context(open(os.devnull, "rb"))
        coordinator = distribute.coordinator.ClusterCoordinator(strategy)
        assert coordinator.schedule(_one).fetch() == 1


def _one() -> int:
    return 1


def test_a_plain_function_sees_what_it_captures_now(coordinator: Any) -> None:
    number = 1

    def give() -> int:
        return number

    first = coordinator.schedule(give).fetch()
    number = 2

    assert (first, coordinator.schedule(give).fetch()) == (1, 2)


def test_results_and_arguments_keep_their_structure(coordinator: Any) -> None:
    def swap(a: Any, *, b: Any) -> Any:
        return {"b": a, "a": (b, [None, "text"])}

    value = coordinator.schedule(swap, args=(np.arange(3),), kwargs={"b": 2.5})

    result = coordinator.fetch([value, 7])
    assert result[1] == 7
    assert result[0]["a"] == (2.5, [None, "text"])
    assert result[0]["b"].tolist() == [0, 1, 2]


def test_a_result_is_an_argument_of_another_function(coordinator: Any) -> None:
    def double(x: float) -> float:
        return 2 * x

    value = coordinator.schedule(double, args=(1.0,))
    for _ in range(5):
        value = coordinator.schedule(double, args=(value,))

    assert value.fetch() == 64


def test_what_stands_for_something_on_workers_is_copied_as_itself(coordinator: Any) -> None:
    value = coordinator.schedule(_one)
    dataset = coordinator.create_per_worker_dataset(wb.data.Dataset.range(3))

    for each in (value, dataset, coordinator):
        assert copy.copy(each) is each
        assert copy.deepcopy([each])[0] is each


def test_an_error_is_of_its_own_type_and_names_worker_and_line(coordinator: Any) -> None:
    def fail() -> None:
        raise KeyError("nothing there")

    value = coordinator.schedule(fail)

    with pytest.raises(
        KeyError, match=r"on worker \d, in .*fail.*nothing there(.|\n)*test_coordinator.py"
    ) as caught:
        coordinator.join()
    assert isinstance(caught.value, ReplicaError)
    assert coordinator.done()
    with pytest.raises(KeyError):
        value.fetch()
    assert coordinator.schedule(lambda: 1).fetch() == 1


def test_an_error_cancels_functions_that_wait(coordinator: Any, tmp_path: Any) -> None:
    go = str(tmp_path / "go")

    def fail() -> None:
        import os
        import time

        while not os.path.exists(go):
            time.sleep(0.001)
        raise ValueError("no")

    def count(n: int) -> int:
        return n

    blocked = [coordinator.schedule(fail), coordinator.schedule(fail)]
    waiting = [coordinator.schedule(count, args=(n,)) for n in range(5)]
    os.close(os.open(go, os.O_CREAT))

    with pytest.raises(ValueError, match="no"):
        coordinator.join()
    assert all(value.ready for value in (*blocked, *waiting))
    with pytest.raises(CancelledError, match="schedule it again"):
        waiting[-1].fetch()


def test_an_error_cancels_functions_that_were_sent_with_it(
    coordinator: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def give() -> None:
        return None

    def bad() -> None:
        raise KeyError("mine")

    def mark(number: int) -> None:
        (tmp_path / str(number)).touch()

    # Then many calls are sent together, however busy the machine is.
    monkeypatch.setattr(lane, "_BATCH_SECONDS", 60.0)
    while not all(each.calls for each in coordinator._lanes):
        coordinator.schedule(give)
        coordinator.join()
    with coordinator._queue.changed:  # no lane takes the first call before the last one is queued
        failed = coordinator.schedule(bad)
        values = [coordinator.schedule(mark, args=(number,)) for number in range(11)]

    with pytest.raises(KeyError):
        coordinator.join()

    with pytest.raises(KeyError):
        failed.fetch()
    for number, value in enumerate(values[:5]):  # half of the twelve went to the first one's worker
        with pytest.raises(
            CancelledError, match=r"mark was cancelled and has not run: \S+bad has failed before it"
        ):
            value.fetch()
        assert not (tmp_path / str(number)).exists()
    assert coordinator.schedule(give).fetch() is None


def test_what_cannot_travel_is_refused_at_once(coordinator: Any) -> None:
    lock = threading.Lock()

    with pytest.raises(CaptureError, match="lock"):
        coordinator.schedule(lambda: lock.locked())
    with pytest.raises(CaptureError, match="arguments"):
        coordinator.schedule(repr, args=(lock,))
    with pytest.raises(TypeError):
        coordinator.schedule(3)
    assert coordinator.done()


def test_a_result_that_cannot_travel_says_so(coordinator: Any) -> None:
    def give() -> Any:
        import threading

        return threading.Lock()

    with pytest.raises(CaptureError, match="lock"):
        coordinator.schedule(give).fetch()
    with pytest.raises(CaptureError):
        coordinator.join()


def test_a_dataset_of_each_worker_is_read_there(strategy: Any, coordinator: Any) -> None:
    per_worker = coordinator.create_per_worker_dataset(lambda: wb.data.Dataset.range(4).repeat())
    iterator = iter(per_worker)

    @wb.function
    def take(it: Any) -> int:
        return int(next(it))

    values = coordinator.fetch([coordinator.schedule(take, args=(iterator,)) for _ in range(40)])

    assert isinstance(iterator, experimental.PerWorkerValues)
    assert set(values) == {0, 1, 2, 3}
    assert coordinator.schedule(take, args=(iter(per_worker),)).fetch() == 0


def test_an_iterator_of_workers_stays_until_the_functions_that_take_it_have_run(coordinator: Any) -> None:
    per_worker = coordinator.create_per_worker_dataset(lambda: wb.data.Dataset.range(3))
    gate = coordinator.schedule(_nap)

    def by_capture() -> Any:
        iterator = iter(per_worker)
        return coordinator.schedule(lambda: int(next(iterator)))

    results = [
        coordinator.schedule(lambda it, former: int(next(it)), args=(iter(per_worker), gate)),
        coordinator.schedule(lambda it: int(next(it)), kwargs={"it": iter(per_worker)}),
        by_capture(),
    ]
    gc.collect()

    assert coordinator.fetch(results) == [0, 0, 0]


def test_iterators_may_be_let_go_while_a_request_is_made() -> None:
    class Hosting:
        class client:
            addresses = ()

    shipment = Shipment("stream", Hosting, CallQueue(10))  # type: ignore[arg-type]
    for _ in range(2000):
        shipment.per_worker(b"")

    def let_go(phase: str, info: dict[str, int]) -> None:
        shipment.per_worker(b"")

    usual = gc.get_threshold()
    with contextlib.ExitStack() as stack:
        stack.callback(gc.set_threshold, *usual)
        stack.callback(gc.callbacks.remove, let_go)
        gc.callbacks.append(let_go)
        gc.set_threshold(100)
        for _ in range(20):
            shipment.request([], set())

    assert shipment.request([], set())["resources"] == {}


def test_an_iterator_of_another_coordinator_is_refused(three: Any, coordinator: Any) -> None:
    other = distribute.ParameterServerStrategy(servers=1)
    try:
        schedule = experimental.ClusterCoordinator(other)
        theirs = iter(schedule.create_per_worker_dataset(wb.data.Dataset.range(100, 110)))
        ours = iter(coordinator.create_per_worker_dataset(wb.data.Dataset.range(5)))
        with pytest.raises(ValueError, match=r"another coordinator.*iter\(coordinator\.create_per_worker"):
            coordinator.schedule(next, kwargs={"its": [ours, theirs]})

        coordinator.schedule(lambda: next(theirs))
        with pytest.raises(FailedPreconditionError, match=r"iterator \d+ .* or another coordinator made it"):
            coordinator.join()
        assert schedule.schedule(lambda: int(next(theirs))).fetch() == 100
    finally:
        other.close()


def _nap() -> None:
    threading.Event().wait(0.2)


@pytest.mark.parametrize(
    ("wrong", "kind", "told"),
    [
        (
            lambda c: c.schedule(3),
            TypeError,
            r"coordinator\.schedule needs a function, got 3; write coordinator",
        ),
        (
            lambda c: c.schedule(_one, args=5),
            TypeError,
            r"coordinator\.schedule: args must be a tuple .*, got int",
        ),
        (
            lambda c: c.schedule(_one, args="ab"),
            TypeError,
            r"coordinator\.schedule: args must be a tuple .*, got str",
        ),
        (
            lambda c: c.schedule(_one, kwargs=[1]),
            TypeError,
            r"coordinator\.schedule: kwargs must be a dictionary .*, got list",
        ),
        (
            lambda c: c.schedule(next, args=(c.create_per_worker_dataset(wb.data.Dataset.range(3)),)),
            CaptureError,
            r"pass an iterator of it, coordinator\.schedule\(fn, args=\(iter\(",
        ),
        (
            lambda c: c.create_per_worker_dataset(3),
            TypeError,
            "a dataset, or a function that returns one, got int: 3",
        ),
    ],
)
def test_what_cannot_be_scheduled_is_refused_at_once(
    coordinator: Any, wrong: Any, kind: type[Exception], told: str
) -> None:
    with pytest.raises(kind, match=told):
        wrong(coordinator)

    coordinator.join()


@pytest.mark.parametrize("made", [5, None])
def test_a_dataset_function_that_returns_no_dataset_is_named(coordinator: Any, made: Any) -> None:
    iterator = iter(coordinator.create_per_worker_dataset(lambda: made))
    coordinator.schedule(lambda it: next(it), args=(iterator,))

    with pytest.raises(
        TypeError, match=f"create_per_worker_dataset: <lambda> returned .*{made}, not a dataset"
    ):
        coordinator.join()


def test_the_end_of_a_dataset_is_out_of_range(coordinator: Any) -> None:
    iterator = iter(coordinator.create_per_worker_dataset(wb.data.Dataset.range(1)))

    # No lane takes the first call before the last one is queued, because `schedule` would raise the failure, too.
    with coordinator._queue.changed:
        for _ in range(3):
            coordinator.schedule(lambda it: next(it), args=(iterator,))
    with pytest.raises(OutOfRangeError):
        coordinator.join()


def test_run_in_a_function_is_on_its_worker(strategy: Any, coordinator: Any) -> None:
    with strategy.scope():
        v = wb.Variable(1.0)

    def step() -> Any:
        def replica(x: float) -> Any:
            context = distribute.get_replica_context()
            assert context is not None
            v.assign_add(x)
            return context.replica_id_in_sync_group, v.read_value()

        return strategy.run(replica, args=(2.0,))

    assert coordinator.schedule(step).fetch() == (0, 3.0)


def test_a_variable_cannot_be_created_on_a_worker(strategy: Any, coordinator: Any) -> None:
    def make() -> None:
        wb.Variable(1.0)

    with pytest.raises(RuntimeError, match="create it once"):
        coordinator.schedule(make).fetch()
    with pytest.raises(RuntimeError):
        coordinator.join()


def test_a_variable_in_a_result_is_the_notebooks_own(strategy: Any, coordinator: Any) -> None:
    with strategy.scope():
        v = wb.Variable(1.0)

    assert coordinator.schedule(lambda: [v]).fetch()[0] is v


def test_a_strategy_has_one_coordinator(strategy: Any, coordinator: Any) -> None:
    assert experimental.ClusterCoordinator(strategy) is coordinator
    assert coordinator.strategy is strategy


def test_a_coordinator_keeps_its_strategy_and_both_end_together(three: Any) -> None:
    made = experimental.ClusterCoordinator(distribute.ParameterServerStrategy(servers=1))
    gc.collect()
    assert made.schedule(lambda: 1).fetch() == 1
    closed = threading.Event()
    made.strategy.hosting.before_close(closed.set)

    del made
    gc.collect()

    assert closed.wait(60)


def test_its_text_counts(coordinator: Any) -> None:
    coordinator.schedule(lambda: None).fetch()
    coordinator.join()

    text = r"<ClusterCoordinator: 2 workers, 0 queued, 0 running, 1 done, [\d.]+ functions/s>"
    assert re.fullmatch(text, repr(coordinator))


def test_closing_the_strategy_ends_what_waits(three: Any, tmp_path: Any) -> None:
    made = distribute.ParameterServerStrategy(servers=1)
    scheduled = experimental.ClusterCoordinator(made)
    go = str(tmp_path / "go")

    def wait() -> None:
        import os
        import time

        while not os.path.exists(go):
            time.sleep(0.001)

    values = [scheduled.schedule(wait) for _ in range(10)]
    closing = threading.Thread(target=made.close)
    closing.start()
    with pytest.raises(CancelledError, match="closed"):
        values[-1].fetch()
    os.close(os.open(go, os.O_CREAT))
    closing.join(60)

    assert all(value.ready for value in values)
    with pytest.raises(CancelledError, match="closed"):
        values[-1].fetch()
    with pytest.raises(RuntimeError, match="closed"):
        scheduled.schedule(wait)


def test_a_dataset_of_workers_tells_what_its_elements_look_like(strategy: Any, coordinator: Any) -> None:
    batches = wb.data.Dataset.range(8).batch(2)
    spec = batches.element_spec
    for made in (batches, lambda: batches, lambda: strategy.distribute_dataset(batches)):
        assert coordinator.create_per_worker_dataset(made).element_spec == spec
    iterator = iter(coordinator.create_per_worker_dataset(batches))
    assert isinstance(iterator, distribute.coordinator.PerWorkerValue)
    with pytest.raises(NotImplementedError, match="call it in a function"):
        iterator.get_next()


def test_a_function_learns_which_worker_runs_it(coordinator: Any) -> None:
    index = distribute.coordinator.experimental_get_current_worker_index

    def dataset() -> Any:
        return wb.data.Dataset.from_tensors(index())

    iterator = iter(coordinator.create_per_worker_dataset(dataset))
    found = coordinator.schedule(lambda it: (index(), int(next(it))), args=(iterator,)).fetch()
    assert found in ((0, 0), (1, 1))
    with pytest.raises(RuntimeError, match="outside of a worker"):
        index()


def test_what_elements_look_like_is_asked_of_the_first_workers_dataset_once(coordinator: Any) -> None:
    index = distribute.coordinator.experimental_get_current_worker_index
    made: list[int] = []

    def dataset() -> Any:
        made.append(index())
        return wb.data.Dataset.range(4).shard(2, index())

    per_worker = coordinator.create_per_worker_dataset(dataset)
    assert per_worker.element_spec == per_worker.element_spec == wb.data.Dataset.range(4).element_spec
    assert made == [0]
    with pytest.raises(RuntimeError, match="outside of a worker"):
        index()
    iterator = iter(per_worker)
    first = coordinator.schedule(lambda it: (index(), int(next(it))), args=(iterator,)).fetch()
    assert first in ((0, 0), (1, 1))


def test_a_dataset_function_that_fails_leaves_the_notebook_outside_of_workers(coordinator: Any) -> None:
    def dataset() -> Any:
        raise OSError("no data")

    with pytest.raises(OSError, match="no data"):
        _ = coordinator.create_per_worker_dataset(dataset).element_spec
    with pytest.raises(RuntimeError, match="outside of a worker"):
        distribute.coordinator.experimental_get_current_worker_index()
