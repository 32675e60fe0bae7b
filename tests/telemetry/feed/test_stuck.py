"""The stuck banner names the collective, who is missing and what it did last."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.telemetry.simulation import MS, Call, Replicas, steps
from workbench.telemetry.events import Event
from workbench.telemetry.feed.feed import Feed
from workbench.telemetry.feed.stuck import STUCK_AFTER_NS, stuck_text
from workbench.telemetry.snapshot import Stuck

LONG_AFTER = 100_000 * MS
LOST = Event("alert", "replica_lost", "g: worker 2 was killed", 0, replica=2, generation=0)


def stuck(replicas: Replicas, now_ns: int = LONG_AFTER, events: Sequence[Event] = ()) -> Stuck | None:
    feed = Feed(now_ns=lambda: now_ns)
    for event in events:
        feed.add_event(event)
    for data in replicas.drain():
        feed.ingest(data)
    return feed.snapshot().groups[0].stuck


def waiting_run() -> Replicas:
    replicas = Replicas(["a", "a", "b", "b"])
    replicas.record(
        Call([MS] * 4, 2 * MS, step=3, seq=511, op="broadcast"),
        Call([5 * MS, 6 * MS, 5 * MS, None], 0, step=3, seq=512, state="entered", site="train.py:90"),
    )
    return replicas


def test_the_missing_replica_and_its_last_collective_are_named() -> None:
    found = stuck(waiting_run())
    assert found is not None
    assert (found.step, found.seq, found.op) == (3, 512, "all_reduce")
    assert (found.waiting, found.missing, found.since_ns) == ((0, 1, 2), (3,), 5 * MS)
    assert stuck_text(found) == (
        "step 3 all_reduce #513: waiting for replicas {3}; it last did broadcast #512 at train.py:84"
    )


def test_a_collective_counts_as_stuck_only_after_a_while() -> None:
    assert stuck(waiting_run(), now_ns=5 * MS + STUCK_AFTER_NS - 1) is None
    assert stuck(waiting_run(), now_ns=5 * MS + STUCK_AFTER_NS) is not None


def test_time_alone_makes_a_new_version_when_something_gets_stuck() -> None:
    now = [0]
    feed = Feed(now_ns=lambda: now[0])
    for data in waiting_run().drain():
        feed.ingest(data)
    before = feed.snapshot()
    now[0] = LONG_AFTER
    after = feed.snapshot()
    assert after.version > before.version
    assert (before.groups[0].stuck, after.groups[0].stuck is None) == (None, False)
    assert feed.snapshot() is after


def test_replicas_that_recorded_nothing_are_named_too() -> None:
    replicas = Replicas(["a", "a", "a"])
    replicas.record(Call([MS, None, None], 0, state="entered"))
    found = stuck(replicas)
    assert found is not None
    assert found.missing == (1, 2)
    assert "no record of r1 has arrived; no record of r2 has arrived" in stuck_text(found)


def test_only_replicas_that_are_gone_are_called_lost() -> None:
    """A third one had merely not come to the collective yet when the loss released all."""
    replicas = Replicas(["a", "a", "b", "b"])
    replicas.record(
        Call([MS] * 4, 2 * MS, step=3, seq=0),
        Call([None, 6 * MS, None, 5 * MS], 0, step=3, seq=1, state="entered"),
    )
    found = stuck(replicas, events=[LOST])
    assert found is not None
    assert (found.state, found.waiting, found.missing) == ("lost", (1, 3), (2,))
    assert stuck_text(found).startswith(
        "step 3 all_reduce #2: lost replicas {2} that had not come to it; it last did"
    )


def test_a_lost_record_is_not_taken_for_a_missing_replica() -> None:
    replicas = Replicas(["a", "a"])
    replicas.record(Call([MS, None], 2 * MS), *steps(3, [0, 0], first=1))
    assert stuck(replicas) is None


def test_records_that_a_killed_replica_took_along_are_not_waited_for() -> None:
    replicas = Replicas(["a", "a", "a"])
    replicas.record(*(Call([MS, MS, None], 2 * MS, step=step) for step in range(4)))
    replicas.record(Call([9 * MS, 9 * MS, None], 10 * MS, step=4, seq=1, state="aborted", site="train.py:90"))
    found = stuck(replicas, events=[LOST])
    assert found is not None
    assert (found.step, found.seq, found.op, found.site) == (4, 1, "all_reduce", "train.py:90")
    assert (found.waiting, found.missing) == ((0, 1), (2,))
    assert stuck_text(found).endswith(
        "lost replicas {2} that had not come to it; it last did step 3 all_reduce #1"
    )


def test_a_result_that_one_has_without_the_others_does_not_tell_what_a_missing_replica_did() -> None:
    replicas = Replicas(["a", "a", "a"])
    replicas.record(Call([MS, MS, None], 2 * MS, step=3, op="broadcast"))
    replicas.record(Call([9 * MS, 9 * MS, None], 10 * MS, step=4, state="aborted"))
    found = stuck(replicas, events=[LOST])
    assert found is not None
    assert "no record of it has arrived" in stuck_text(found)


def test_a_timeout_of_the_waiting_replicas_still_shows_who_was_missing() -> None:
    replicas = Replicas(["a", "a"])
    replicas.record(*steps(2, [0, 0]), Call([9 * MS, None], 30 * MS, step=2, state="timeout"))
    found = stuck(replicas)
    assert found is not None
    assert found.missing == (1,)
    assert "failed, replicas {1} had not come to it; it last did step 1 all_reduce #1" in stuck_text(found)


def test_nothing_is_stuck_when_all_came() -> None:
    replicas = Replicas(["a", "a"])
    replicas.record(*steps(5, [0, 0]))
    assert stuck(replicas) is None


@pytest.mark.parametrize("state", ["aborted", "error", "mismatch"])
def test_a_step_that_failed_is_not_stuck(state: str) -> None:
    replicas = Replicas(["a", "a", "a", "a"])
    replicas.record(*steps(3, [0] * 4), Call([9 * MS] * 3 + [None], 10 * MS, step=3, state=state))
    assert stuck(replicas) is None


def test_a_passed_deadline_is_shown_until_its_step_has_ended() -> None:
    replicas = Replicas(["a", "a"])
    replicas.record(*steps(2, [0, 0]), Call([9 * MS, None], 30 * MS, step=2, state="timeout"))
    batches, ended = replicas.drain(), Event("lifecycle", "step_failed", "", 0, step=2, generation=0)
    feed = Feed(now_ns=lambda: LONG_AFTER)
    for data in batches:
        feed.ingest(data)
    before = feed.snapshot().groups[0].stuck
    assert before is not None
    assert before.state == "failed"
    feed.add_event(ended)
    assert feed.snapshot().groups[0].stuck is None


def test_a_failed_step_of_another_group_ends_nothing() -> None:
    """Each strategy counts its steps and generations from 0."""
    elsewhere, here = (
        Event("lifecycle", "step_failed", "", 0, step=3, generation=0, group=group)
        for group in ("other", "g")
    )

    assert stuck(waiting_run(), events=[elsewhere]) is not None
    assert stuck(waiting_run(), events=[elsewhere, here]) is None


def test_nobody_waits_for_a_replica_that_is_lost_where_all_who_waited_are() -> None:
    replicas = Replicas(["a", "a", "a"])
    replicas.record(*steps(2, [0] * 3), Call([None, None, 9 * MS], 0, step=2, state="entered"))
    assert stuck(replicas, events=[LOST]) is None
    assert stuck(waiting_run()) is not None
