"""Row 29: an input process that ends costs no element, and nobody waits for ever for one that cannot go on."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.faults.conftest import kill, no_hang
from tests.two_replicas import cluster, strategy
from workbench.data import Dataset
from workbench.distribute.input import programs, remote_reader
from workbench.errors import UnavailableError
from workbench.runtime.process import fork_server

__all__ = ["cluster", "strategy"]

pytestmark = pytest.mark.skipif(not fork_server.AVAILABLE, reason="processes are forked on Linux only")
ROWS = 48
EXPECTED = np.arange(ROWS).reshape(-1, 4).tolist()


def _same(x: Any) -> Any:
    return x


def _input_process(strategy: Any) -> int:
    pids: list[int] = strategy.local_results(strategy.run(lambda: programs._process.pid))
    return pids[0]


def _rows(strategy: Any, batches: Any) -> list[list[int]]:
    return [strategy.gather(batch, 0).tolist() for batch in batches]


@pytest.mark.parametrize("taken", [1, 2, 7])
def test_row_29_an_input_process_that_is_killed_between_steps_costs_nothing(
    strategy: Any, taken: int
) -> None:
    batches = iter(strategy.distribute_dataset(Dataset.range(ROWS).batch(4).map(_same)))
    rows = _rows(strategy, [next(batches) for _ in range(taken)])
    before = _input_process(strategy)
    with no_hang():
        kill(before)
        rows += _rows(strategy, batches)

    assert rows == EXPECTED


@pytest.mark.parametrize("element", [0, 4, 20, 44])
def test_row_29_an_input_process_that_ends_while_it_reads_costs_nothing(
    strategy: Any, tmp_path: Path, element: int
) -> None:
    def dies_once(x: Any) -> Any:
        if x[0] == element and not (tmp_path / "died").exists():
            (tmp_path / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return x

    with no_hang():
        rows = _rows(strategy, strategy.distribute_dataset(Dataset.range(ROWS).batch(4).map(dies_once)))

    assert (tmp_path / "died").exists()
    assert rows == EXPECTED


def test_row_29_shuffled_epochs_stay_what_they_are(strategy: Any) -> None:
    dataset = strategy.distribute_dataset(Dataset.range(ROWS).shuffle(ROWS).batch(4).map(_same))
    batches = iter(dataset)
    rows = _rows(strategy, [next(batches) for _ in range(5)])
    kill(_input_process(strategy))
    rows += _rows(strategy, batches)

    assert sorted(np.concatenate(rows)) == list(range(ROWS))


def test_row_29_a_function_that_always_ends_the_process_is_told(strategy: Any) -> None:
    def ends(x: Any) -> Any:
        if x[0] == 8:
            os._exit(3)
        return x

    batches = iter(strategy.distribute_dataset(Dataset.range(ROWS).batch(4).map(ends)))
    with no_hang(), pytest.raises(UnavailableError, match=r"with exit code 3; .*input_process=False"):
        for _ in batches:
            pass
    assert _rows(strategy, strategy.distribute_dataset(Dataset.range(ROWS).batch(4).map(_same))) == EXPECTED


def test_row_29_an_input_process_that_is_stopped_for_long_is_replaced(strategy: Any) -> None:
    def impatient() -> None:
        remote_reader._CHECK_SECONDS = 0.01  # type: ignore[misc]

    batches = iter(strategy.distribute_dataset(Dataset.range(ROWS).batch(4).map(_same)))
    rows = _rows(strategy, [next(batches)])
    strategy.run(impatient)
    stopped = _input_process(strategy)
    kill(stopped, signal.SIGSTOP)
    with no_hang():
        rows += _rows(strategy, batches)

    assert rows == EXPECTED
    assert _input_process(strategy) != stopped
