"""Bandwidth over message size, and its fit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.telemetry.simulation import MS, Call, Replicas
from workbench.telemetry.feed.feed import Feed
from workbench.telemetry.feed.sweeps import Sweep, fitted, sweeps
from workbench.telemetry.snapshot import TableRow

SIZES = [1 << power for power in range(10, 24, 2)]


def table_of(
    times_us: dict[int, list[float]], *, op: str = "all_reduce", redop: str = "sum", n: int = 2
) -> tuple[TableRow, ...]:
    """The timing table of collectives that took so long, by their size."""
    replicas = Replicas(["a"] * n)
    start = 0
    for size, times in times_us.items():
        for us in times:
            start += 1000 * MS
            end = start + round(1000 * us)
            call = Call([start] * n, end, step=start // MS, nbytes=size, op=op, redop=redop)
            replicas.record(call)
    feed = Feed(now_ns=lambda: 0)
    for data in replicas.drain():
        feed.ingest(data)
    return feed.table()


def sweep_of(times_us: dict[int, list[float]], **options: int) -> Sweep:
    (found,) = sweeps(table_of(times_us, **options))  # type: ignore[arg-type]
    return found


@given(st.floats(0.5, 1e4), st.floats(1e-3, 100))
def test_latency_and_bandwidth_of_exact_times_are_found(latency_us: float, rate: float) -> None:
    sizes = [1 << power for power in range(4, 30, 2)]

    found = fitted(sizes, [latency_us + size / (1000 * rate) for size in sizes])

    assert found == (pytest.approx(latency_us, rel=1e-3, abs=1e-5), pytest.approx(rate, rel=1e-3, abs=1e-8))


@pytest.mark.parametrize("times_us", [[5.0, 5.0, 5.0, 5.0], [9.0, 7.0, 5.0, 3.0], [1.0, 0.0, 3.0, 4.0]])
def test_times_that_do_not_grow_with_size_have_no_fit(times_us: list[float]) -> None:
    assert fitted(SIZES[:4], times_us)[1] is None or fitted(SIZES[:4], times_us)[1] > 1e3


def test_two_sizes_are_too_few_for_a_fit() -> None:
    assert fitted([1024, 2048], [1.0, 2.0]) == (None, None)


def test_a_point_has_the_bandwidth_of_the_formulas() -> None:
    found = sweep_of({1 << 20: [1000.0] * 3, 1 << 22: [2000.0] * 3}, n=4)

    # all_reduce over n = 4: busbw = S / t × 2 × 3 / 4
    assert [point.p50_busbw for point in found.points] == pytest.approx([1.048576 * 1.5, 2.097152 * 1.5])
    assert (found.n, found.op, found.points[0].samples) == (4, "all_reduce", 3)


def test_the_best_bandwidth_comes_from_the_shortest_times() -> None:
    found = sweep_of({1 << 20: [float(us) for us in range(100, 200)], 1 << 22: [500.0]})
    point = found.points[0]

    assert point.p10_us < point.p50_us < point.p90_us
    assert point.p10_busbw is not None
    assert point.p50_busbw is not None
    assert point.p90_busbw is not None
    assert point.p10_busbw < point.p50_busbw < point.p90_busbw


def test_one_size_is_no_sweep() -> None:
    assert sweeps(table_of({1 << 20: [10.0]})) == ()


def test_each_reduction_is_a_sweep_of_its_own() -> None:
    largest = table_of({1 << 20: [10.0], 1 << 22: [20.0]}, redop="max")
    found = sweeps([*largest, *table_of({1 << 20: [30.0], 1 << 22: [40.0]})])

    assert {sweep.redop: [point.p50_us for point in sweep.points] for sweep in found} == {
        "max": [10.0, 20.0],
        "sum": [30.0, 40.0],
    }
    assert len({sweep.key for sweep in found}) == 2


def test_what_moves_no_bytes_has_no_bandwidth() -> None:
    assert sweeps(table_of({0: [10.0], 8: [10.0]}, op="barrier")) == ()
