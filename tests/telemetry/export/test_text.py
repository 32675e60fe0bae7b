"""Text twins: 88 columns, stable, and numbers as everywhere."""

from __future__ import annotations

import doctest
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.telemetry.simulation import MS, Call, Replicas, steps
from workbench.telemetry import formatting
from workbench.telemetry.export.text import WIDTH, line_text, snapshot_text, table_text
from workbench.telemetry.feed.feed import Feed
from workbench.telemetry.feed.losses import losses
from workbench.telemetry.formatting import dtype_text, rate_text, shorten, significant, size_text, time_unit
from workbench.telemetry.limits import Limit
from workbench.telemetry.records import SAMPLED
from workbench.telemetry.snapshot import Counters


def feed_with(replicas: Replicas, *calls: Call, now_ns: int = 0) -> Feed:
    replicas.record(*calls)
    feed = Feed(now_ns=lambda: now_ns)
    for data in replicas.drain():
        feed.ingest(data)
    return feed


def test_one_collective_as_one_line() -> None:
    enter = [10 * MS, 10 * MS + 500_000, 10 * MS + 100_000, 12 * MS]
    replicas = Replicas(["a", "a", "b", "b"])
    (row,) = feed_with(replicas, Call(enter, 12 * MS + 3_100_000, nbytes=16 << 20)).table()
    assert line_text(row) == (
        "all_reduce  sum  f32  n=4  16 MiB   last 3.10 ms  p99 3.10  algbw 5.41  busbw 8.12 GB/s"
        "  wait 30\u202f%  late: r3@b"
    )


def test_one_replica_alone_prints_dashes() -> None:
    (row,) = feed_with(Replicas(["a"]), Call([MS], 2 * MS, op="broadcast", redop="")).table()
    assert line_text(row) == (
        "broadcast  f32  n=1  4 KiB   last 1.00 ms  p99 1.00  algbw –  busbw – GB/s  wait 0\u202f%  late: –"
    )


def test_the_table_has_the_columns_of_nccl_tests_in_their_order() -> None:
    replicas = Replicas(["a", "b"])
    text = table_text(feed_with(replicas, *steps(5, [0, 20_000])).table())
    assert text.splitlines() == [
        "g: n=2, times in µs, bandwidths in GB/s",
        "op          size type red last p50 p99 cv%  algbw  busbw lim% wait% how    late",
        "all_reduce 4 KiB  f32 sum  100 100 100  <1 0.0410 0.0410    –     9 direct r1@b",
    ]


def test_no_column_of_percentages_says_a_false_0_or_100() -> None:
    (row,) = feed_with(Replicas(["a", "b"]), *steps(5, [0, 20_000])).table()
    odd = replace(row, cv_percent=0.3, limit_percent=99.8, wait_percent=0.2)

    assert table_text([odd]).splitlines()[-1].split()[8:] == [
        "<1",
        "0.0410",
        "0.0410",
        ">99",
        "<1",
        "direct",
        "r1@b",
    ]


def test_packs_and_the_share_of_the_limit_are_shown() -> None:
    replicas = Replicas(["a", "a"])
    feed = feed_with(replicas, *(replace(call, packs=2, algorithm="ring") for call in steps(1, [0, 0])))
    feed.set_limit("g", Limit({1 << 16: 1.0, 1 << 24: 0.1}))
    assert table_text(feed.table()).splitlines()[1:] == [
        "op          size type red last p50 p99 cv%  algbw  busbw lim% wait% how           late",
        "all_reduce 4 KiB  f32 sum  100 100 100   0 0.0410 0.0410    4     0 ring, 2 packs –",
    ]


def test_sampled_timings_are_labelled() -> None:
    feed = feed_with(Replicas(["a"]), Call([MS], 2 * MS, algorithm=SAMPLED))
    assert table_text(feed.table()).splitlines()[-1].startswith("sampled: of a few profiled steps")


def test_an_empty_table_says_so() -> None:
    assert table_text(()) == "no collectives recorded yet"
    assert snapshot_text(Feed().snapshot()) == "no collectives recorded yet"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["all_reduce", "reduce_scatter", "barrier", "broadcast"]),
            st.sampled_from(["bfloat16", "complex128", "float32", "uint8"]),
            st.integers(0, 1 << 45),
            st.integers(1, 10**13),
        ),
        min_size=1,
        max_size=8,
    ),
    st.text(min_size=1, max_size=100),
)
def test_no_line_is_wider_than_88_columns(calls: list[tuple[str, str, int, int]], label: str) -> None:
    replicas = Replicas(["host-with-a-very-long-name.example.org"] * 2)
    feed = feed_with(
        replicas,
        *(
            Call([k * MS, k * MS + 7], k * MS + time, seq=k, op=op, dtype=dtype, nbytes=size, group=label)
            for k, (op, dtype, size, time) in enumerate(calls)
        ),
        now_ns=10**15,
    )
    assert max(map(len, snapshot_text(feed.snapshot()).split("\n"))) <= WIDTH


def test_the_verdict_stands_above_the_table_and_the_rest_below() -> None:
    replicas = Replicas(["a", "a", "b"], capacity=24)
    calls = [*steps(30, [0, 0, 400_000]), Call([90 * MS, 91 * MS, None], 0, step=99, state="entered")]
    lines = snapshot_text(feed_with(replicas, *calls, now_ns=10**12).snapshot()).splitlines()
    assert lines[:2] == [
        "✖ Stuck for 16 min: all_reduce waits for replica 2: replica 2 last did step 29",
        "  all_reduce #1 at train.py:84; replicas 0 and 1 entered all_reduce #1 of step 99 at",
    ]
    assert lines[-7].startswith("! Replica 2 makes everyone wait: late in 23 of 23 steps, ")
    assert lines[-4:] == [
        "23 collectives, 20 records dropped",
        "  20 records dropped: Replicas made records faster than these were fetched, so the",
        "  oldest went. The figures are of those that came; the job itself lost nothing. Fewer",
        "  collectives make fewer records: one takes several arrays.",
    ]


def test_each_kind_of_loss_is_told_with_what_it_means_and_nothing_where_nothing_was_lost() -> None:
    found = losses(Counters(collectives=9, failed=3, incomplete=4, dropped=5000, dropped_events=6))
    assert [loss.text for loss in found] == [
        "3 failed",
        "4 incomplete",
        "5,000 records dropped",
        "6 events dropped",
    ]
    assert losses(Counters(collectives=9)) == []


def test_the_examples_in_the_text_hold() -> None:
    assert doctest.testmod(formatting).failed == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [(9.996, "10.0"), (99.96, "100"), (0.9996, "1.00"), (0.05, "0.0500"), (-3.14159, "-3.14"), (0.0, "0")],
)
def test_three_significant_digits_also_at_the_edges(value: float, text: str) -> None:
    assert significant(value) == text


@given(st.floats(0.01, 1e12))
def test_printed_numbers_are_right_to_half_a_percent(value: float) -> None:
    assert float(significant(value).replace(",", "")) == pytest.approx(value, rel=0.0051)
    assert "e" not in significant(value)


def test_units_of_sizes_rates_and_times() -> None:
    assert [size_text(1023), size_text(1 << 50), size_text(1 << 60)] == ["1023 B", "1 PiB", "1024 PiB"]
    assert [rate_text(0.000_001), rate_text(1.0)] == ["1.00 kB/s", "1.00 GB/s"]
    assert [time_unit([])[0], time_unit([2e3])[0], time_unit([5e6])[0]] == ["µs", "ms", "s"]
    assert [dtype_text(name) for name in ("float32", "int64", "uint8", "bool")] == [
        "f32",
        "i64",
        "u8",
        "bool",
    ]
    assert [shorten("abc", 3), shorten("abcd", 3)] == ["abc", "ab…"]
