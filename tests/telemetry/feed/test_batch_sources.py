"""Batches are told apart by number, in bounded memory, also when some are late or lost."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from workbench.telemetry.feed.batch_sources import _MAX_AHEAD, Source


@given(st.lists(st.integers(0, 40), max_size=100))
def test_each_batch_is_new_once(numbers: list[int]) -> None:
    source, seen = Source(), set()
    for number in numbers:
        assert source.is_new(number) == (number not in seen)
        seen.add(number)


def test_lost_batches_do_not_fill_the_memory() -> None:
    source = Source()
    for number in range(0, 10_000, 2):  # every other one never comes
        assert source.is_new(number)
    assert len(source._ahead) <= _MAX_AHEAD
    assert not source.is_new(9_998)
    assert not source.is_new(0)


def test_a_feed_that_joins_late_takes_what_comes_from_then_on() -> None:
    source = Source()
    numbers = list(range(5000, 5040))
    random.Random(3).shuffle(numbers)
    assert all(source.is_new(number) for number in numbers)
    assert not any(source.is_new(number) for number in numbers)
