"""`wb.collectives.what_if`: predicted steps, and how they print."""

from __future__ import annotations

import pytest

import workbench as wb
from workbench.telemetry.cost_model import PATTERNS, LinkCost, predicted_step_us

LINK = LinkCost(latency_us=20.0, bandwidth=1.0)


def test_every_prediction_is_that_of_the_formulas() -> None:
    found = wb.collectives.what_if(LINK, size_bytes=4_000_000, compute_us=10_000, replicas=[1, 6, 10_000])

    assert [(each.replicas, each.pattern) for each in found.predictions] == [
        (replicas, pattern) for replicas in (1, 6, 10_000) for pattern in PATTERNS
    ]
    for each in found.predictions:
        expected = predicted_step_us(
            each.pattern, each.replicas, compute_us=10_000, size_bytes=4_000_000, link=LINK
        )
        assert each.step_us == expected
        assert each.efficiency_percent == pytest.approx(100 * 10_000 / expected)


def test_rings_are_for_large_arrays_and_trees_for_many_replicas() -> None:
    large = wb.collectives.what_if(LINK, size_bytes=400_000_000, compute_us=0, replicas=[64])
    small = wb.collectives.what_if(LINK, size_bytes=4, compute_us=0, replicas=[64])

    assert large.fastest(64).pattern == "ring"
    assert small.fastest(64).pattern == "tree"


def test_it_prints_a_line_per_number_of_replicas_up_to_ten_thousand() -> None:
    found = wb.collectives.what_if(LINK, size_bytes=4 << 20, compute_us=10_000)
    lines = repr(found).splitlines()

    assert lines[1].split() == ["replicas", "ring", "tree", "one", "fastest", "compute", "%"]
    assert lines[2].split()[0] == "1"
    assert lines[-1].split()[0] == "10000"
    assert max(map(len, lines)) <= 88
    assert len(found.to_pandas()) == 3 * (len(lines) - 2)
    assert "<script" not in found._repr_html_()


def test_what_was_not_predicted_is_said() -> None:
    found = wb.collectives.what_if(LINK, size_bytes=4, compute_us=0, replicas=[2, 4])

    with pytest.raises(KeyError, match="only for 2, 4"):
        found.fastest(3)
    with pytest.raises(ValueError, match="must not be negative"):
        wb.collectives.what_if(LINK, size_bytes=-1, compute_us=0)
