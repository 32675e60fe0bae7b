"""Offsets between hosts: right within the bound they state, whatever the wall clock does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.telemetry.clocks import DRIFT, Anchor, OffsetEstimator, Ping, offset_of

delays = st.integers(0, 50_000_000)


def ping(at_ns: int, offset_ns: int, there_ns: int, busy_ns: int, back_ns: int) -> Ping:
    """An exchange with a host whose clock is `offset_ns` behind the driver's."""
    received = at_ns + there_ns - offset_ns
    return Ping(at_ns, received, received + busy_ns, at_ns + there_ns + busy_ns + back_ns)


@given(st.integers(-(10**15), 10**15), delays, delays, delays)
def test_the_true_offset_lies_within_the_bound(offset: int, there: int, busy: int, back: int) -> None:
    estimate = offset_of(ping(10**12, offset, there, busy, back))
    assert abs(estimate.offset_ns - offset) <= estimate.err_ns
    assert estimate.err_ns <= (there + back) / 2 + 2


@given(st.integers(-(10**12), 10**12), st.lists(st.tuples(delays, delays, delays), min_size=1, max_size=40))
def test_the_bound_holds_after_any_sequence_of_exchanges(
    offset: int, exchanges: list[tuple[int, int, int]]
) -> None:
    estimator, now = OffsetEstimator(), 0
    for there, busy, back in exchanges:
        now += 100_000_000
        estimate = estimator.add(ping(now, offset, there, busy, back))
        assert abs(estimate.offset_ns - offset) <= estimate.err_ns


def test_the_quickest_exchange_decides() -> None:
    estimator = OffsetEstimator()
    estimator.add(ping(0, 500, 9_000_000, 0, 1_000_000))
    estimator.add(ping(20_000_000, 500, 1000, 0, 1000))
    estimate = estimator.add(ping(40_000_000, 500, 1_000_000, 0, 9_000_000))
    assert estimate.offset_ns == pytest.approx(500, abs=1)
    assert estimate.err_ns < 10_000


def test_an_old_estimate_gets_worse_until_a_newer_one_is_better() -> None:
    estimator = OffsetEstimator()
    early = estimator.add(ping(0, 0, 1000, 0, 1000))
    hour = 3600 * 10**9
    late = estimator.estimate(hour)
    assert late is not None
    assert late.err_ns == pytest.approx(early.err_ns + hour * DRIFT, rel=0.01)
    fresh = estimator.add(ping(hour, 700, 50_000, 0, 50_000))
    assert fresh.err_ns < 60_000
    assert fresh.offset_ns == pytest.approx(700, abs=1)


def test_memory_is_bounded() -> None:
    estimator = OffsetEstimator(window=4)
    for at in range(100):
        estimator.add(ping(at * 1000, 0, 10, 0, 10))
    assert len(estimator._seen) == 4


def test_without_an_exchange_nothing_is_known() -> None:
    assert OffsetEstimator().estimate(0) is None


def test_an_exchange_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(ValueError, match="not a ping: -5 ns"):
        offset_of(Ping(10, 0, 0, 5))


def test_the_anchor_is_taken_where_both_clocks_were_read_closest_together() -> None:
    monotonic = iter([0, 1000, 2000, 2010, 3000, 4000, 5000, 6000, 7000, 8000])
    wall = iter([10**18 + k for k in (500, 2005, 3500, 5500, 7500)])
    anchor = Anchor.now(monotonic.__next__, wall.__next__)
    assert anchor == Anchor(2005, 10**18 + 2005)


def test_a_jump_of_the_wall_clock_moves_no_time() -> None:
    wall_ns = 10**18
    ticks = iter(range(0, 10**6, 100))
    anchor = Anchor.now(ticks.__next__, lambda: wall_ns)
    before = anchor.to_wall_ns(10**9)
    wall_ns -= 3600 * 10**9  # the clock is set back by an hour, and not read again
    assert anchor.to_wall_ns(10**9) == before
    assert anchor.to_wall_ns(2 * 10**9) - before == 10**9
