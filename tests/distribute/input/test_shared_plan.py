"""Arrays of a distributed dataset: processes of this machine map them, and get copies where they cannot."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import workbench as wb
from tests.two_replicas import cluster, strategy
from workbench.data import Dataset
from workbench.distribute.input import source
from workbench.distribute.input.read_step import SHARED, SharedPlace, SharedStep, share_pickled

__all__ = ["cluster", "strategy"]

pytestmark = pytest.mark.skipif(not SHARED, reason="this system has no memory without a name to share")
ROWS = 200_000
MAPPED = "memfd:workbench-input"


def maps_of(pid: int) -> int:
    return Path(f"/proc/{pid}/maps").read_text().count(MAPPED)


def dataset(*, mapped: bool) -> Dataset:
    data = Dataset.from_tensor_slices(np.arange(ROWS)).batch(ROWS // 4)
    return data.map(lambda x: x) if mapped else data


def rows_of(strategy: Any, distributed: Any) -> list[int]:
    return [int(x) for step in distributed for part in strategy.local_results(step) for x in part]


@pytest.mark.parametrize("mapped", [False, True], ids=["in each replica", "in an input process"])
def test_arrays_are_mapped_and_not_copied(strategy: Any, cluster: wb.Cluster, mapped: bool) -> None:
    workers = [worker.pid for worker in cluster.gang.workers.values()]
    before = [maps_of(pid) for pid in workers]
    distributed = strategy.distribute_dataset(dataset(mapped=mapped))
    if mapped:
        iterator = iter(distributed)
        next(iterator)
        children = [child for child in psutil.process_iter(["name"]) if child.name() == "workbench-input"]
        assert any(maps_of(child.pid) for child in children if child.is_running())
    else:
        assert [maps_of(pid) for pid in workers] == [count + 1 for count in before]
    assert rows_of(strategy, distributed) == list(range(ROWS))


@pytest.mark.parametrize("mapped", [False, True])
def test_small_arrays_travel_with_the_plan(strategy: Any, cluster: wb.Cluster, mapped: bool) -> None:
    before = [maps_of(worker.pid) for worker in cluster.gang.workers.values()]
    small = Dataset.from_tensor_slices(np.arange(8)).batch(4)
    distributed = strategy.distribute_dataset(small.map(lambda x: x) if mapped else small)
    assert [maps_of(worker.pid) for worker in cluster.gang.workers.values()] == before
    assert rows_of(strategy, distributed) == list(range(8))


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("wrong", ["no such path", "another file"])
def test_processes_that_cannot_reach_the_memory_get_copies(
    strategy: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wrong: str, mapped: bool
) -> None:
    (tmp_path / "there").touch()
    name = "there" if wrong == "another file" else "missing"
    place = SharedPlace(str(tmp_path / name), (0, 0), 0, 0)
    monkeypatch.setattr(SharedStep, "place", property(lambda self: place))
    distributed = strategy.distribute_dataset(dataset(mapped=mapped))
    assert rows_of(strategy, distributed) == list(range(ROWS))


@pytest.mark.parametrize("mapped", [False, True])
def test_a_worker_that_is_replaced_finds_the_arrays_again(
    strategy: Any, cluster: wb.Cluster, mapped: bool
) -> None:
    steps = iter(strategy.distribute_dataset(dataset(mapped=mapped)))
    first = next(steps)
    worker, _ = strategy.group.place(1)
    process = psutil.Process(worker.pid)
    os.kill(worker.pid, signal.SIGKILL)
    psutil.wait_procs([process], 30)
    with contextlib.suppress(wb.errors.ReplicaLost):  # unless the driver noticed it before
        strategy.run(lambda: None)
    rest = rows_of(strategy, steps)
    assert [int(x) for part in strategy.local_results(first) for x in part] + rest == list(range(ROWS))


def test_what_is_written_into_mapped_arrays_stays_in_the_process() -> None:
    data = np.arange(4)
    memory = share_pickled(*_pickled(data))
    place = memory.place
    opened = place.opened()
    assert opened is not None
    array = opened.mapped()
    array[0] = 9
    again = place.opened()
    assert again is not None
    assert again.mapped().tolist() == [0, 1, 2, 3]
    assert place._replace(identity=(0, 0)).opened() is None


def _pickled(value: Any) -> tuple[bytes, list[Any]]:
    import pickle

    buffers: list[pickle.PickleBuffer] = []
    return pickle.dumps(value, protocol=5, buffer_callback=buffers.append), [each.raw() for each in buffers]


def test_the_bound_is_where_sharing_takes_less_time() -> None:
    assert 8 * 8 < source._SHARED_BYTES < ROWS * 8
