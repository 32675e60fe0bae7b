"""Bandwidths of a sweep against the formulas of nccl-tests; each test connects a cluster of its own."""

from __future__ import annotations

import pytest

import workbench as wb
from workbench.errors import ClusterClosed

FACTORS = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "broadcast": lambda n: 1.0,
    "reduce": lambda n: 1.0,
}
"""As nccl-tests' PERFORMANCE.md has them, written down here once more."""


@pytest.mark.parametrize("replicas", [1, 2, 4, 8])
def test_bandwidths_in_the_table_are_those_of_the_formulas(replicas: int) -> None:
    with wb.connect(replicas=replicas, processes=False):
        found = wb.collectives.sweep(
            wb.MirroredStrategy(), tuple(FACTORS), smallest_bytes=1 << 20, largest_bytes=4 << 20, rounds=3
        )
    frame = found.to_pandas()
    printed = [line.split() for line in found.to_nccl_tests().splitlines() if not line.startswith("#")]

    assert set(frame["op"]) == set(FACTORS)
    assert len(frame) == len(printed) == 15
    for row, cells in zip(frame.itertuples(), printed, strict=True):
        assert int(cells[0]) == row.size_bytes
        assert row.size_bytes in (1 << 20, 1 << 21, 1 << 22)
        assert (row.n, row.samples) == (replicas, 3)
        if replicas == 1:
            assert cells[6:8] == ["–", "–"]
            continue
        algbw = row.size_bytes / (1000 * row.p50_us)
        assert row.algbw == pytest.approx(algbw)
        assert row.busbw == pytest.approx(algbw * FACTORS[row.op](replicas))
        assert float(cells[5]) == pytest.approx(row.p50_us, abs=0.006)
        assert float(cells[6]) == pytest.approx(algbw, abs=0.006)
        assert float(cells[7]) == pytest.approx(algbw * FACTORS[row.op](replicas), abs=0.006)


def test_a_closed_cluster_is_said() -> None:
    with wb.connect(replicas=1, processes=False):
        strategy = wb.MirroredStrategy()
    with pytest.raises(ClusterClosed, match="connect again"):
        wb.collectives.sweep(strategy)
