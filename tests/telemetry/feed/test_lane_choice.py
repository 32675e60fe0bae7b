"""Lanes of groups that are too large for all to have one: the latest, and the same ones as long as that is fair."""

from __future__ import annotations

import random
from typing import Any

from tests.telemetry.simulation import MS, Call, Replicas
from workbench.telemetry.delta import delta, merge
from workbench.telemetry.feed.feed import Feed
from workbench.telemetry.snapshot import GroupView

SIZE = 48


class Run:
    """A run of `SIZE` replicas, each a little late by chance; `late_ns` is added to that by replica."""

    def __init__(self, feed: Feed, seed: int = 0) -> None:
        self.late_ns = dict.fromkeys(range(SIZE), 0)
        self._feed = feed
        self._replicas = Replicas(["a"] * SIZE)
        self._random = random.Random(seed)
        self._step = 0

    def work(self, steps: int) -> GroupView:
        """Makes steps; gives the view of the group."""
        for _ in range(steps):
            begin = (self._step + 1) * 100 * MS
            enter = [begin + self._random.randrange(MS) + self.late_ns[replica] for replica in range(SIZE)]
            self._replicas.record(Call(enter, max(enter) + MS, step=self._step))
            self._step += 1
        for batch in self._replicas.drain():
            self._feed.ingest(batch)
        return self._feed.snapshot().groups[0]


def replicas(group: GroupView) -> list[int]:
    return [lane.replica for lane in group.lanes]


def test_the_latest_have_lanes_and_chance_takes_none_from_them() -> None:
    run = Run(Feed(now_ns=lambda: 0))
    run.late_ns[40] = 3 * MS
    first = run.work(8)
    assert (len(first.lanes), first.hidden_lanes) == (32, SIZE - 32)
    assert 40 in replicas(first)

    for _ in range(20):
        assert replicas(run.work(8)) == replicas(first)


def test_who_comes_to_be_much_later_gets_a_lane() -> None:
    run = Run(Feed(now_ns=lambda: 0))
    first = run.work(8)
    newcomer = next(replica for replica in range(SIZE) if replica not in replicas(first))
    run.late_ns[newcomer] = 20 * MS

    group = run.work(8)

    assert newcomer in replicas(group)
    assert len(set(replicas(group)) - set(replicas(first))) == 1


def test_a_view_that_is_sent_changes_has_the_times_of_the_lanes_that_there_are() -> None:
    feed = Feed(now_ns=lambda: 0)
    run = Run(feed)
    lanes = {tuple(replicas(first := run.work(8)))}
    state: dict[str, Any] = feed.snapshot().as_dict()
    for newcomer in sorted(set(range(SIZE)) - set(replicas(first)))[:4]:
        run.late_ns[newcomer] = 20 * MS
        lanes.add(tuple(replicas(run.work(2))))
        newest = feed.snapshot()
        state = merge(state, delta(newest, state["version"]))
        assert state == newest.as_dict()

    assert len(lanes) == 5


def test_no_collective_is_drawn_of_which_records_were_forgotten() -> None:
    feed = Feed(max_records=20 * SIZE + 7, now_ns=lambda: 0)
    group = Run(feed).work(40)

    assert 15 <= len(group.items) <= 20
    for item in group.items:
        assert None not in item.enter_ns
        assert None not in item.end_ns
