"""`wb.collectives.sweep`: the table of nccl-tests, its formulas, the records behind it."""

from __future__ import annotations

import doctest
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.errors import InvalidArgumentError
from workbench.telemetry.feed.sweeps import Baseline, Sweep, SweepPoint, fitted
from workbench.ui.collectives import sweep as sweep_module
from workbench.ui.collectives.sweep_baseline import comparison_text


def test_the_examples_hold() -> None:
    assert doctest.testmod(sweep_module, extraglobs={"wb": wb}).failed == 0


def test_sizes_go_from_the_first_to_the_last_by_the_factor(strategy: wb.MirroredStrategy) -> None:
    found = wb.collectives.sweep(strategy, smallest_bytes=8, largest_bytes=1 << 13, factor=4, rounds=4)

    assert [row.size_bytes for row in found.rows] == [8, 32, 128, 512, 2048, 8192]
    assert {row.samples for row in found.rows} == {4}
    assert {(row.op, row.redop, row.dtype, row.n) for row in found.rows} == {
        ("all_reduce", "sum", "float32", 2)
    }
    assert max(map(len, repr(found).splitlines())) <= 88


def test_the_fit_is_that_of_the_medians(strategy: wb.MirroredStrategy) -> None:
    found = wb.collectives.sweep(strategy, largest_bytes=4 << 20, factor=4, rounds=5)
    fit = found.fit("all_reduce")

    assert (fit.latency_us, fit.bandwidth) == fitted(
        [row.size_bytes for row in found.rows], [float(np.quantile(row.recent_us, 0.5)) for row in found.rows]
    )
    assert fit.limit is not None
    if fit.bandwidth is not None and fit.latency_us is not None:
        link = found.link("ring")
        assert link.latency_us == pytest.approx(fit.latency_us / 2)
        assert link.bandwidth == pytest.approx(fit.bandwidth)


def test_the_records_say_which_algorithm_ran(strategy: wb.MirroredStrategy) -> None:
    direct, ring, one = (
        wb.collectives.sweep(strategy, largest_bytes=1 << 10, factor=8, rounds=2, algorithm=algorithm)
        for algorithm in ("auto", "ring", "one_device")
    )

    assert set(direct.to_arrow()["algorithm"].to_pylist()) == {"direct"}
    assert set(ring.to_arrow()["algorithm"].to_pylist()) == {"scattered"}
    assert set(one.to_arrow()["algorithm"].to_pylist()) == {"one_device"}
    assert set(one.to_arrow()["replica"].to_pylist()) == {0, 1}


def test_a_sweep_is_not_among_the_users_collectives(cluster: wb.Cluster) -> None:
    own = wb.MirroredStrategy()
    wb.collectives.sweep(own, largest_bytes=64, rounds=2)

    assert wb.collectives(own).rows == ()
    assert {"sweep", "warm-up"} <= {row.purpose for row in wb.collectives(own, internal=True).rows}


def test_each_operation_is_warm_before_its_first_size(cluster: wb.Cluster) -> None:
    own = wb.MirroredStrategy()
    wb.collectives.sweep(own, ["all_reduce", "broadcast"], largest_bytes=16, rounds=2)
    records = cluster.feed.to_arrow().to_pylist()
    of_replica = [r for r in records if r["group"] == own.group.name and r["replica"] == 0]

    for op in ("all_reduce", "broadcast"):
        purposes = [r["purpose"] for r in sorted(of_replica, key=lambda r: r["t_enter_ns"]) if r["op"] == op]
        swept = purposes[purposes.index("warm-up") :]  # limits were measured before
        first = swept.index("sweep")
        assert first >= 40
        assert swept[first:] == ["sweep", "sweep", "warm-up", "warm-up", "sweep", "sweep"]


def test_two_sweeps_do_not_mix(strategy: wb.MirroredStrategy) -> None:
    wb.collectives.sweep(strategy, largest_bytes=64, rounds=3)
    second = wb.collectives.sweep(strategy, largest_bytes=16, rounds=2)

    assert [(row.size_bytes, row.samples) for row in second.rows] == [(8, 2), (16, 2)]


def test_html_has_the_fit_and_no_script(strategy: wb.MirroredStrategy, safe_text) -> None:
    found = wb.collectives.sweep(strategy, "broadcast", largest_bytes=1 << 10, factor=4, rounds=2)
    drawn = safe_text(found._repr_html_())

    assert "broadcast" in drawn.text
    assert "script" not in drawn.tags


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"op": "all_to_all"}, "op must be one of all_reduce, .* got 'all_to_all'"),
        ({"smallest_bytes": 0}, "sizes must grow from above 0"),
        ({"smallest_bytes": 64, "largest_bytes": 8}, "smallest_bytes=64, largest_bytes=8"),
        ({"factor": 1}, "factor must be a whole number of at least 2, got 1"),
        ({"rounds": 0}, "rounds must be 1 to 1000, got 0"),
        ({"dtype": "float33"}, "dtype must name an element type such as 'float32', got 'float33'"),
        ({"algorithm": "star"}, "algorithm must be one of auto, .* got 'star'"),
        ({"op": "reduce", "algorithm": "ring"}, "only all_reduce has a choice of algorithms, not reduce"),
    ],
)
def test_an_argument_that_makes_no_sense_is_refused(
    strategy: wb.MirroredStrategy, wrong: dict[str, object], text: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        wb.collectives.sweep(strategy, **wrong)  # type: ignore[arg-type]


def test_what_has_no_replicas_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"write wb\.collectives\.sweep\(strategy\)"):
        wb.collectives.sweep(wb.distribute.get_strategy())


def test_there_is_no_fit_over_one_replica(cluster: wb.Cluster) -> None:
    found = wb.collectives.sweep(wb.OneDeviceStrategy("CPU:0"), largest_bytes=64, rounds=2)

    assert found.sweeps == ()
    with pytest.raises(KeyError, match="two replicas or more"):
        found.link()


def test_a_sweep_that_was_kept_is_what_a_later_one_is_compared_with(
    strategy: wb.MirroredStrategy, tmp_path: Path, safe_text
) -> None:
    earlier = wb.collectives.sweep(strategy, largest_bytes=1 << 10, factor=4, rounds=3)
    path = earlier.save(tmp_path / "monday.json")

    for baseline, name in ((str(path), "monday"), (earlier, "the earlier sweep")):
        found = wb.collectives.sweep(strategy, largest_bytes=1 << 12, factor=4, rounds=3, baseline=baseline)
        (own,) = found.sweeps
        assert own.baseline is not None
        assert (own.baseline.name, own.baseline.n) == (name, 2)
        assert own.baseline.points == earlier.sweeps[0].points
        assert f"as fast as {name} (" in repr(found)
        assert "over 4 sizes)" in repr(found)
        assert f"as fast as {name}" in safe_text(found._repr_html_()).text
        assert max(map(len, repr(found).splitlines())) <= 88
    assert earlier.sweeps[0].baseline is None


def test_the_comparison_is_the_geometric_mean_of_median_times() -> None:
    def point(size_bytes: int, us: float) -> SweepPoint:
        return SweepPoint(size_bytes, 5, us, us, us, 1.0, 1.0, 1.0)

    sweep = Sweep(
        "k",
        "all_reduce",
        "sum",
        "float32",
        "g",
        2,
        "tcp",
        (point(8, 10.0), point(64, 10.0)),
        None,
        None,
        None,
    )
    baseline = Baseline("then", 4, "tcp", (point(8, 20.0), point(64, 80.0), point(512, 1.0)))

    text = comparison_text(replace(sweep, baseline=baseline))
    assert text == "all_reduce: 4.00 × as fast as then (2.00 to 8.00 over 2 sizes), which was over 4 replicas"
    none = replace(baseline, points=(point(1, 1.0),))
    assert comparison_text(replace(sweep, baseline=none)) == "all_reduce: no size in common with then"
    assert comparison_text(sweep) == ""


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"format": "other", "sweeps": []}',
        '{"format": "workbench sweep 1", "sweeps": [{"op": "all_reduce"}]}',
        '{"format": "workbench sweep 1", "sweeps": [{"op": "a", "dtype": "f", "n": 2, "transport": "", '
        '"points": [{}]}]}',
        '{"format": "workbench sweep 1", "sweeps": [{"op": "a", "dtype": "f", "n": 2, "transport": "", "points": '
        '[{"size_bytes": "<b>", "samples": 1, "p10_us": 1, "p50_us": 1, "p90_us": 1, "p10_busbw": 1, "p50_busbw": 1, '
        '"p90_busbw": 1}]}]}',
    ],
)
def test_a_file_that_is_no_baseline_is_refused_before_anything_runs(
    strategy: wb.MirroredStrategy, tmp_path: Path, content: str
) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content)
    before = strategy.group.committed_step

    with pytest.raises(InvalidArgumentError, match="is not a sweep that"):
        wb.collectives.sweep(strategy, largest_bytes=64, rounds=2, baseline=path)
    assert strategy.group.committed_step == before
