"""Whether inputs of collectives are finite is recorded: exactly, or not at all where there was no time to read them."""

from __future__ import annotations

from contextlib import closing

import ml_dtypes
import numpy as np
import pytest

from tests.communicators.test_recording import recorded
from workbench.communicators import Reduction
from workbench.communicators.communicator import Communicator
from workbench.communicators.core import finiteness
from workbench.communicators.core.finiteness import FINITE, NOT_FINITE, NOT_READ, Finiteness, is_finite
from workbench.communicators.core.position import Position
from workbench.communicators.core.replica_communicator import ReplicaCommunicator
from workbench.communicators.core.roll_call import RollCall
from workbench.communicators.threads.solo import SoloLink

LARGE = 1 << 18


@pytest.mark.parametrize("size", [1, 7, 4096, 100_003])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", ml_dtypes.bfloat16])
def test_one_element_that_is_not_finite_is_found_wherever_it_is(size: int, dtype: str) -> None:
    array = np.linspace(-3, 3, size).astype(dtype)
    assert is_finite(array)
    for place in {0, size // 2, size - 1}:
        for value in (np.nan, np.inf, -np.inf):
            wrong = array.copy()
            wrong[place] = value
            assert not is_finite(wrong)


def test_finite_elements_whose_squares_overflow_are_finite() -> None:
    assert is_finite(np.full(5000, 3e38, np.float32))
    assert is_finite(np.full((70, 70), -1e300)[:, ::2])


def test_each_replica_records_what_it_gave_itself() -> None:
    def body(c: Communicator) -> None:
        mine = np.ones(3, np.float32) if c.rank == 0 else np.array([1, np.nan, 2], np.float32)
        c.all_reduce([mine], Reduction("sum"))
        c.all_reduce([np.ones(3, np.int64), np.full(2, np.inf if c.rank else 1.0)], Reduction("mean"))
        c.all_reduce([mine], Reduction("min"))
        c.reduce_scatter(mine, "sum")
        c.all_gather(mine, 0)
        c.broadcast(np.array([np.nan]) if c.rank == 0 else None, 0)
        c.barrier()

    first, second = recorded(2, body)
    assert [record.inputs for record in first] == [*[FINITE] * 5, NOT_FINITE, FINITE]
    assert [record.inputs for record in second] == [*[NOT_FINITE] * 5, FINITE, FINITE]


def test_what_there_is_no_time_to_read_is_recorded_as_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finiteness, "FIRST_NS", 0)
    monkeypatch.setattr(finiteness, "SHARE", 1 << 62)  # however long this machine takes to reach it

    def body(c: Communicator) -> None:
        c.all_reduce([np.full(LARGE, np.nan, np.float32)], Reduction("sum"))
        c.all_reduce([np.float32(np.nan)], Reduction("sum"))

    for mine in recorded(2, body):
        assert [record.inputs for record in mine] == [NOT_READ, NOT_FINITE]


def test_reading_large_arrays_takes_a_hundredth_of_the_time_in_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter(range(0, 10**12, 20_000))  # reading takes 20 µs
    monkeypatch.setattr(finiteness, "_clock", lambda: next(clock))
    monkeypatch.setattr(finiteness, "FIRST_NS", 0)
    array, looker, now, read = np.zeros(LARGE, np.float32), Finiteness(), 0, 0
    for _ in range(2000):
        now += 100_000  # a step takes a tenth of a millisecond, so every twentieth is read
        looker.found, looker.entered_ns = FINITE, now
        looker.look(array)
        read += looker.found == FINITE
        now += 5_000_000  # time in collectives does not count
        looker.inside_ns += 5_000_000
    assert 90 <= read <= 101


def test_small_collectives_before_a_large_one_leave_its_time_for_reading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter(range(0, 10**12, 20_000))
    monkeypatch.setattr(finiteness, "_clock", lambda: next(clock))
    monkeypatch.setattr(finiteness, "FIRST_NS", 0)
    looker = Finiteness()
    looker.entered_ns += 50_000_000
    looker.look(np.zeros(3, np.float32))
    looker.inside_ns += 1000
    looker.entered_ns += 2000
    looker.look(np.zeros(LARGE, np.float32))
    assert looker.found == FINITE


def test_arrays_of_whole_numbers_are_finite_unread() -> None:
    looker = Finiteness()
    looker.look(np.zeros(1 << 30, np.bool_))
    assert (looker.found, looker.spent_ns) == (FINITE, 0)


def test_nothing_is_read_where_nothing_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(self: Finiteness, array: np.ndarray) -> None:
        raise AssertionError("read for nobody")

    monkeypatch.setattr(Finiteness, "look", never)
    position = Position(0)
    position.look(np.full(3, np.nan))
    assert position.inputs is None
    with closing(ReplicaCommunicator(0, 1, SoloLink(), roll_call=RollCall(1, generation=0))) as alone:
        alone.begin(0)
        (total,) = alone.all_reduce([np.full(3, np.nan)], Reduction("sum"))
        alone.finish()
    assert np.isnan(total).all()
