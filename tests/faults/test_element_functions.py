"""Row 33: functions of a dataset that raise, hang, give ragged elements or change their input, here and on replicas."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import psutil
import pytest

from tests.faults.conftest import PATIENCE_SECONDS, no_hang
from tests.two_replicas import cluster, strategy
from workbench.data import Dataset, Options
from workbench.errors import InvalidArgumentError

__all__ = ["cluster", "strategy"]

Wrap = Callable[[Dataset], Any]


def _raises(x: Any) -> Any:
    if x == 5:
        raise LookupError("nothing at five")
    return x


def _ragged(x: Any) -> Any:
    return {"image": np.zeros((2, 3 if x == 6 else 2)), "label": x}


def _of_another_structure(x: Any) -> Any:
    return {"a": x} if x < 6 else {"b": x}


def _changes(row: Any) -> Any:
    row += 1
    return row


def _options(kind: str) -> Options:
    options = Options()
    options.threading.worker_kind = kind
    return options


def _notes(error: BaseException) -> str:
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


PARALLEL = [None, "THREADS", "PROCESSES"]


def _mapped(fn: Callable[..., Any], kind: str | None, *, count: int = 12) -> Dataset:
    numbers = Dataset.range(count)
    if kind is None:
        return numbers.map(fn, name="mine")
    return numbers.map(fn, num_parallel_calls=2, name="mine").with_options(_options(kind))


@pytest.mark.parametrize("kind", PARALLEL)
def test_row_33_a_function_that_raises_names_stage_element_and_its_own_line(kind: str | None) -> None:
    elements = iter(_mapped(_raises, kind))
    assert [int(next(elements)) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(LookupError, match="nothing at five") as told:
        next(elements)
    assert "in stage map(_raises) 'mine' of a dataset, at element 5" in _notes(told.value)
    lines = "".join(str(entry) for entry in told.traceback) + _notes(told.value)
    assert "_raises" in lines
    assert [int(x) for x in elements] == [6, 7, 8, 9, 10, 11], "one element is lost, and no more"


def test_row_33_on_replicas_a_function_that_raises_names_stage_element_and_its_own_line(
    strategy: Any,
) -> None:
    steps = iter(strategy.distribute_dataset(_mapped(_raises, None).batch(4)))
    with no_hang():
        assert [part.tolist() for part in strategy.local_results(next(steps))] == [[0, 1], [2, 3]]
        with pytest.raises(Exception, match="nothing at five") as told:
            next(steps)
        rest = [part.tolist() for step in steps for part in strategy.local_results(step)]
    said = _notes(told.value) + "".join(map(str, told.traceback)) + str(told.value.__cause__ or "")
    assert "in stage map(_raises) 'mine' of a dataset, at element 5" in said
    assert 'raise LookupError("nothing at five")' in said or "_raises" in said
    assert rest == [[6, 7], [8, 9], [10], [11]]


@pytest.mark.parametrize("kind", PARALLEL)
@pytest.mark.parametrize("batches", [1, 2])
def test_row_33_a_ragged_batch_names_component_and_element(kind: str | None, batches: int) -> None:
    batched = iter(_mapped(_ragged, kind).batch(4, num_parallel_calls=batches if batches > 1 else None))
    assert next(batched)["image"].shape == (4, 2, 2)
    with pytest.raises(InvalidArgumentError) as told:
        next(batched)
    assert str(told.value) == (
        "cannot batch elements of different shape or dtype: component ['image'] of element 2 of the batch is "
        "float64(2, 3), element 0 is float64(2, 2); use padded_batch, or make them equal with map"
    )
    assert next(batched)["label"].tolist() == [8, 9, 10, 11]


def test_row_33_a_ragged_batch_of_blocks_names_component_and_element() -> None:
    def blocks(x: Any) -> Any:
        return np.zeros((3, 2)), np.zeros((3, 5 if x == 1 else 4), np.int32)

    rows = Dataset.range(2).map(blocks).unbatch().batch(4)
    with pytest.raises(
        InvalidArgumentError, match=r"component \[1\] of element 3 of the batch is int32\(5,\)"
    ):
        next(iter(rows))


def test_row_33_on_replicas_a_ragged_batch_names_component_and_element(strategy: Any) -> None:
    steps = iter(strategy.distribute_dataset(_mapped(_ragged, None).batch(4)))
    with no_hang():
        next(steps)
        with pytest.raises(Exception, match=r"component \['image'\] of element \d of the batch is float64"):
            next(steps)


@pytest.mark.parametrize("kind", PARALLEL)
def test_row_33_components_never_get_under_each_others_names(kind: str | None) -> None:
    batched = iter(_mapped(_of_another_structure, kind).batch(4))
    assert next(batched)["a"].tolist() == [0, 1, 2, 3]
    with pytest.raises(
        InvalidArgumentError,
        match=r"element 2 of the batch is components \['b'\], element 0 is components \['a'\]",
    ):
        next(batched)
    assert next(batched)["b"].tolist() == [8, 9, 10, 11]


def _hangs_from_two(x: Any) -> Any:
    while x >= 2:
        pass
    return os.getpid()


def test_row_33_dropping_an_iterator_ends_processes_in_a_function_that_hangs() -> None:
    elements = iter(_mapped(_hangs_from_two, "PROCESSES").prefetch(1))
    with no_hang():
        calling = {psutil.Process(int(next(elements))) for _ in range(2)}
        del elements
        _, left = psutil.wait_procs(calling, PATIENCE_SECONDS)
    assert left == []


def test_row_33_dropping_an_iterator_does_not_wait_for_threads_in_a_function_that_hangs() -> None:
    over, hangs = threading.Event(), threading.Event()

    def hanging(x: Any) -> Any:
        if x >= 2:
            hangs.set()
            over.wait(2 * PATIENCE_SECONDS)
        return x

    elements = iter(_mapped(hanging, "THREADS").prefetch(1))
    try:
        with no_hang():
            assert int(next(elements)) == 0
            assert hangs.wait(PATIENCE_SECONDS)
            del elements
    finally:
        over.set()


def test_row_33_an_interrupt_ends_a_function_that_hangs() -> None:
    over = threading.Event()

    def interrupted(x: Any) -> Any:
        if x == 3:
            os.kill(os.getpid(), signal.SIGINT)
            over.wait(PATIENCE_SECONDS * 2)
        return x

    elements = iter(_mapped(interrupted, None))
    assert [int(next(elements)) for _ in range(3)] == [0, 1, 2]
    with no_hang(), pytest.raises(KeyboardInterrupt):
        next(elements)


@pytest.mark.parametrize("kind", [None, "THREADS"])
def test_row_33_a_function_cannot_change_what_the_dataset_holds(kind: str | None) -> None:
    data = np.arange(6).reshape(3, 2)
    rows = Dataset.from_tensor_slices(data)
    calls = None if kind is None else 2
    with pytest.raises(ValueError, match="read-only") as told:
        next(iter(rows.map(_changes, num_parallel_calls=calls)))
    assert "in stage map(_changes) of a dataset, at element 0" in _notes(told.value)
    assert data.tolist() == [[0, 1], [2, 3], [4, 5]]
