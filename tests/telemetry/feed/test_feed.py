"""The feed: joins records over replicas and derives who waited for whom, the same whatever comes first."""

from __future__ import annotations

import json
import random
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.telemetry.reading import drained
from tests.telemetry.simulation import MS, Call, Replicas, steps
from workbench.errors import DataCorruption
from workbench.telemetry.delta import merge
from workbench.telemetry.events import Event
from workbench.telemetry.feed.feed import Feed
from workbench.telemetry.limits import Limit


def feed_of(batches: list[bytes], **options: Any) -> Feed:
    feed = Feed(now_ns=lambda: 0, **options)
    for data in batches:
        feed.ingest(data)
    return feed


def test_one_collective_over_four_replicas() -> None:
    replicas = Replicas(["a", "a", "b", "b"])
    enter = [10 * MS, 10 * MS + 500_000, 10 * MS + 100_000, 12 * MS]
    replicas.record(Call(enter, 12 * MS + 3_100_000, nbytes=16 << 20))
    (row,) = feed_of(replicas.drain()).table()
    assert (row.op, row.redop, row.dtype, row.group, row.n) == ("all_reduce", "sum", "float32", "g", 4)
    assert (row.size_bytes, row.bucket_bytes, row.samples) == (16 << 20, 16 << 20, 1)
    assert row.last_us == row.p50_us == row.p99_us == 3100
    assert row.skew_us == 2000
    assert row.algbw == pytest.approx(5.412, abs=0.001)
    assert row.busbw == pytest.approx(5.412 * 1.5, abs=0.001)
    waited = (2000 + 1500 + 1900 + 0) / (5100 + 4600 + 5000 + 3100)
    assert row.wait_percent == pytest.approx(100 * waited)
    assert (row.late_replica, row.late_host) == (3, "b")


def test_clocks_of_hosts_are_aligned_before_times_are_compared() -> None:
    calls = [Call([5 * MS, 6 * MS], 7 * MS)]
    same, apart = Replicas(["a", "b"]), Replicas(["a", "b"], {"b": 3_600_000_000_000})
    same.record(*calls)
    apart.record(*calls)
    assert feed_of(same.drain()).table() == feed_of(apart.drain()).table()


def test_a_skew_below_the_clock_error_blames_nobody() -> None:
    def late(hosts: list[str], err_ns: int) -> tuple[int | None, float]:
        replicas = Replicas(hosts, err_ns=err_ns)
        replicas.record(Call([5 * MS, 5 * MS + 100_000], 7 * MS))
        (row,) = feed_of(replicas.drain()).table()
        return row.late_replica, row.skew_err_us

    assert late(["a", "b"], 60_000) == (None, 120)
    assert late(["a", "b"], 50_000) == (1, 100)
    assert late(["a", "a"], 60_000) == (1, 0), "replicas of one host share a clock"


def test_a_collective_waits_for_the_records_of_all_replicas() -> None:
    replicas = Replicas(["a", "a", "a"])
    replicas.record(*steps(4, [0, 10, 20]))
    first, second, third = replicas.drain()
    feed = feed_of([first, third])
    assert feed.table() == ()
    assert feed.snapshot().counters.pending == 8
    feed.ingest(second)
    assert feed.snapshot().counters.pending == 0
    assert feed.snapshot().counters.collectives == 4


def test_a_replica_that_never_reports_does_not_fill_the_memory() -> None:
    replicas = Replicas(["a", "a"])
    feed = feed_of([], max_pending=100)
    for start in range(0, 1000, 50):
        replicas.record(*steps(50, [0, 0], first=start))
        feed.ingest(drained(replicas.rings[0]))
        feed.snapshot()
    counters = feed.snapshot().counters
    assert counters.pending <= 100
    assert counters.pending + counters.incomplete == 1000


def test_a_batch_that_comes_twice_counts_once() -> None:
    replicas = Replicas(["a", "a"])
    replicas.record(*steps(3, [0, 10]))
    replicas.rings[0].emit("log", "stdout", "hello")
    first = replicas.drain()
    replicas.record(*steps(3, [0, 10], first=3))
    second = replicas.drain()
    once = feed_of(first + second)
    often = feed_of(first + first + second + first + second)
    assert often.table() == once.table()
    assert often.snapshot().groups == once.snapshot().groups
    assert often.snapshot().events == once.snapshot().events
    assert often.to_arrow().equals(once.to_arrow())
    assert often.snapshot().counters.duplicates == 6


@given(st.integers(1, 5), st.integers(1, 30), st.randoms(use_true_random=False))
def test_the_order_and_size_of_batches_change_nothing(n: int, count: int, rng: random.Random) -> None:
    calls = [
        Call(
            [k * MS + rng.randrange(200_000) for _ in range(n)],
            k * MS + 300_000 + rng.randrange(10_000),
            step=k // 2,
            seq=k % 2,
            op=rng.choice(["all_reduce", "all_gather"]),
            nbytes=4 << rng.randrange(20),
        )
        for k in range(count)
    ]
    whole, pieces = Replicas(["a"] * n), Replicas(["a"] * n)
    whole.record(*calls)
    parts = []
    for call in calls:
        pieces.record(call)
        if rng.random() < 0.5:
            parts += pieces.drain()
    parts += pieces.drain()
    rng.shuffle(parts)
    one = feed_of(whole.drain())
    many = Feed(now_ns=lambda: 0)
    for part in parts:
        many.ingest(part)
        if rng.random() < 0.3:
            many.snapshot()
    assert many.snapshot() == one.snapshot()
    assert many.to_arrow().equals(one.to_arrow())
    assert one.snapshot().counters.collectives == count


def test_the_record_of_a_finished_collective_replaces_that_of_a_waiting_one() -> None:
    replicas = Replicas(["a", "a"])
    replicas.record(Call([MS, None], 0, state="entered"))
    feed = feed_of(replicas.drain())
    assert feed.table() == ()
    replicas.record(Call([MS, 3 * MS], 4 * MS))
    for data in replicas.drain():
        feed.ingest(data)
    assert feed.table()[0].samples == 1
    assert feed.snapshot().counters.pending == 0
    assert feed.to_arrow().num_rows == 2


def test_without_a_stated_group_size_the_replicas_seen_are_the_group() -> None:
    replicas = Replicas(["a", "a"], size=0)
    replicas.record(*steps(3, [0, 50]))
    (row,) = feed_of(replicas.drain()).table()
    assert (row.n, row.samples, row.late_replica) == (2, 3, 1)


def test_failed_collectives_are_counted_and_left_out_of_the_timing() -> None:
    replicas = Replicas(["a", "a"])
    replicas.record(*steps(2, [0, 0]), Call([9 * MS, 9 * MS], 5000 * MS, step=9, state="timeout"))
    snapshot = feed_of(replicas.drain()).snapshot()
    assert snapshot.counters.failed == 1
    assert snapshot.table[0].samples == 2
    assert snapshot.groups[0].items[-1].state == "timeout"


def test_rows_are_kept_apart_by_op_reduction_size_dtype_and_group() -> None:
    replicas = Replicas(["a", "a"])
    base = {"enter_ns": [MS, MS], "end_ns": 2 * MS}
    variants: list[dict[str, object]] = [
        {},
        {"nbytes": 8191},  # same bucket as 4096
        {"nbytes": 8192},
        {"op": "reduce"},
        {"redop": "max"},
        {"dtype": "float64"},
        {"group": "h"},
    ]
    replicas.record(*(Call(**base, seq=k, **variant) for k, variant in enumerate(variants)))  # type: ignore[arg-type]
    table = feed_of(replicas.drain()).table()
    assert len({row.key for row in table}) == len(table) == 6
    assert sorted(row.samples for row in table) == [1, 1, 1, 1, 1, 2]
    assert [row.group for row in table] == ["g"] * 5 + ["h"]
    assert [row.redop for row in table if row.op == "all_reduce"] == ["max", "sum", "sum", "sum", "sum"]


def test_a_measured_limit_gives_percentages() -> None:
    replicas = Replicas(["a", "a"])
    replicas.record(Call([MS, MS], MS + 1000, nbytes=5000))
    feed = feed_of(replicas.drain())
    assert feed.table()[0].limit_percent is None
    feed.set_limit("g", Limit({4096: 20.0}))
    assert feed.table()[0].limit_percent == pytest.approx(25)


def test_a_view_that_is_kept_up_to_date_gets_to_know_of_the_limit() -> None:
    replicas = Replicas(["a", "a"])
    replicas.record(Call([MS, MS], MS + 1000))
    feed = feed_of(replicas.drain())
    before = feed.snapshot()
    feed.set_limit("g", Limit(between_hosts=20.0))
    assert merge(before.as_dict(), feed.delta(before.version))["table"][0]["limit_percent"] is not None


def test_what_workbench_itself_needed_is_apart() -> None:
    replicas = Replicas(["a", "a"])
    replicas.record(
        Call([MS, MS], 2 * MS), Call([3 * MS, 3 * MS], 4 * MS, seq=1, op="all_gather", purpose="input")
    )
    feed = feed_of(replicas.drain())
    snapshot = feed.snapshot()
    assert [(row.op, row.purpose) for row in snapshot.table] == [("all_reduce", "")]
    assert [(row.op, row.purpose) for row in snapshot.internal] == [("all_gather", "input")]
    assert (snapshot.counters.collectives, snapshot.counters.internal) == (1, 1)
    assert [item.op for item in snapshot.groups[0].items] == ["all_reduce"]
    assert feed.to_arrow()["purpose"].to_pylist() == ["", "", "input", "input"]


def test_call_sites_get_the_names_that_people_know() -> None:
    replicas = Replicas(["a", "a"])
    replicas.record(Call([MS, MS], 2 * MS, site="123456.py:3"))
    replicas.rings[0].emit("alert", "nan", "loss is NaN", site="123456.py:4")
    feed = feed_of(replicas.drain(), name_sites=lambda text: text.replace("123456.py", "In[5]"))
    snapshot = feed.snapshot()
    assert set(feed.to_arrow()["site"].to_pylist()) == {"In[5]:3"}
    assert [item.site for item in snapshot.groups[0].items] == ["In[5]:3"]
    assert [event.site for event in snapshot.events] == ["In[5]:4"]


def test_memory_is_bounded_and_the_newest_is_kept() -> None:
    replicas = Replicas(["a", "a"])
    feed = feed_of([], max_records=100, max_collectives=30)
    for start in range(0, 500, 50):
        replicas.record(*steps(50, [0, 0], first=start))
        for data in replicas.drain():
            feed.ingest(data)
        feed.snapshot()
    assert feed.table()[0].samples == 30
    assert feed.snapshot().counters.collectives == 500
    kept = feed.to_arrow().column("step").to_pylist()
    assert kept == sorted([*range(450, 500)] * 2)


def test_records_lost_in_rings_are_counted_once() -> None:
    replicas = Replicas(["a", "a"], capacity=10)
    feed = feed_of([])
    for start in (0, 25):
        replicas.record(*steps(25, [0, 0], first=start))
        for data in replicas.drain():
            feed.ingest(data)
    assert feed.snapshot().counters.dropped == 2 * 2 * 15


def test_only_the_newest_generation_of_a_group_is_shown() -> None:
    replicas = Replicas(["a", "a", "a"])
    replicas.record(*(Call([MS, MS, MS], 2 * MS, seq=k) for k in range(3)))
    survivors = Replicas(["a", "a"])
    survivors.record(Call([5 * MS, 5 * MS], 6 * MS, generation=1))
    (group,) = feed_of(replicas.drain() + survivors.drain()).snapshot().groups
    assert (group.generation, group.n, len(group.items)) == (1, 2, 1)


def test_lanes_show_each_replica_and_what_it_did() -> None:
    replicas = Replicas(["a", "b"], {"b": 1000})
    replicas.record(Call([MS, 2 * MS], 3 * MS, step=7, seq=1))
    (group,) = feed_of(replicas.drain()).snapshot().groups
    assert [lane.label for lane in group.lanes] == ["r0 a cpu:0", "r1 b cpu:1"]
    (item,) = group.items
    assert (item.step, item.seq, item.op, item.site) == (7, 1, "all_reduce", "train.py:84")
    assert item.enter_ns == (MS, 2 * MS)
    assert item.end_ns == (3 * MS, 3 * MS)
    assert item.ready_ns == 2 * MS


def test_of_many_replicas_the_latest_get_a_lane() -> None:
    n = 100
    replicas = Replicas(["a"] * n)
    replicas.record(*steps(3, [1000 * replica for replica in range(n)]))
    (group,) = feed_of(replicas.drain()).snapshot().groups
    assert [lane.replica for lane in group.lanes] == list(range(68, 100))
    assert group.hidden_lanes == 68
    assert group.lateness.replicas == tuple(range(68, 100))
    assert all(len(item.enter_ns) == 32 for item in group.items)


def test_events_of_replicas_and_of_the_driver_are_kept_in_order_and_bounded() -> None:
    replicas = Replicas(["a"])
    replicas.rings[0].emit("log", "stdout", "<script>alert(1)</script>")
    feed = feed_of(replicas.drain())
    feed.add_event(Event("lifecycle", "replica_lost", "replica 0 was killed", 5, "error", 0, "a", 3))
    assert [event.name for event in feed.snapshot().events] == ["stdout", "replica_lost"]
    assert feed.snapshot().events[0].message == "<script>alert(1)</script>"
    for number in range(600):
        feed.add_event(Event("log", "stdout", str(number), number))
    snapshot = feed.snapshot()
    assert len(snapshot.events) == 512
    assert snapshot.events[-1].message == "599"
    assert snapshot.counters.dropped_events == 602 - 512


@pytest.mark.parametrize("count", [1, 2000])
def test_a_look_shows_what_was_folded_before_it(count: int) -> None:
    replicas, feed = Replicas(["a", "a"]), Feed(now_ns=lambda: 0)

    def arrive(calls: list[Call]) -> None:
        replicas.record(*calls)
        for data in replicas.drain():
            feed.ingest(data)  # folds, if there are many

    arrive(steps(1, [0, 0]))
    assert feed.snapshot().counters.collectives == 1

    arrive(steps(count, [0, 0], first=1))
    if count == 1:
        feed.to_arrow()  # folds, too

    assert feed.snapshot().counters.collectives == 1 + count


def test_looking_twice_gives_the_same_object() -> None:
    replicas = Replicas(["a", "a"])
    replicas.record(*steps(2, [0, 0]))
    feed = feed_of(replicas.drain())
    assert feed.snapshot() is feed.snapshot()


def test_a_damaged_batch_changes_nothing() -> None:
    replicas = Replicas(["a", "a"])
    replicas.record(*steps(2, [0, 0]))
    feed = feed_of(replicas.drain())
    before = feed.snapshot()
    with pytest.raises(DataCorruption):
        feed.ingest(b"nonsense")
    assert feed.ingest(b"") is False
    assert feed.snapshot() is before


def test_snapshots_and_deltas_are_json() -> None:
    replicas = Replicas(["a", "b", "b"])
    replicas.record(*steps(8, [0, 10, 300_000]), Call([90 * MS, None, None], 0, step=99, state="entered"))
    feed = feed_of(replicas.drain())
    text = json.dumps(feed.snapshot().as_dict(), allow_nan=False)
    assert json.loads(text)["counters"]["collectives"] == 8
    json.dumps(feed.delta(0), allow_nan=False)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=8), st.integers(1, 4))
def test_deltas_add_up_to_the_snapshot(bursts: list[int], n: int) -> None:
    replicas, feed = Replicas(["a"] * n), Feed(now_ns=lambda: 0)
    state = feed.snapshot().as_dict()
    step = 0
    for burst in bursts:
        replicas.record(*steps(burst, [100 * replica for replica in range(n)], first=step))
        replicas.rings[0].emit("log", "stdout", str(step))
        step += burst
        for data in replicas.drain():
            feed.ingest(data)
        change = feed.delta(state["version"])
        state = merge(state, change)
        assert state == feed.snapshot().as_dict()
    assert len(feed.delta(state["version"])["table"]["changed"]) == 0


def test_threads_may_fill_and_read_a_feed_at_once() -> None:
    replicas = Replicas(["a", "a"])
    replicas.record(*steps(200, [0, 10]))
    parts: list[bytes] = []
    for start in range(200, 400, 10):
        replicas.record(*steps(10, [0, 10], first=start))
        parts += replicas.drain()
    feed = Feed()
    threads = [
        threading.Thread(target=lambda own=parts[k::4]: [feed.ingest(p) for p in own]) for k in range(4)
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        feed.snapshot()
    for thread in threads:
        thread.join(timeout=10)
    assert feed.snapshot().counters.collectives == 400


def test_the_data_frame_has_the_columns_of_the_record() -> None:
    replicas = Replicas(["a", "a"])
    replicas.record(*steps(2, [0, 0]))
    feed = feed_of(replicas.drain())
    frame = feed.to_pandas()
    assert list(frame.columns) == feed.to_arrow().column_names
    assert frame.groupby("replica", observed=True)["seq"].count().to_dict() == {0: 2, 1: 2}
