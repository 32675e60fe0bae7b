"""A rate is that of the last seconds, and of the time since it began before these have passed."""

from __future__ import annotations

from workbench.distribute.servers.recent_rate import RecentRate


def test_what_was_counted_ages_out() -> None:
    now = 100.0
    rate = RecentRate(lambda: now)
    for _ in range(100):
        now += 0.01
        rate.add(3)

    assert round(rate.per_second) == 300  # in the first second
    now = 102.0
    assert round(rate.per_second) == 150
    now = 105.0
    assert round(rate.per_second) == 60
    now = 107.0
    assert rate.per_second == 0


def test_what_was_just_begun_has_no_huge_rate() -> None:
    rate = RecentRate(lambda: 0.0)
    rate.add()

    assert rate.per_second == 4
