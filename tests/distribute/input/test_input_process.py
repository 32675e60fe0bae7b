"""The process that reads for a host: what it shows, what it hands over, and how it ends."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import workbench as wb
from tests.faults.conftest import gone, until
from tests.two_replicas import cluster, strategy
from workbench.data import Dataset, InputOptions
from workbench.distribute.input import programs
from workbench.runtime.process import fork_server

__all__ = ["cluster", "strategy"]

pytestmark = pytest.mark.skipif(not fork_server.AVAILABLE, reason="processes are forked on Linux only")
HERE = InputOptions(input_process=False)
BESIDE = InputOptions(input_process=True)


def _readers(strategy: Any, options: InputOptions | None = None) -> set[int]:
    """The processes in which a function of a stage runs."""
    data = Dataset.range(8).batch(4).map(lambda x: x * 0 + os.getpid())
    return {
        int(pid) for batch in strategy.distribute_dataset(data, options) for pid in strategy.gather(batch, 0)
    }


def _workers(strategy: Any) -> list[int]:
    return [strategy.group.place(rank)[0].pid for rank in range(2)]


def _input_process(strategy: Any) -> int:
    """The pid of replica 0's input process; 0 if it has none."""
    pids: list[int] = strategy.local_results(strategy.run(lambda: programs._process.pid))
    return pids[0]


def _same(x: Any) -> Any:
    return x


def test_functions_of_stages_run_in_one_process_that_is_no_replicas(strategy: Any) -> None:
    dataset = strategy.distribute_dataset(Dataset.range(8).batch(4).map(_same))
    (reader,) = _readers(strategy)

    assert reader not in _workers(strategy)
    assert dataset.read_by == "read by input processes"
    assert strategy.distribute_dataset(Dataset.range(8).batch(4)).read_by == "read by replicas"
    assert (
        strategy.distribute_dataset(Dataset.range(8).batch(4).map(_same), HERE).read_by
        == "read by first replicas"
    )


def test_rows_of_arrays_in_memory_are_gathered_by_each_replica(strategy: Any) -> None:
    dataset = strategy.distribute_dataset(Dataset.range(8).batch(4))

    assert dataset.read_by == "read by replicas"
    assert [strategy.gather(batch, 0).tolist() for batch in dataset] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert _input_process(strategy) == 0


def test_the_option_decides_where_functions_run(strategy: Any) -> None:
    assert _readers(strategy, HERE) == {_workers(strategy)[0]}
    assert _readers(strategy, BESIDE).isdisjoint(_workers(strategy))

    in_memory = strategy.distribute_dataset(Dataset.range(8).batch(4), BESIDE)
    assert in_memory.read_by == "read by input processes"
    assert [strategy.gather(batch, 0).tolist() for batch in in_memory] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_a_function_finds_what_it_finds_in_a_worker(strategy: Any) -> None:
    def seen(x: Any) -> Any:
        around = os.environ.get("HOME", ""), os.getcwd(), sys.path
        return np.array([repr(around)] * len(x))

    batch = next(iter(strategy.distribute_dataset(Dataset.range(2).batch(2).map(seen))))
    there = strategy.local_results(batch)[0][0]
    here = strategy.local_results(
        strategy.run(lambda: repr((os.environ.get("HOME", ""), os.getcwd(), sys.path)))
    )

    assert there == here[0].encode()


def test_what_functions_print_comes_to_the_cell(strategy: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def loud(x: Any) -> Any:
        print("rows", *x)
        print("to stderr", x[0], file=sys.stderr)
        return x

    for batch in strategy.distribute_dataset(Dataset.range(8).batch(4).map(loud)):
        strategy.run(_same, args=(batch,))
    shown = capsys.readouterr()

    assert [line for line in shown.out.splitlines() if line.startswith("[replica")] == [
        "[replica 0] rows 0 1 2 3",
        "[replica 0] rows 4 5 6 7",
    ]
    assert "[replica 0] to stderr 4" in shown.err.splitlines()


def test_more_may_be_printed_than_a_socket_holds(strategy: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def loud(x: Any) -> Any:
        print("\n".join(["x" * 999] * 2000))
        return x

    batches = list(strategy.distribute_dataset(Dataset.range(4).batch(4).map(loud)))

    assert len(batches) == 1
    assert capsys.readouterr().out.count("[replica 0] x") == 2000


def test_an_error_keeps_its_class_its_line_and_its_element(strategy: Any) -> None:
    def fails(x: Any) -> Any:
        if x[0] == 4:
            raise KeyError("no such row")  # the line of text
        return x

    batches = iter(strategy.distribute_dataset(Dataset.range(12).batch(4).map(fails)))
    next(batches)
    with pytest.raises(KeyError) as caught:
        next(batches)

    assert "# the line" in str(caught.value)
    assert "distribute/input/input_process.py" not in str(caught.value)
    assert strategy.gather(next(batches), 0).tolist() == [8, 9, 10, 11]


@pytest.mark.parametrize("options", [HERE, BESIDE])
def test_a_replica_may_write_into_its_batch(strategy: Any, options: InputOptions) -> None:
    def write(batch: Any) -> Any:
        before = batch.copy()
        batch += 100
        return before

    batches = list(strategy.distribute_dataset(Dataset.range(8).batch(4).map(_same), options))
    seen = [
        [strategy.gather(strategy.run(write, args=(batch,)), 0).tolist() for batch in batches]
        for _ in range(2)
    ]

    assert seen == [[[0, 1, 2, 3], [4, 5, 6, 7]], [[100, 101, 102, 103], [104, 105, 106, 107]]]


def test_elements_of_all_kinds_arrive(strategy: Any) -> None:
    def kinds(x: Any) -> Any:
        return {
            "numbers": x.astype(np.float32),
            "texts": np.array([f"row {i}" for i in x]),
            "bytes": np.array([b"row\0" * int(i) for i in x], object),
            "order": np.asfortranarray(np.outer(x, x)),
            "nothing": np.empty((len(x), 0)),
            "pair": (x > 1, x.astype(">i4")),
        }

    data = Dataset.range(4).batch(4).map(kinds)
    here = next(iter(strategy.distribute_dataset(data, HERE)))
    beside = next(iter(strategy.distribute_dataset(data, BESIDE)))

    for name in ("numbers", "texts", "bytes", "order", "nothing"):
        for a, b in zip(
            strategy.local_results(here[name]), strategy.local_results(beside[name]), strict=True
        ):
            assert a.dtype == b.dtype
            assert a.shape == b.shape
            np.testing.assert_array_equal(a, b)
    assert [part.tolist() for part in strategy.local_results(beside["pair"][0])] == [
        [False, False],
        [True, True],
    ]
    assert [part.tolist() for part in strategy.local_results(beside["pair"][1])] == [[0, 1], [2, 3]]


def test_batches_that_are_held_need_no_descriptors(strategy: Any) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    few = strategy.local_results(strategy.run(descriptors))
    batches = list(strategy.distribute_dataset(Dataset.range(400).batch(4).map(_same)))
    many = strategy.local_results(strategy.run(descriptors))

    assert len(batches) == 100
    assert max(after - before for before, after in zip(few, many, strict=True)) < 20


def test_the_next_steps_are_read_while_replicas_work(strategy: Any, tmp_path: Path) -> None:
    """The step waits until a later element was read, so it would never end if reading took the replica's time."""
    calls = tmp_path / "calls"

    def noted(x: Any) -> Any:
        with calls.open("a") as file:
            file.write(f"{int(x[0])}\n")
        return x

    def step(batch: Any, number: int) -> int:
        until(lambda: f"{number + 4}\n" in calls.read_text(), "the reading of a later step")
        return int(batch[0])

    batches = iter(strategy.distribute_dataset(Dataset.range(400).batch(4).map(noted)))
    for number in range(0, 80, 4):
        strategy.run(step, args=(next(batches), number))


def test_reading_ahead_stops_where_memory_is_bounded(strategy: Any, tmp_path: Path) -> None:
    calls = tmp_path / "calls"

    def large(x: Any) -> Any:
        with calls.open("a") as file:
            file.write("x")
        return np.zeros((2, 24 << 20), np.uint8)

    batches = iter(strategy.distribute_dataset(Dataset.range(40).batch(2).map(large).prefetch(16)))
    for _ in range(4):
        next(batches)

    # At most two more were requested, and 64 MiB are read ahead of them.
    assert len(calls.read_text()) <= 12


def test_the_process_ends_with_its_last_dataset(strategy: Any) -> None:
    dataset = strategy.distribute_dataset(Dataset.range(8).batch(4).map(_same))
    next(iter(dataset))
    pid = _input_process(strategy)
    assert psutil.Process(pid).name() == "workbench-input"
    del dataset

    def ended() -> bool:
        strategy.run(lambda: 0)
        # The next dataset's request tells replicas what they may forget.
        next(iter(strategy.distribute_dataset(Dataset.range(8).batch(4))))
        return gone(pid)

    until(ended, "the end of the input process")


def test_the_process_ends_with_its_strategy(cluster: wb.Cluster) -> None:
    strategy = wb.MirroredStrategy()
    dataset = strategy.distribute_dataset(Dataset.range(8).batch(4).map(_same))
    next(iter(dataset))
    pid = _input_process(strategy)
    assert not gone(pid)
    strategy.group.close()

    until(lambda: gone(pid), "the end of the input process")


def test_the_process_ends_with_its_worker(strategy: Any) -> None:
    batches = iter(strategy.distribute_dataset(Dataset.range(24).batch(4).map(_same)))
    rows = [strategy.gather(next(batches), 0).tolist()]
    before = _input_process(strategy)
    os.kill(_workers(strategy)[0], signal.SIGKILL)

    until(lambda: gone(before), "the end of the input process")
    rows += [strategy.gather(batch, 0).tolist() for batch in batches]
    assert rows == np.arange(24).reshape(-1, 4).tolist()
    assert _input_process(strategy) not in (0, before)
