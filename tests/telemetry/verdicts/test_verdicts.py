"""Each sentence from made-up telemetry with a known cause, and none where nothing is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tests.telemetry.simulation import MS, Call, Replicas, steps
from workbench.telemetry.events import Event
from workbench.telemetry.feed.feed import Feed
from workbench.telemetry.verdicts import Verdict, verdicts

LONG_AFTER = 100_000 * MS


def feed_of(
    calls: Iterable[Call], *, n: int = 4, events: Sequence[Event] = (), now_ns: int = LONG_AFTER
) -> Feed:
    replicas = Replicas(["a"] * n)
    replicas.record(*calls)
    feed = Feed(now_ns=lambda: now_ns)
    for event in events:
        feed.add_event(event)
    for data in replicas.drain():
        feed.ingest(data)
    return feed


def judged(calls: Iterable[Call], **how: object) -> tuple[Verdict, ...]:
    return verdicts(feed_of(calls, **how).snapshot())  # type: ignore[arg-type]


def words(text: str) -> str:
    """With plain spaces."""
    return text.replace("\N{THIN SPACE}", " ")


def even(count: int = 64, *, inputs: str = "finite", n: int = 4) -> list[Call]:
    """Steps of 1 ms in which everybody comes at once."""
    return [replace(call, inputs=inputs) for call in steps(count, [0] * n)]


def test_a_run_with_few_steps_is_watched() -> None:
    (found,) = judged(even(12))

    assert (found.severity, found.code) == ("watching", "watching")
    assert found.sentence == "Watching: 12 of 20 steps"


def test_a_run_without_steps_is_watched() -> None:
    (found,) = verdicts(Feed().snapshot())

    assert found.sentence == "Watching: 0 of 20 steps"
    assert found.evidence == "no collective was recorded yet"


def test_a_healthy_run_is_good() -> None:
    (found,) = judged(even())

    assert (found.severity, found.code) == ("good", "good")
    assert words(found.sentence) == "No NaN, 0 % waited; copies not compared yet"
    assert "100 % of what went into collectives" in words(found.evidence)


def test_nothing_is_said_of_nan_where_nobody_looked() -> None:
    (found,) = judged(even(inputs=""))

    assert words(found.sentence) == "0 % waited; copies not compared yet"


def test_a_late_replica_is_named_with_its_cost() -> None:
    found = judged(steps(40, [0, 0, 400_000, 0]))

    assert [each.code for each in found] == ["late"]
    assert words(found[0].sentence) == (
        "Replica 2 makes everyone wait: late in 40 of 40 steps, 40 % of each step"
    )
    assert (found[0].severity, found[0].replica, found[0].link) == ("warning", 2, "lateness")
    assert "the others wait 40 % of their time" in words(found[0].evidence)


def test_a_stuck_collective_names_who_is_missing_and_what_it_did_last() -> None:
    waiting = Call([90 * MS, 91 * MS, 90 * MS, None], 0, step=40, state="entered", site="train.py:90")
    found = judged([*even(40), waiting], now_ns=12_090 * MS)

    assert found[0].sentence == "Stuck for 12 s: all_reduce waits for replica 3"
    assert found[0].evidence == (
        "replica 3 last did step 39 all_reduce #1 at train.py:84; "
        "replicas 0, 1 and 2 entered all_reduce #1 of step 40 at train.py:90"
    )
    assert (found[0].severity, found[0].replica, found[0].step) == ("error", 3, 40)


def test_a_lost_replica_comes_before_what_is_stuck_as_it_is_gone() -> None:
    waiting = Call([90 * MS, 91 * MS, 90 * MS, None], 0, step=40, state="entered")
    lost = Event(
        "alert",
        "replica_lost",
        "Mirrored: worker 3 (pid 7) was killed by SIGKILL",
        95 * MS,
        severity="error",
        replica=3,
        host="a",
        step=40,
        generation=0,
    )
    found = judged([*even(40), waiting], events=[lost])

    assert [each.code for each in found] == ["gone"]
    assert found[0].sentence == "Replica 3 is gone: a stopped answering at step 40"
    assert found[0].evidence.startswith("worker 3 (pid 7) was killed by SIGKILL; replica 3 last did step 39")


def test_nan_names_the_first_replica_and_the_line() -> None:
    calls = [replace(call, inputs="finite", site="train.py:12") for call in steps(30, [0] * 4)]
    bad = [
        Call([k * MS] * 4, k * MS + 1, step=k, inputs="not finite", site="train.py:12") for k in range(31, 61)
    ]
    first = Replicas(["a"] * 4)
    first.record(*calls)
    own = Call([None, None, None, 31 * MS], 31 * MS + 1, step=30, inputs="not finite", site="train.py:12")
    others = Call([31 * MS] * 3 + [None], 31 * MS + 1, step=30, inputs="finite", site="train.py:12")
    first.record(own, others, *bad)
    feed = Feed(now_ns=lambda: LONG_AFTER)
    for data in first.drain():
        feed.ingest(data)
    found = verdicts(feed.snapshot())

    assert found[0].code == "nan"
    assert found[0].sentence == (
        "NaN or infinity since step 30, first on replica 3 in all_reduce at train.py:12"
    )
    assert (found[0].replica, found[0].step) == (3, 30)


def test_nan_that_is_over_is_no_verdict() -> None:
    calls = steps(40, [0] * 4)
    calls = [replace(call, inputs="not finite" if call.step == 10 else "finite") for call in calls]

    assert [each.code for each in judged(calls)] == ["good"]


def test_a_failed_step_says_where_until_a_later_one_has_run() -> None:
    failed = Event(
        "lifecycle",
        "step_failed",
        "Mirrored: step 40 failed on replica 3: ValueError at In[1]:14",
        50 * MS,
        replica=3,
        step=40,
        generation=0,
    )

    assert judged(even(40), events=[failed])[0].sentence == (
        "Step 40 failed on replica 3: ValueError at In[1]:14"
    )
    assert [each.code for each in judged(even(60), events=[failed])] == ["good"]


def test_collectives_that_do_not_fit_are_told_before_the_step_that_failed() -> None:
    events = [
        Event("lifecycle", "step_failed", "M: step 40 failed", 50 * MS, step=40, generation=0),
        Event("alert", "mismatch", "M: replica 1 called barrier", 50 * MS, "error", 1, step=40, generation=0),
    ]
    found = judged(even(40), events=events)

    assert [each.code for each in found] == ["mismatch", "failed"]
    assert found[0].sentence == "Replicas call different collectives at step 40"
    assert found[0].evidence == "replica 1 called barrier"


def test_every_sentence_is_short_whatever_names_are_in_it() -> None:
    waiting = Call([90 * MS] * 3 + [None], 0, step=40, state="entered", op="all_reduce" * 20)

    assert len(judged([*even(40), waiting])[0].sentence) == 80
