"""`minimum_replicas`: strategies go on with the replicas that are left, and take the others back."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.faults.conftest import STALL_SECONDS, kill, no_hang, until
from tests.own_cluster import OwnCluster, wait_for_workers
from workbench import runtime
from workbench.errors import InvalidArgumentError, ReplicaLost, StaleGeneration
from workbench.runtime.deploy import embedded, succession
from workbench.runtime.process import fork_server


def _lose(own: OwnCluster, number: int, strategy: wb.Strategy) -> None:
    """Ends the worker that was started as number `number`."""
    process = own.processes[number]
    kill(process.pid)
    process.wait(10)
    workers = strategy.group.gang.workers
    until(lambda: any(worker.pid == process.pid and worker.lost for worker in workers.values()), "the loss")


@pytest.mark.parametrize(
    ("minimum", "text"),
    [
        (0, "minimum_replicas must be an integer of at least 1, got 0"),
        (True, "got True"),
        ("2", "got '2'"),
        (3, "minimum_replicas=3 is more than the 2 that there are"),
    ],
)
def test_a_minimum_that_is_none_is_refused_and_leaves_the_current_cluster_alone(
    minimum: Any, text: str
) -> None:
    with runtime.connect(replicas=1, processes=False) as before:
        with pytest.raises(InvalidArgumentError, match=text):
            wb.connect(replicas=2, processes=False, minimum_replicas=minimum)
        assert runtime.current_cluster() is before


def test_a_strategy_goes_on_with_those_left_and_takes_the_others_back(own: OwnCluster) -> None:
    for name in "012":
        own.add(name)
    wait_for_workers(own.address, 3)
    with wb.connect(own.address, stall_seconds=STALL_SECONDS, minimum_replicas=2) as cluster:
        strategy = wb.MirroredStrategy()
        with strategy.scope():
            weights = wb.Variable([1.0, 2.0], aggregation="MEAN")
            total = wb.Variable(0.0, synchronization="ON_READ", aggregation="SUM")
            mean = wb.Variable(0.0, synchronization="ON_READ", aggregation="MEAN")

        def step(scale: float) -> Any:
            context = wb.distribute.get_replica_context()
            weights.assign_add([scale, scale])
            total.assign_add(1.0)
            mean.assign(float(context.replica_id_in_sync_group))
            return context.all_reduce("SUM", 1.0), context.num_replicas_in_sync, wb.distribute.get_strategy()

        before = strategy.run(step, args=(1.0,))[0]
        large = strategy.run(lambda: np.ones(100_000, np.float32))
        assert strategy.num_replicas_in_sync == 3
        assert float(total) == 3.0
        _lose(own, 2, strategy)  # the scheduler has number 0

        count, seen, itself = strategy.run(step, args=(1.0,))

        assert strategy.num_replicas_in_sync == 2
        assert strategy.local_results(count) == (2.0, 2.0)
        assert strategy.local_results(seen) == (2, 2)
        assert [one.num_replicas_in_sync for one in strategy.local_results(itself)] == [2, 2]
        np.testing.assert_array_equal(weights.numpy(), [3.0, 4.0])  # the survivors have it
        assert float(total) == 4.0  # 2 from the first step, because the lost replica's part is gone, and 2
        assert float(mean) == 0.5
        assert "2 replicas" in repr(strategy)
        assert len(strategy.local_results(weights)) == 2

        # What three replicas have computed is still there, except for lost parts; steps of two do not accept it.
        assert strategy.local_results(before) == (3.0, 3.0, 3.0)
        assert len(wb.inspect(before).values[0].replicas) == 3
        with pytest.raises(
            StaleGeneration, match="components of 3 replicas, and MirroredStrategy continues with 2"
        ):
            strategy.run(lambda value: value, args=(large,))
        told = wb.diagnose().verdict
        assert any(
            "MirroredStrategy continues with 2 of 3 replicas, without replica 1" in line for line in told
        )
        events = [
            event.message for event in cluster.feed.snapshot().events if event.name == "strategy_resized"
        ]
        assert "continues with 2 of 3 replicas, without replica 1" in events[0]

        own.add("1")
        wait_for_workers(own.address, 3)
        until(lambda: strategy.run(step, args=(0.0,)) and strategy.num_replicas_in_sync == 3, "the growth")
        count, seen, itself = strategy.run(step, args=(1.0,))
        assert strategy.local_results(count) == (3.0, 3.0, 3.0)
        assert [one.num_replicas_in_sync for one in strategy.local_results(itself)] == [3, 3, 3]
        for component in strategy.local_results(weights):
            np.testing.assert_array_equal(component.numpy(), [4.0, 5.0])
        assert not any("continues with" in line for line in wb.diagnose().verdict)


def test_values_of_the_notebook_are_refused_to_fewer_replicas_and_come_back_with_all(own: OwnCluster) -> None:
    for name in "01":
        own.add(name)
    wait_for_workers(own.address, 2)
    with wb.connect(own.address, stall_seconds=STALL_SECONDS, minimum_replicas=1):
        strategy = wb.MirroredStrategy()

        def ranks() -> Any:
            return strategy.distribute_values_from_function(lambda context: context.replica_id_in_sync_group)

        def used(value: Any) -> list[int]:
            return [int(each) for each in strategy.local_results(strategy.run(lambda x: x, args=(value,)))]

        for_two = ranks()
        assert used(for_two) == [0, 1]
        _lose(own, 2, strategy)
        for _ in range(2):
            with pytest.raises(
                StaleGeneration,
                match=r"for 2 replicas.*continues with 1: make it again .*values_from_function",
            ):
                used(for_two)
        for_one = ranks()
        assert used(for_one) == [0]

        own.add("1")
        wait_for_workers(own.address, 2)
        until(lambda: strategy.group.may_grow, "the return")
        assert used(for_one) == [0]  # the step that takes it is not the one that the others join
        assert used(ranks()) == [0, 1]
        assert used(for_two) == [0, 1]


def test_fewer_than_the_minimum_wait_for_the_others(own: OwnCluster) -> None:
    for name in "01":
        own.add(name)
    wait_for_workers(own.address, 2)
    with wb.connect(own.address, stall_seconds=STALL_SECONDS, minimum_replicas=2):
        strategy = wb.MirroredStrategy()
        strategy.run(lambda: None)
        _lose(own, 1, strategy)
        for _ in range(2):
            with pytest.raises(ReplicaLost, match="replica 0 of MirroredStrategy cannot run") as caught:
                strategy.run(lambda: None)
        assert caught.value.__notes__ == ["1 replicas are left, and minimum_replicas is 2"]


def test_central_storage_survives_the_loss_of_the_process_that_holds_it(own: OwnCluster) -> None:
    for name in "01":
        own.add(name)
    wait_for_workers(own.address, 2)
    with wb.connect(own.address, stall_seconds=STALL_SECONDS, minimum_replicas=1):
        strategy = wb.distribute.experimental.CentralStorageStrategy()
        with strategy.scope():
            weights = wb.Variable([1.0, 2.0], aggregation="SUM")

        def step() -> Any:
            weights.assign_add(np.ones(2, np.float32))
            return weights.numpy()

        strategy.run(step)
        _lose(own, 1, strategy)

        (seen,) = strategy.local_results(strategy.run(step))

        np.testing.assert_array_equal(seen, [4.0, 5.0])
        np.testing.assert_array_equal(weights.numpy(), [4.0, 5.0])


def test_the_holder_of_central_storage_may_get_another_number(own: OwnCluster) -> None:
    for name in "012":
        own.add(name)
    wait_for_workers(own.address, 3)
    with wb.connect(own.address, stall_seconds=STALL_SECONDS, minimum_replicas=2):
        strategy = wb.distribute.experimental.CentralStorageStrategy(parameter_device="CPU:2")
        with strategy.scope():
            weights = wb.Variable([1.0, 2.0], aggregation="SUM")

        def step() -> Any:
            weights.assign_add(np.ones(2, np.float32))
            return weights.numpy()

        strategy.run(step)  # it is replica 2
        _lose(own, 1, strategy)

        for seen in strategy.local_results(strategy.run(step)):  # and replica 1 from now on
            np.testing.assert_array_equal(seen, [6.0, 7.0])
        weights.assign([0.0, 1.0])
        np.testing.assert_array_equal(weights.numpy(), [0.0, 1.0])
        for seen in strategy.local_results(strategy.run(step)):
            np.testing.assert_array_equal(seen, [2.0, 3.0])


def _elements(strategy: wb.Strategy, batch: Any) -> list[int]:
    """Runs a step with a batch; returns its elements on all replicas, in order."""

    def step(part: Any) -> Any:
        return wb.distribute.get_replica_context().all_gather(part, axis=0)

    gathered = strategy.run(step, args=(batch,))
    return sorted(int(element) for element in strategy.local_results(gathered)[0])


def _global_batch(number: int) -> list[int]:
    return [element % 120 for element in range(12 * number, 12 * number + 12)]


@pytest.mark.parametrize(
    ("again", "pure"),
    [
        (False, True),
        pytest.param(True, False, marks=pytest.mark.thorough),
        pytest.param(True, True, marks=pytest.mark.thorough),
        pytest.param(False, False, marks=pytest.mark.thorough),
    ],
)
def test_batches_are_split_anew_and_none_is_lost(own: OwnCluster, again: bool, pure: bool) -> None:
    """Whether the loop tries again with the batch that it has, or goes on to the next: each is used once."""
    for name in "012":
        own.add(name)
    wait_for_workers(own.address, 3)
    with wb.connect(own.address, stall_seconds=STALL_SECONDS, minimum_replicas=1):
        strategy = wb.MirroredStrategy()
        numbers = wb.data.Dataset.range(120)
        dataset = (numbers if pure else numbers.map(lambda number: number + 0)).batch(12).repeat()
        elements = iter(strategy.distribute_dataset(dataset))
        seen: list[list[int]] = []
        sizes: list[int] = []

        def go(steps: int) -> None:
            batch, until_number = next(elements), len(seen) + steps
            while len(seen) < until_number:
                try:
                    seen.append(_elements(strategy, batch))
                except ReplicaLost:
                    if again:
                        continue
                else:
                    sizes.append(strategy.num_replicas_in_sync)
                if len(seen) < until_number:
                    batch = next(elements)

        go(5)
        _lose(own, 2, strategy)  # while idle, with batches read ahead
        go(5)
        own.add("1")
        wait_for_workers(own.address, 3)
        until(lambda: strategy.group.may_grow, "the return")
        go(5)

        assert seen == [sorted(_global_batch(number)) for number in range(15)]
        assert sizes == [3] * 5 + [2] * 5 + [3] * 5


def test_a_batch_whose_iterator_is_gone_is_refused(own: OwnCluster) -> None:
    for name in "01":
        own.add(name)
    wait_for_workers(own.address, 2)
    with wb.connect(own.address, stall_seconds=STALL_SECONDS, minimum_replicas=1):
        strategy = wb.MirroredStrategy()
        batch = next(iter(strategy.distribute_dataset(wb.data.Dataset.range(120).batch(12))))
        _lose(own, 2, strategy)
        strategy.run(lambda: None)
        with pytest.raises(StaleGeneration, match="the iterator that gave it is gone"):
            _elements(strategy, batch)


def test_input_that_cannot_be_planned_for_fewer_is_told_where_it_is_asked_for(own: OwnCluster) -> None:
    def make(context: wb.distribute.InputContext) -> wb.data.Dataset:
        if context.num_replicas_in_sync < 2:
            raise ValueError("two at least")
        return wb.data.Dataset.range(120).batch(4)

    for name in "01":
        own.add(name)
    wait_for_workers(own.address, 2)
    with wb.connect(own.address, stall_seconds=STALL_SECONDS, minimum_replicas=1):
        strategy = wb.MirroredStrategy()
        elements = iter(strategy.distribute_datasets_from_function(make))
        first = next(elements)
        assert len(strategy.local_results(first)) == 2
        _lose(own, 2, strategy)

        assert strategy.local_results(strategy.run(lambda: 7)) == (7,)
        for _ in range(2):
            with pytest.raises(ValueError, match="two at least"):
                next(elements)
        own.add("1")
        wait_for_workers(own.address, 2)
        until(lambda: strategy.run(lambda: 7) and strategy.num_replicas_in_sync == 2, "the growth")
        assert len(strategy.local_results(next(elements))) == 2


def _no_process(descriptors: Sequence[int]) -> None:
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))


@pytest.fixture
def _not_waited_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A restart without any sign of one takes longer than these tests wait."""
    monkeypatch.setattr(succession, "RESTART_SECONDS", 600.0)
    monkeypatch.setattr(embedded, "RESTART_AGAIN_SECONDS", 0.05)


@pytest.mark.skipif(not fork_server.AVAILABLE, reason="workers are forked from a server on Linux only")
@pytest.mark.usefixtures("_not_waited_out")
def test_embedded_workers_whose_restart_fails_are_done_without_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with wb.connect(replicas=3, minimum_replicas=2) as cluster:
        strategy = wb.MirroredStrategy()
        with strategy.scope():
            weights = wb.Variable([1.0, 2.0])
        monkeypatch.setattr(fork_server.server, "request", _no_process)
        worker, _ = strategy.group.place(1)
        kill(worker.pid)
        until(lambda: worker.lost, "the notice of the loss")

        with no_hang():
            ranks = strategy.run(lambda: wb.distribute.get_replica_context().replica_id_in_sync_group)

        assert [int(rank) for rank in strategy.local_results(ranks)] == [0, 1]
        assert [device.worker for device in strategy.devices] == [
            cluster.gang.workers[name].address for name in ("0", "2")
        ]
        np.testing.assert_array_equal(weights.numpy(), [1.0, 2.0])
        assert any("Resource temporarily unavailable" in why for why in strategy.group.absent.values())

        monkeypatch.undo()
        until(lambda: strategy.group.may_grow, "the return")
        assert len(strategy.local_results(strategy.run(lambda: 7))) == 3


@pytest.mark.skipif(not fork_server.AVAILABLE, reason="workers are forked from a server on Linux only")
@pytest.mark.usefixtures("_not_waited_out")
def test_a_restart_that_fails_is_told_at_once_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with wb.connect(replicas=2):
        strategy = wb.MirroredStrategy()
        strategy.run(lambda: None)
        monkeypatch.setattr(fork_server.server, "request", _no_process)
        worker, _ = strategy.group.place(1)
        kill(worker.pid)
        until(lambda: worker.lost, "the notice of the loss")
        for _ in range(3):
            with (
                no_hang(),
                pytest.raises(
                    ReplicaLost,
                    match=r" s: its restart failed \(BlockingIOError: .*is tried again .*repair that, or connect again",
                ),
            ):
                strategy.run(lambda: None)

        monkeypatch.undo()
        until(lambda: _succeeds(strategy), "the step after the restart")


def _succeeds(strategy: wb.Strategy) -> bool:
    try:
        strategy.run(lambda: None)
    except ReplicaLost:
        return False
    return True
