"""The join itself, on rows."""

from __future__ import annotations

import numpy as np

from workbench.telemetry.feed.history import RECORD
from workbench.telemetry.feed.join import Joined, join

OK, ENTERED, TIMEOUT = 1, 2, 3


def record(
    replica: int, *, seq: int = 0, n: int = 2, state: int = OK, enter: int = 100, end: int = 900
) -> np.ndarray:
    row = np.zeros(1, RECORD)
    for name, value in {
        "replica": replica,
        "seq": seq,
        "n": n,
        "state": state,
        "t_enter_ns": enter,
        "t_end_ns": end,
        "bytes": 64 + replica,
    }.items():
        row[name] = value
    return row


def joined(*rows: np.ndarray) -> Joined:
    together = np.concatenate(rows) if rows else np.zeros(0, RECORD)
    return join(together, entered=ENTERED, ok=OK, version=7)


def test_nothing_joins_to_nothing() -> None:
    result = joined()
    assert len(result.collectives) == len(result.records) == len(result.pending) == 0


def test_skew_wait_and_size_of_one_collective() -> None:
    result = joined(record(1, enter=300), record(0, enter=100, end=950))
    (row,) = result.collectives
    assert (row["enter_ns"], row["ready_ns"], row["end_ns"]) == (100, 300, 950)
    assert (row["wait_ns"], row["spent_ns"]) == (200, 850 + 600)
    assert (row["late_replica"], row["bytes"], row["version"]) == (1, 65, 7)
    assert result.records["late_ns"].tolist() == [0, 200]
    assert result.records["ready_ns"].tolist() == [300, 300]


def test_of_replicas_that_came_together_the_first_is_named() -> None:
    (row,) = joined(record(1, enter=100), record(0, enter=100)).collectives
    assert row["late_replica"] == 0


def test_complete_and_incomplete_collectives_are_kept_apart() -> None:
    result = joined(record(0, seq=0), record(0, seq=1), record(1, seq=1), record(1, seq=2))
    assert result.collectives["seq"].tolist() == [1]
    assert result.pending[["seq", "replica"]].tolist() == [(0, 0), (2, 1)]


def test_a_waiting_replica_keeps_a_collective_pending_until_its_final_record() -> None:
    waiting = record(1, state=ENTERED, end=0)
    assert len(joined(record(0), waiting).pending) == 2
    for rows in ((record(0), waiting, record(1)), (record(1), record(0), waiting)):
        result = joined(*rows)
        assert len(result.collectives) == 1
        assert len(result.pending) == 0
        assert result.records["state"].tolist() == [OK, OK]


def test_the_same_record_twice_is_one() -> None:
    assert joined(record(0), record(0)).pending["replica"].tolist() == [0]


def test_one_failure_marks_the_collective() -> None:
    (row,) = joined(record(0), record(1, state=TIMEOUT)).collectives
    assert row["state"] == TIMEOUT
    (row,) = joined(record(0), record(1)).collectives
    assert row["state"] == OK


def test_a_result_before_the_entry_by_clock_error_costs_no_negative_time() -> None:
    (row,) = joined(record(0, enter=500, end=400), record(1, enter=100, end=600)).collectives
    assert row["spent_ns"] == 500
