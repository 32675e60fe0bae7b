"""Figures of the timing table."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.telemetry.simulation import MS, Call, Replicas
from workbench.telemetry.feed.feed import Feed
from workbench.telemetry.feed.timing_table import _quantile, bucket_bytes
from workbench.telemetry.snapshot import TableRow


def row_of(transfers_us: list[int]) -> TableRow:
    replicas = Replicas(["a", "a"])
    replicas.record(
        *(Call([k * MS, k * MS], k * MS + 1000 * us, step=k) for k, us in enumerate(transfers_us, start=1))
    )
    feed = Feed(now_ns=lambda: 0)
    for data in replicas.drain():
        feed.ingest(data)
    (row,) = feed.table()
    return row


@given(st.integers(1, 1 << 60))
def test_a_bucket_is_the_power_of_two_at_or_below_the_size(size: int) -> None:
    # Sizes above 2^53 may round up to the next power of two; nobody sends such arrays.
    expected = 1 << (size.bit_length() - 1)
    assert bucket_bytes(np.array([size]))[0] in ({expected} if size < 1 << 53 else {expected, 2 * expected})


def test_nothing_is_a_bucket_of_its_own() -> None:
    assert bucket_bytes(np.array([0, 1, 2])).tolist() == [0, 1, 2]


@given(st.lists(st.floats(0, 1e9), min_size=1), st.floats(0, 1))
def test_a_quantile_is_a_time_that_occurred(values: list[float], q: float) -> None:
    found = _quantile(np.array(values), q)
    assert found in values
    assert sum(value <= found for value in values) >= q * len(values) - 1e-6


def test_last_median_tail_and_variation() -> None:
    row = row_of([*range(1, 100), 50])
    assert (row.samples, row.last_us, row.p50_us, row.p99_us) == (100, 50, 50, 98)
    values = [*range(1, 100), 50]
    assert row.cv_percent == pytest.approx(100 * float(np.std(values) / np.mean(values)))


def test_the_sparkline_holds_the_newest_times() -> None:
    assert row_of(list(range(100, 200))).recent_us == tuple(range(168, 200))


def test_a_time_of_zero_divides_nothing() -> None:
    row = row_of([0])
    assert (row.cv_percent, row.algbw, row.wait_percent) == (0, None, 0)
