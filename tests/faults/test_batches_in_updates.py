"""Batches that the notebook updates variables with: after a loss, each counts once, as in `strategy.run`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.faults.test_lost_with_checkpoint import Training, notice
from workbench.data import Dataset
from workbench.errors import ReplicaLost
from workbench.runtime.driver.group import Group
from workbench.runtime.replica.env import current_env

Take = Callable[[Training, Any], object]
KINDS = ["MirroredStrategy", "experimental.CentralStorageStrategy"]


def totals(component: Any, batch: Any) -> None:
    component.assign_add(np.float32(batch.sum()))


def by_update(training: Training, batch: Any) -> None:
    training.strategy.extended.update(training.w, totals, args=(batch,))


def by_update_of_devices(training: Training, batch: Any) -> None:
    training.strategy.extended.update_non_slot(None, lambda part: float(part.sum()), kwargs={"part": batch})


def by_assignment(training: Training, batch: Any) -> None:
    training.rows.assign_add(batch)


TAKES = {"update": by_update, "update_non_slot": by_update_of_devices, "assign_add": by_assignment}


class Rows(Training):
    """With a variable of the shape of a replica's part of a batch."""

    def __init__(self, folder: Path, kind: str) -> None:
        super().__init__(folder, kind)
        with self.strategy.scope():
            self.rows = wb.Variable(np.zeros(2, np.int64), name="rows", aggregation="SUM")
        self.checkpoint.rows = self.rows
        self.cluster.checkpoint = self.manager


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("take", TAKES)
def test_a_batch_in_hand_is_refused_after_the_loss_of_all_replicas(
    tmp_path: Path, kind: str, take: str
) -> None:
    training = Rows(tmp_path, kind)
    with training.cluster:
        batch = training.batch_after_checkpoint()
        training.lose_all()
        notice(training, "a variable")
        before = training.result(), training.rows.numpy().tolist()
        with pytest.raises(ReplicaLost, match="take the next batch of the iterator"):
            TAKES[take](training, batch)
        assert (training.result(), training.rows.numpy().tolist()) == before
        TAKES[take](training, next(training.batches))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("take", ["update", "assign_add"])
def test_a_batch_is_refused_where_the_loss_is_noticed_as_the_update_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, take: str
) -> None:
    training = Rows(tmp_path, kind)
    run = Group.run

    def late(group: Group, *args: Any, **options: Any) -> Any:
        monkeypatch.undo()
        training.lose_all()
        return run(group, *args, **options)

    with training.cluster:
        batch = training.batch_after_checkpoint()
        before = training.result(), training.rows.numpy().tolist()
        _ = batch.values  # so that nothing is asked of the replicas but the update
        monkeypatch.setattr(Group, "run", late)
        with (
            pytest.warns(RuntimeWarning, match="training continues"),
            pytest.raises(ReplicaLost, match="take the next batch of the iterator"),
        ):
            TAKES[take](training, batch)
        assert (training.result(), training.rows.numpy().tolist()) == before


@pytest.mark.parametrize("alone", [True, False])
def test_an_element_of_an_iterator_in_the_notebook_is_refused(tmp_path: Path, alone: bool) -> None:
    training = Rows(tmp_path, "MirroredStrategy")
    numbers = iter(Dataset.range(3))
    training.checkpoint.numbers = numbers
    with training.strategy.scope():
        total = training.checkpoint.total = wb.Variable(np.int64(0), name="total")
    with training.cluster:
        training.manager.save()
        number = next(numbers) + 10
        training.lose_all()
        notice(training, "a variable")
        total.assign(np.int64(5))  # replaces the value: nothing counts twice
        added = training.strategy.local_results(total)[0] if alone else total
        with pytest.raises(ReplicaLost, match="take the next element of the iterator"):
            added.assign_add(number)
        assert int(total) == 5


def test_a_batch_whose_update_was_lost_with_a_replica_is_given_again(tmp_path: Path) -> None:
    training = Training(tmp_path)
    fatal = {0}

    def deadly(component: Any, batch: Any, kill: bool) -> None:
        env = current_env()
        assert env is not None
        if kill and env.rank == 1:
            os.kill(os.getpid(), 9)
        component.assign_add(np.float32(batch.sum()))

    with training.cluster, training.strategy.scope():
        total = wb.Variable(0.0, aggregation="SUM", synchronization="ON_READ")
        times = 0
        while (batch := next(training.batches, None)) is not None:
            kill = times in fatal
            times += 1
            try:
                training.strategy.extended.update(total, deadly, args=(batch, kill))
            except ReplicaLost:
                assert kill
        assert float(total) == sum(range(80))
        assert times == 21
