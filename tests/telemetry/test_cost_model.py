"""The α–β model: its formulas against the messages counted one by one, and its inverse."""

from __future__ import annotations

import doctest
import math

import pytest

from workbench.telemetry import cost_model
from workbench.telemetry.cost_model import (
    PATTERNS,
    LinkCost,
    Pattern,
    all_reduce_us,
    link_cost,
    predicted_step_us,
    weights,
)

LINK = LinkCost(latency_us=7.0, bandwidth=2.5)


def test_the_examples_hold() -> None:
    assert doctest.testmod(cost_model).failed == 0


@pytest.mark.parametrize("replicas", [2, 3, 4, 7, 8, 64, 1000, 10_000])
def test_times_are_those_of_the_messages_counted_one_by_one(replicas: int) -> None:
    size = 1_000_000.0

    def message(part: float) -> float:
        return LINK.latency_us + part / (1000 * LINK.bandwidth)

    ring = sum(message(size / replicas) for _ in range(replicas - 1)) * 2
    reached, rounds = 1, 0
    while reached < replicas:  # in a binomial tree, twice as many have it after each round
        reached, rounds = 2 * reached, rounds + 1
    one = sum(message(size) for _ in range(replicas - 1)) * 2

    assert all_reduce_us("ring", replicas, size, LINK) == pytest.approx(ring)
    assert all_reduce_us("tree", replicas, size, LINK) == pytest.approx(2 * rounds * message(size))
    assert all_reduce_us("one", replicas, size, LINK) == pytest.approx(one)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_one_replica_only_computes(pattern: Pattern) -> None:
    assert predicted_step_us(pattern, 1, compute_us=123.0, size_bytes=1 << 30, link=LINK) == 123.0


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("replicas", [2, 5, 8])
def test_the_cost_of_a_link_is_found_again_in_times_made_of_it(pattern: Pattern, replicas: int) -> None:
    latency = all_reduce_us(pattern, replicas, 0, LINK)
    per_byte_us = (all_reduce_us(pattern, replicas, 1e6, LINK) - latency) / 1e6
    found = link_cost(pattern, replicas, latency_us=latency, bandwidth=1 / (1000 * per_byte_us))

    assert found.latency_us == pytest.approx(LINK.latency_us)
    assert found.bandwidth == pytest.approx(LINK.bandwidth)


def test_the_tree_counts_rounds_exactly() -> None:
    for replicas in range(2, 10_001):
        assert weights("tree", replicas)[0] == 2 * math.ceil(math.log2(replicas))


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="one of ring, tree, one, got 'star'"):
        weights("star", 4)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least one replica, got 0"):
        weights("ring", 0)
    with pytest.raises(ValueError, match="at least two replicas"):
        link_cost("ring", 1, latency_us=1.0, bandwidth=1.0)
    with pytest.raises(ValueError, match="bandwidth > 0"):
        LinkCost(1.0, 0.0)
