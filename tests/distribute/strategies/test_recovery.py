"""After a worker was killed: variables are back, and reading goes on."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import workbench as wb
from tests.faults.conftest import kill, lost_together
from workbench.data import Dataset
from workbench.distribute import get_replica_context
from workbench.distribute.strategies.recovery import reseed_variables
from workbench.errors import FailedPreconditionError, ReplicaLost


def _die_on_replica_1() -> None:
    if get_replica_context().replica_id_in_sync_group == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    get_replica_context().all_reduce("sum", np.ones(1))


@pytest.mark.slow
def test_one_loss_is_told_once_however_many_steps_were_on_their_way(tmp_path: Path) -> None:
    with wb.connect(replicas=2):
        strategy = wb.MirroredStrategy(["CPU:0", "CPU:1"])

        @wb.function
        def step(number: int) -> int:
            if number == 1 and not (tmp_path / "died").exists():
                if get_replica_context().replica_id_in_sync_group == 1:
                    (tmp_path / "died").touch()
                _die_on_replica_1()
            return number

        strategy.run(step, args=(0,))
        results = [strategy.run(step, args=(number,)) for number in (1, 2, 3, 4)]
        with pytest.raises(ReplicaLost):
            _ = results[-1].values
        assert results[-1].values == (4, 4)  # they were accepted, so they run again
        assert strategy.run(lambda: 5).values == (5, 5)
        assert [result.values for result in results] == [(1, 1), (2, 2), (3, 3), (4, 4)]


@pytest.mark.slow
def test_an_accepted_step_that_ends_its_replica_each_time_is_given_up() -> None:
    with wb.connect(replicas=2):
        strategy = wb.MirroredStrategy(["CPU:0", "CPU:1"])

        @wb.function
        def step(number: int) -> int:
            if number == 1:
                _die_on_replica_1()
            return number

        strategy.run(step, args=(0,))
        result = strategy.run(step, args=(1,))
        told = 0
        for _ in range(8):
            try:
                assert strategy.run(lambda: 5).values == (5, 5)
            except ReplicaLost:
                told += 1
            else:
                break
        assert 1 < told < 8
        with pytest.raises(ReplicaLost):
            _ = result.values


@pytest.mark.slow
def test_a_replaced_replica_gets_its_variables_and_its_input_again() -> None:
    with wb.connect(replicas=2):
        strategy = wb.MirroredStrategy(["CPU:0", "CPU:1"])
        with strategy.scope():
            mirrored = wb.Variable([1.0, 2.0])
            variables = {
                aggregation: wb.Variable(0.0, synchronization="ON_READ", aggregation=aggregation)
                for aggregation in ("SUM", "MEAN", "ONLY_FIRST_REPLICA")
            }

        def count() -> None:
            for variable in variables.values():
                variable.assign_add(np.float32(get_replica_context().replica_id_in_sync_group + 1))

        strategy.run(count)
        mirrored.assign_add([1.0, 1.0])
        batches = iter(strategy.distribute_dataset(Dataset.range(80).map(lambda x: x).batch(4)))
        assert strategy.gather(next(batches), 0).tolist() == [0, 1, 2, 3]

        with pytest.raises(ReplicaLost):
            strategy.run(_die_on_replica_1)

        total = strategy.run(lambda: get_replica_context().all_reduce("sum", mirrored.read_value()))
        assert total.values[1].tolist() == [4, 6]
        assert [part.numpy().tolist() for part in mirrored.values] == [[2, 3], [2, 3]]
        # What replica 1 had counted is lost; the share of the others stays.
        assert {name: float(v.numpy()) for name, v in variables.items()} == {
            "SUM": 1,
            "MEAN": 1,
            "ONLY_FIRST_REPLICA": 1,
        }
        seen = [x for step in batches for x in strategy.gather(step, 0).tolist()]
        assert seen == list(range(80))[80 - len(seen) :]
        assert len(seen) >= 72


def test_without_a_survivor_the_loss_is_told(local: Any) -> None:
    with local.scope():
        v = wb.Variable(1.0, name="w")
    reseed_variables(local, [1], [0])
    assert [float(part) for part in v.values] == [1, 1]
    with pytest.raises(ReplicaLost, match=r"'w:0'.*variable\.assign"):
        reseed_variables(local, [0, 1], [])
    reseed_variables(local, [0, 1], [])  # reported once


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["MirroredStrategy", "experimental.CentralStorageStrategy"])
def test_when_all_replicas_are_lost_variables_can_be_given_values_again(kind: str) -> None:
    with wb.connect(replicas=2):
        make: Any = wb.distribute
        for name in kind.split("."):
            make = getattr(make, name)
        strategy = make(["CPU:0", "CPU:1"])
        with strategy.scope():
            v = wb.Variable([1.0, 2.0], name="w", aggregation="SUM")
            count = wb.Variable(8.0, synchronization="ON_READ", aggregation="SUM")
        with pytest.raises(ReplicaLost, match="no replica survived"):
            strategy.run(lost_together)
        with pytest.raises(ReplicaLost, match=r"all 2 replicas .* values of its variables \('w:0'"):
            strategy.run(lambda: 1)
        assert strategy.run(lambda: 1).values == (1, 1)
        with pytest.raises(FailedPreconditionError, match="does not hold the variable 'w:0'"):
            v.read_value()
        v.assign([3.0, 4.0])
        count.assign(6.0)
        assert strategy.run(lambda: v + 0).values[1].tolist() == [3, 4]
        assert float(count) == 6
        with strategy.scope():
            assert float(wb.Variable(5.0)) == 5


@pytest.mark.slow
def test_when_all_replicas_are_lost_before_they_begin_a_step_none_survives_it() -> None:
    with wb.connect(replicas=2) as cluster:
        strategy = wb.MirroredStrategy(["CPU:0", "CPU:1"])
        with strategy.scope():
            v = wb.Variable([1.0, 2.0], name="w")
        step = wb.function(lambda: v.read_value())
        strategy.run(step)
        workers = list(cluster.gang.workers.values())
        for worker in workers:
            kill(worker.pid, signal.SIGSTOP)
        result = strategy.run(step)
        for worker in workers:
            kill(worker.pid)
        with pytest.raises(ReplicaLost, match="no replica survived"):
            _ = result.values
        with pytest.raises(ReplicaLost, match=r"all 2 replicas .* values of its variables \('w:0'\)"):
            strategy.run(lambda: 1)


@pytest.mark.slow
def test_a_step_after_the_loss_of_all_replicas_tells_it() -> None:
    with wb.connect(replicas=2) as cluster:
        strategy = wb.MirroredStrategy(["CPU:0", "CPU:1"])
        with strategy.scope():
            v = wb.Variable([1.0, 2.0], name="w")
        lost = threading.Semaphore(0)
        cluster.event_listeners.append(lambda event: event.name == "replica_lost" and lost.release())
        for worker in list(cluster.gang.workers.values()):
            kill(worker.pid)
        for _ in range(2):
            assert lost.acquire(timeout=60)
        with pytest.raises(ReplicaLost, match=r"all 2 replicas .* values of its variables \('w:0'\)"):
            strategy.run(lambda: v.read_value())


@pytest.mark.slow
@pytest.mark.parametrize("lost", [0, 1], ids=["the holder", "a reader"])
def test_variables_in_central_storage_survive_a_lost_replica(lost: int) -> None:
    def die() -> None:
        v.assign_add(np.ones(2, np.float32))
        if get_replica_context().replica_id_in_sync_group == lost:
            os.kill(os.getpid(), signal.SIGKILL)
        get_replica_context().all_reduce("sum", np.ones(1))

    with wb.connect(replicas=2):
        strategy = wb.distribute.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"])
        with strategy.scope():
            v = wb.Variable([1.0, 2.0], aggregation="SUM")
        strategy.run(lambda: v.assign_add(np.ones(2, np.float32)))
        with pytest.raises(ReplicaLost):
            strategy.run(die)
        assert [part.tolist() for part in strategy.run(lambda: v + 0).values] == [[3, 4], [3, 4]]
        strategy.run(lambda: v.assign_sub(np.ones(2, np.float32)))
        assert v.numpy().tolist() == [1, 2]
        with strategy.scope():
            another = wb.Variable(5.0)
        assert strategy.run(lambda: another + v[0]).values == (6, 6)


def _lost_while(strategy: Any, rank: int, read: Any) -> Any:
    """The result of `read` while a replica that has to answer is lost."""
    worker, _ = strategy.group.place(rank)
    os.kill(worker.pid, signal.SIGSTOP)
    while psutil.Process(worker.pid).status() != psutil.STATUS_STOPPED:
        pass  # it might answer first
    killer = threading.Timer(0.2, os.kill, (worker.pid, signal.SIGKILL))
    killer.start()
    try:
        return read()
    finally:
        killer.join()


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_reading_a_variable_survives_the_loss_of_a_replica(rank: int) -> None:
    with wb.connect(replicas=2):
        strategy = wb.MirroredStrategy(["CPU:0", "CPU:1"])
        with strategy.scope():
            v = wb.Variable([1.0, 2.0])
            total = wb.Variable(0.0, synchronization="ON_READ", aggregation="SUM")
        strategy.run(lambda: (v.assign_add([1.0, 1.0]), total.assign_add(1.0)))
        assert _lost_while(strategy, rank, v.numpy).tolist() == [2, 3]
        component = strategy.local_results(v)[rank]
        assert _lost_while(strategy, rank, component.numpy).tolist() == [2, 3]
        both = _lost_while(strategy, rank, lambda: strategy.gather(v, axis=0))
        assert both.tolist() == [2, 3, 2, 3]
        strategy.run(lambda: total.assign(1.0))
        with pytest.raises(ReplicaLost, match=f"replica {rank} .* in 'read_variable'"):
            _lost_while(strategy, rank, total.numpy)  # what the replica had added is lost, which is reported
        assert float(total) == 1


@pytest.mark.slow
def test_reading_what_the_holder_keeps_survives_the_loss_of_the_holder() -> None:
    with wb.connect(replicas=2):
        strategy = wb.distribute.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"])
        with strategy.scope():
            v = wb.Variable([1.0, 2.0])
        assert _lost_while(strategy, strategy.holder, v.numpy).tolist() == [1, 2]
        assert strategy.run(lambda: v + 0).values[1].tolist() == [1, 2]
