"""Row 3: all replicas are lost at once, and training goes on from the last checkpoint."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.faults.conftest import lost_together
from tests.until import until
from workbench.data import Dataset
from workbench.distribute.input.source import InputSource
from workbench.distribute.strategies import strategy as strategies
from workbench.errors import ReplicaLost, StaleGeneration

STEPS = 20


class Training:
    """Two replicas that add up the rows of batches, a checkpoint every five steps, and a program that counts."""

    other: Any

    def __init__(self, folder: Path, kind: str = "MirroredStrategy") -> None:
        self.cluster = wb.connect(replicas=2, replace=True)
        make: Any = wb.distribute
        for name in kind.split("."):
            make = getattr(make, name)
        self.strategy = make(["CPU:0", "CPU:1"])
        with self.strategy.scope():
            self.w = wb.Variable(0.0, name="w", aggregation="SUM")
            self.count = wb.Variable(0, synchronization="ON_READ", aggregation="SUM")
        data = Dataset.range(4 * STEPS).shuffle(4 * STEPS, seed=2).batch(4)
        self.batches = iter(self.strategy.distribute_dataset(data))
        self.checkpoint = wb.Checkpoint(w=self.w, count=self.count, batches=self.batches, steps=0, history=[])
        self.manager = wb.CheckpointManager(self.checkpoint, folder, 2)
        w, count = self.w, self.count

        def step(batch: Any) -> Any:
            # Not equal in another order.
            w.assign(w.read_value() * np.float32(0.25) + np.float32(batch.sum()))
            count.assign_add(np.int32(len(batch)))
            return count.read_value()

        self.step = step

    def kill_all(self) -> None:
        for worker in self.cluster.gang.workers.values():
            os.kill(worker.pid, signal.SIGKILL)

    def lose_all(self) -> None:
        """Kills all replicas, and waits until that is known; no call has met it yet."""
        self.kill_all()
        workers = self.cluster.gang.workers.values()
        until(lambda: all(worker.lost for worker in workers), "the end of both workers")

    def batch_after_checkpoint(self) -> Any:
        """Takes the five steps to the first checkpoint; the batch that comes then."""
        for _ in range(5):
            self.strategy.run(self.step, args=(next(self.batches),))
            self.done()
        return next(self.batches)

    def result(self) -> tuple[float, int, int, list[int]]:
        checkpoint = self.checkpoint
        return float(self.w), int(self.count), checkpoint.steps, checkpoint.history

    def done(self) -> None:
        checkpoint = self.checkpoint
        checkpoint.steps += 1
        checkpoint.history.append(checkpoint.steps)
        if checkpoint.steps % 5 == 0:
            self.manager.save()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    training = Training(tmp_path_factory.mktemp("undisturbed"))
    for batch in training.batches:
        training.strategy.run(training.step, args=(batch,))
        training.done()
    result = training.result()
    training.cluster.close()
    return result


def train(training: Training, at: int) -> None:
    """A loop of steps that are waited for; all replicas are killed once."""
    killed = False
    while (batch := next(training.batches, None)) is not None:
        if training.checkpoint.steps == at and not killed:
            killed = True
            training.kill_all()
        try:
            training.strategy.run(training.step, args=(batch,))
        except ReplicaLost:
            continue
        training.done()


def train_by_function(training: Training, at: int) -> None:
    """A loop of steps that are sent; all replicas are killed between two of them, and the loss is noticed there."""
    step = wb.function(training.step)
    lost = threading.Semaphore(0)
    training.cluster.event_listeners.append(lambda event: event.name == "replica_lost" and lost.release())
    killed = False
    for batch in training.batches:
        _ = training.strategy.run(step, args=(batch,)).values
        training.done()
        if training.checkpoint.steps == at and not killed:
            killed = True
            training.kill_all()
            assert lost.acquire(timeout=60)
            assert lost.acquire(timeout=60)


@pytest.mark.parametrize("kind", ["MirroredStrategy", "experimental.CentralStorageStrategy"])
@pytest.mark.parametrize("at", [5, 12])
def test_a_loop_ends_as_if_nothing_had_happened(tmp_path: Path, undisturbed: Any, kind: str, at: int) -> None:
    training = Training(tmp_path, kind)
    with training.cluster:
        training.cluster.checkpoint = training.manager
        with pytest.warns(
            RuntimeWarning,
            match=r"all 2 replicas .*were lost \(.*worker 1 .*\): everything in the checkpoint .*ckpt-",
        ):
            train(training, at)
        assert training.result() == undisturbed


def test_a_loop_over_a_function_goes_on_without_an_error(tmp_path: Path, undisturbed: Any) -> None:
    training = Training(tmp_path)
    with training.cluster:
        training.strategy.checkpoint = training.manager
        with pytest.warns(RuntimeWarning, match="training continues") as told:
            train_by_function(training, 12)
        assert {one.filename for one in told} == {__file__}
        assert training.result() == undisturbed


def test_a_batch_from_before_the_checkpoint_is_refused_once(tmp_path: Path) -> None:
    training = Training(tmp_path)
    with training.cluster:
        training.cluster.checkpoint = training.manager
        batch = training.batch_after_checkpoint()
        with pytest.raises(ReplicaLost, match="no replica survived"):
            training.strategy.run(lost_together, args=(batch,))
        with (
            pytest.warns(RuntimeWarning),
            pytest.raises(ReplicaLost, match="take the next batch of the iterator"),
        ):
            training.strategy.run(training.step, args=(batch,))
        assert int(training.count) == 20


def test_a_batch_is_refused_also_where_the_loss_is_noticed_as_its_step_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = Training(tmp_path)

    def late(value: Any, group: Any) -> Any:  # `run` prepares its arguments after it has checked for losses
        monkeypatch.undo()
        training.lose_all()
        return strategies.handed_over(value, group)

    with training.cluster:
        training.cluster.checkpoint = training.manager
        batch = training.batch_after_checkpoint()
        monkeypatch.setattr(strategies, "handed_over", late)
        with (
            pytest.warns(RuntimeWarning),
            pytest.raises(ReplicaLost, match="take the next batch of the iterator"),
        ):
            training.strategy.run(training.step, args=(batch,))
        assert int(training.count) == 20


def notice(training: Training, how: str) -> None:
    """Has another call than the next step notice that all replicas are gone."""
    calls: dict[str, Callable[[], Any]] = {
        "a variable": lambda: float(training.w),
        "another step": lambda: training.strategy.run(lambda: 1),
        "another iterator": lambda: next(
            iter(training.strategy.distribute_dataset(Dataset.range(4).batch(4)))
        ),
    }
    with pytest.warns(RuntimeWarning, match="training continues"):
        calls[how]()


@pytest.mark.parametrize("how", ["a variable", "another step", "another iterator"])
def test_a_batch_in_hand_is_refused_also_where_another_call_notices_the_loss(
    tmp_path: Path, undisturbed: Any, how: str
) -> None:
    training = Training(tmp_path)
    with training.cluster:
        training.cluster.checkpoint = training.manager
        batch = training.batch_after_checkpoint()
        training.lose_all()
        notice(training, how)
        with pytest.raises(ReplicaLost, match="take the next batch of the iterator"):
            training.strategy.run(training.step, args=(batch,))
        with pytest.raises(StaleGeneration, match="take the next batch of the iterator"):
            training.strategy.run(training.step, args=(batch,))
        train(training, -1)
        assert training.result() == undisturbed
        training.strategy.run(
            training.step, args=(batch,)
        )  # it has come again: a program may do so on purpose


def test_all_batches_in_hand_are_refused_after_two_losses(tmp_path: Path, undisturbed: Any) -> None:
    training = Training(tmp_path)
    with training.cluster:
        training.cluster.checkpoint = training.manager
        first, second = training.batch_after_checkpoint(), next(training.batches)
        training.lose_all()
        notice(training, "a variable")
        third = next(training.batches)
        training.lose_all()
        notice(training, "a variable")
        for batch in (second, first, third):
            with pytest.raises(ReplicaLost, match="take the next batch of the iterator"):
                training.strategy.run(training.step, args=(batch,))
        train(training, -1)
        assert training.result() == undisturbed


def test_batches_that_do_not_come_again_are_used(tmp_path: Path) -> None:
    training = Training(tmp_path)
    with training.cluster:
        training.cluster.checkpoint = training.manager
        early = next(training.batches)
        training.strategy.run(training.step, args=(early,))
        training.manager.save()
        other = iter(training.strategy.distribute_dataset(Dataset.range(8).batch(4)))  # not in the checkpoint
        batch = next(other)
        training.lose_all()
        notice(training, "a variable")
        training.strategy.run(training.step, args=(batch,))
        assert int(training.count) == 8
        training.strategy.run(training.step, args=(early,))
        training.strategy.run(training.step, args=(next(other),))
        assert int(training.count) == 16


def test_a_batch_in_hand_is_refused_where_another_strategy_went_back(tmp_path: Path) -> None:
    training = Training(tmp_path)
    other = wb.MirroredStrategy(["CPU:0", "CPU:1"])
    with other.scope():
        training.other = wb.Variable(0.0)  # in no checkpoint: its loss is noticed later
    with training.cluster:
        training.cluster.checkpoint = training.manager
        batch = training.batch_after_checkpoint()
        training.lose_all()
        notice(training, "a variable")
        batch = next(training.batches)
        with pytest.warns(RuntimeWarning, match="training continues"):
            other.run(lambda: 1)
        with pytest.raises(ReplicaLost, match="take the next batch of the iterator"):
            training.strategy.run(training.step, args=(batch,))
        assert int(training.count) == 20


@pytest.mark.parametrize("noticed", ["by another call", "by the step"])
def test_an_element_in_hand_of_an_iterator_in_the_notebook_is_refused(tmp_path: Path, noticed: str) -> None:
    training = Training(tmp_path)
    numbers = iter(Dataset.range(3))
    training.checkpoint.numbers = numbers
    with training.strategy.scope():
        training.checkpoint.total = total = wb.Variable(0, aggregation="ONLY_FIRST_REPLICA")

    def add(number: Any) -> None:
        total.assign_add(number)

    with training.cluster:
        training.cluster.checkpoint = training.manager
        training.strategy.run(add, args=(next(numbers) + 10,))
        training.manager.save()
        number = next(numbers)
        training.lose_all()
        if noticed == "by another call":
            notice(training, "another step")
        with (
            pytest.warns(RuntimeWarning) if noticed == "by the step" else contextlib.nullcontext(),
            pytest.raises(ReplicaLost, match="take the next element of the iterator"),
        ):
            training.strategy.run(add, args=(number,))
        assert int(total) == 10
        for number in numbers:
            training.strategy.run(add, args=(number,))
        assert int(total) == 13


def test_an_iterator_that_notices_the_loss_while_it_asks_for_elements_continues_from_the_checkpoint(
    tmp_path: Path, undisturbed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = Training(tmp_path)
    fetch = InputSource.fetch

    def late(source: InputSource, *arguments: Any) -> Any:
        if training.checkpoint.steps > 5:
            monkeypatch.undo()
            training.lose_all()
        return fetch(source, *arguments)

    monkeypatch.setattr(InputSource, "fetch", late)
    with training.cluster:
        training.cluster.checkpoint = training.manager
        with pytest.warns(RuntimeWarning, match="training continues"):
            train(training, -1)
        assert training.result() == undisturbed


def test_before_the_first_checkpoint_the_loss_is_told(tmp_path: Path) -> None:
    training = Training(tmp_path)
    with training.cluster:
        training.cluster.checkpoint = training.manager
        with pytest.raises(ReplicaLost, match="no replica survived"):
            training.strategy.run(lost_together)
        with pytest.raises(ReplicaLost, match=r"all 2 replicas .*checkpoint=manager"):
            training.strategy.run(lambda: 1)


def test_connecting_again_with_another_manager_keeps_the_cluster(tmp_path: Path) -> None:
    training = Training(tmp_path)
    with training.cluster:
        assert wb.connect(replicas=2, checkpoint=training.manager) is training.cluster
        assert training.cluster.checkpoint is training.manager
        assert training.strategy.restorer is training.manager
    assert training.cluster.checkpoint is None
