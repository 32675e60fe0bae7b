"""Each sentence from made-up telemetry with a known cause, and none where nothing is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from tests.telemetry.simulation import MS, Call, Replicas, steps
from workbench.telemetry.events import Event
from workbench.telemetry.feed.feed import Feed
from workbench.telemetry.feed.nan_onsets import onset_text
from workbench.telemetry.told import MemoryFacts
from workbench.telemetry.verdicts import Verdict, judge, verdicts
from workbench.telemetry.verdicts.judge import PRIORITY
from workbench.telemetry.verdicts.words import evidence

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
    return text.replace("\N{NARROW NO-BREAK SPACE}", " ")


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
    assert "100 % of what replicas passed to collectives" in words(found.evidence)


def in_turn(times: int) -> list[Call]:
    """Steps of `times` ms, in each of which another replica comes 40 % of it late."""
    calls = [steps(1, [400_000 * (r == step % 4) for r in range(4)], first=step)[0] for step in range(64)]
    scaled = ([enter * times for enter in call.enter_ns if enter is not None] for call in calls)
    return [
        replace(call, enter_ns=enter, end_ns=call.end_ns * times, inputs="finite")
        for call, enter in zip(calls, scaled, strict=True)
    ]


def test_much_waiting_for_nobody_in_particular_is_explained() -> None:
    short, long = judged(in_turn(1))[0], judged(in_turn(20))[0]

    assert [found.code for found in (short, long)] == ["good", "good"]
    assert short.evidence.startswith(
        "no replica holds up the others step after step: in steps as short as 1.00 ms, small delays matter; "
    )
    assert long.evidence.startswith(
        "no replica holds up the others step after step: the last to arrive changes, see Lateness; "
    )
    assert "holds up" not in judged(even())[0].evidence


def test_replicas_that_wait_as_they_share_cores_are_said_to_take_turns() -> None:
    snapshot = feed_of(in_turn(1)).snapshot()
    (group,) = snapshot.groups
    pace = replace(group.pace, compute_share=0.3)
    crowded = replace(group, pace=pace, told=replace(group.told, cores=2, cores_used=1.9))
    found = verdicts(replace(snapshot, groups=(crowded,)))[0]

    assert found.code == "good"
    assert "step after step: they take turns on 2 cores" in found.evidence
    unknown = replace(crowded, told=replace(crowded.told, cores_used=None))
    assert "take turns" not in verdicts(replace(snapshot, groups=(unknown,)))[0].evidence


def test_a_replica_that_is_late_in_most_steps_is_named_though_nothing_is_to_be_done_about_it() -> None:
    finite = [replace(call, inputs="finite") for call in steps(64, [0, 0, 240_000, 0])]
    found = judged(finite)[0]

    assert found.code == "good"
    assert found.evidence.startswith("replica 2 is late in 64 of 64 steps, by 240 µs; ")

    mostly = [*finite[:52], *in_turn(1)[52:]]
    assert "replica 2 is late in 55 of 64 steps" in judged(mostly)[0].evidence
    half = [*finite[:26], *in_turn(1)[26:]]
    assert "the last to arrive" not in judged(half)[0].evidence
    assert judged(half)[0].evidence.startswith("no replica holds up the others step after step: in steps")


def crowded_steps(late_ms: Sequence[int]) -> Feed:
    """Steps of 20 ms of four replicas on two cores, which come so late in each."""
    calls = []
    for step in range(1, 65):
        enter = [(20 * step + late) * MS for late in late_ms]
        calls.append(Call(enter, max(enter) + 7 * MS, step=step, inputs="finite"))
    feed = feed_of(calls)
    feed.set_cores("g", 2)
    return feed


def test_replicas_that_are_late_in_most_steps_are_named_where_replicas_share_cores() -> None:
    one, two = (verdicts(crowded_steps(late).snapshot())[0] for late in ([0, 0, 10, 0], [0, 0, 9, 10]))

    assert (one.code, two.code) == ("good", "good")
    assert one.evidence.startswith(
        "replica 2 is late in 64 of 64 steps, by 10.0 ms, on 2 cores that 4 replicas share; "
    )
    assert two.evidence.startswith(
        "replicas 3 and 2 are late in most steps, by up to 10.0 ms, on 2 cores that 4 replicas share; "
    )


def test_evidence_has_whole_parts_as_far_as_there_is_room() -> None:
    names = "encoder/embedding/kernel:0 and decoder/attention/kernel:0"
    agreed = Event("lifecycle", "copies_agree", f"copies of {names} agree", 10**12, step=1234, generation=0)
    found = judged(in_turn(1), events=[agreed])[0]

    assert words(found.evidence) == (
        "no replica holds up the others step after step: in steps as short as 1.00 ms, small delays matter; "
        f"copies of {names} agree after step 1234; the newest 64 steps take 1.00 ms each (median)"
    )
    assert evidence("x" * 300, "y") == "x" * 239 + "…"


def test_nothing_is_said_of_nan_where_nobody_looked() -> None:
    (found,) = judged(even(inputs=""))

    assert words(found.sentence) == "0 % waited; copies not compared yet"


def test_how_much_was_looked_through_for_nan_is_told_unless_it_is_all() -> None:
    half = [replace(call, inputs="" if call.step % 2 else "finite") for call in even(64)]
    nearly = [replace(call, inputs="" if call.step == 1 else "finite") for call in even(64)]
    several = [replace(call, seq=seq) for call in even(64) for seq in range(5)]
    almost = [replace(call, inputs="" if (call.step, call.seq) == (1, 1) else "finite") for call in several]

    assert words(judged(half)[0].sentence) == "No NaN in 50 %, 0 % waited; copies not compared yet"
    assert words(judged(nearly)[0].sentence).startswith("No NaN in 98 %, ")
    assert words(judged(almost)[0].sentence).startswith("No NaN in >99 %, ")


def test_the_figures_of_a_good_run_are_of_a_strategy_with_enough_steps() -> None:
    replicas = Replicas(["a"] * 4)
    replicas.record(*(replace(call, group="long") for call in even(40)))
    replicas.record(*(replace(call, step=call.step - 40) for call in even(45)[40:]))
    feed = Feed(now_ns=lambda: LONG_AFTER)
    for data in replicas.drain():
        feed.ingest(data)
    snapshot = feed.snapshot()
    (found,) = verdicts(snapshot)

    assert [(group.group, group.pace.steps) for group in snapshot.groups] == [("g", 5), ("long", 40)]
    assert found.code == "good"
    assert "the newest 40 steps take" in found.evidence


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


def failed_in(group: str, step: int, t_ns: int = 50 * MS) -> Event:
    message = f"M: step {step} failed on replica 0: ValueError at In[1]:4"
    return Event("lifecycle", "step_failed", message, t_ns, replica=0, step=step, generation=0, group=group)


def went_on(group: str, step: int, generation: int = 1) -> Event:
    message = f"M: step {step} succeeded"
    return Event(
        "lifecycle", "step_succeeded", message, 60 * MS, step=step, generation=generation, group=group
    )


def test_a_step_that_failed_is_no_news_once_one_without_collectives_has_succeeded() -> None:
    failed, over = failed_in("g", 40), went_on("g", 41)

    assert judged(even(40), events=[failed])[0].code == "failed"
    assert [each.code for each in judged(even(40), events=[failed, over])] == ["good"]
    assert judged(even(40), events=[failed, over, failed_in("g", 42)])[0].step == 42


def test_a_step_that_fails_before_any_replica_has_met_another_is_told() -> None:
    feed = Feed()
    feed.add_event(failed_in("M/1", 0))
    (found,) = verdicts(feed.snapshot())

    assert (found.severity, found.code, found.step) == ("error", "failed", 0)
    assert found.sentence == "Step 0 failed on replica 0: ValueError at In[1]:4"
    feed.add_event(went_on("M/1", 1))
    assert [each.code for each in verdicts(feed.snapshot())] == ["watching"]


def test_what_fails_is_told_of_its_own_strategy_alone() -> None:
    """A strategy that is made anew counts its steps and generations from 0 again."""
    assert [each.code for each in judged(even(40), events=[failed_in("M/2", 0)])] == ["failed"]
    assert [each.code for each in judged(even(40), events=[failed_in("M/2", 0), went_on("M/2", 1)])] == [
        "good"
    ]
    long_ago = failed_in("M/2", 0, t_ns=-20_000 * MS)
    assert [each.code for each in judged(even(40), events=[long_ago])] == ["good"]


def test_a_replica_that_was_gone_is_no_news_once_a_step_without_collectives_has_succeeded() -> None:
    lost = Event("alert", "replica_lost", "M: worker 1 died", 50 * MS, "error", 1, "a", step=40, generation=0)

    assert judged(even(40), events=[lost])[0].code == "gone"
    assert [each.code for each in judged(even(40), events=[lost, went_on("g", 41)])] == ["good"]


def test_a_replica_that_is_gone_is_told_by_time_since_other_strategies_count_other_steps() -> None:
    """The one alert of a loss has the step of the youngest strategy on the worker."""
    waits = Call([55 * MS] * 3 + [None], 70 * MS, step=40, state="aborted")

    def codes(*, lost_ms: int, step: int) -> list[str]:
        lost = Event(
            "alert", "replica_lost", "M: died", lost_ms * MS, "error", 3, "a", step=step, generation=0
        )
        return [each.code for each in judged([*even(40), waits], events=[lost, went_on("g", 41)])]

    assert codes(lost_ms=61, step=2) == ["gone"]
    assert codes(lost_ms=59, step=500) == ["good"]


def test_an_inspection_after_a_step_without_collectives_is_told() -> None:
    nan = Event(
        "alert",
        "nan",
        "M: wb.inspect found in w: NaN",
        70 * MS,
        "warning",
        2,
        step=42,
        generation=1,
        group="g",
    )

    assert judged(even(40), events=[failed_in("g", 40), went_on("g", 41), nan])[0].code == "nan"


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


def test_nan_without_a_collective_is_told_by_an_inspection_until_it_is_over() -> None:
    nan = Event("alert", "nan", "M: wb.inspect found in w: NaN", 50 * MS, "warning", 2, step=38, generation=0)
    finite = Event("lifecycle", "finite", "M: what was not finite is finite", 60 * MS, generation=0)

    assert judged(even(40), events=[nan])[0].sentence == "NaN since step 38, first on replica 2"
    assert judged(even(40), events=[nan, finite])[0].code == "good"


def test_an_inspection_that_knows_no_step_names_the_collective_that_it_came_from() -> None:
    calls = [replace(call, inputs="not finite" if call.step == 10 else "finite") for call in even(40)]
    onset = feed_of(calls).snapshot().groups[0].not_finite
    assert onset is not None
    found = f"M: wb.inspect found in w: NaN between steps 0 and 39, at [2,3]; first, {onset_text(onset)}"
    nan = Event("alert", "nan", found, 50 * MS, "warning", generation=0)
    (verdict, *_) = judged(calls, events=[nan])

    assert verdict.sentence == "NaN since step 10, on all 4 replicas"
    assert verdict.step == 10
    assert verdict.evidence.startswith("wb.inspect found in w: NaN between steps 0 and 39")
    unknown = replace(nan, message="M: wb.inspect found in w: NaN")
    assert judged(calls, events=[unknown])[0].sentence == "NaN found by wb.inspect"


def test_an_infinity_that_an_inspection_found_is_told_by_its_name() -> None:
    inf = Event("alert", "inf", "M: wb.inspect found in w: Inf", 50 * MS, "warning", 2, step=38, generation=0)
    finite = Event("lifecycle", "finite", "M: what was not finite is finite", 60 * MS, generation=0)
    found = judged(even(40), events=[inf])[0]

    assert (found.code, found.sentence) == ("nan", "Infinity since step 38, first on replica 2")
    assert judged(even(40), events=[inf, finite])[0].code == "good"
    given = judged(even(40, inputs="not finite"), events=[inf])[0]
    assert given.sentence.startswith("NaN or infinity since step 0")  # which of them is unknown


def test_copies_that_differ_are_named_until_they_agree() -> None:
    differ = Event(
        "alert",
        "copies_differ",
        "copies of w differ: replica 2 since step 7; largest difference 0.5",
        50 * MS,
        "error",
        2,
        step=7,
        generation=0,
    )
    agree = Event("lifecycle", "copies_agree", "copies of w agree", 60 * MS, step=39, generation=0)
    found = judged(even(40), events=[differ])[0]

    assert (found.code, found.replica, found.step) == ("copies", 2, 7)
    assert found.sentence == "Copies of w differ: replica 2 since step 7"
    assert found.evidence == "largest difference 0.5"
    good = judged(even(40), events=[differ, agree])[0]
    assert words(good.sentence) == "Copies of w agree, no NaN, 0 % waited"
    assert good.evidence.startswith("copies of w agree after step 39; ")


def test_all_copies_agree_where_an_inspection_compared_all_in_this_generation() -> None:
    agree = Event("lifecycle", "copies_agree", "all copies agree", 60 * MS, step=39, generation=0)
    earlier, later = (replace(agree, generation=generation) for generation in (-1, 1))

    assert words(judged(even(40), events=[agree])[0].sentence) == "All copies agree, no NaN, 0 % waited"
    assert words(judged(even(40), events=[earlier, later])[0].sentence) == (
        "No NaN, 0 % waited; copies not compared yet"
    )


def fetching(waited_share: Sequence[float], rows: Sequence[int] = (8, 8, 8, 8)) -> tuple[Verdict, ...]:
    """Steps of 10 ms, four fetched at once, of which replicas wait for some part."""
    now = [0]
    replicas = Replicas(["a"] * 4)
    replicas.record(*even())
    feed = Feed(now_ns=lambda: now[0])
    for data in replicas.drain():
        feed.ingest(data)
    for fetch in range(16):
        now[0] = fetch * 40 * MS
        waited = [int(share * 40 * MS) for share in waited_share]
        feed.add_input("g", waited_ns=waited, elements=4, rows=rows)
    return verdicts(feed.snapshot())


def test_a_replica_that_starves_is_named_with_its_cause() -> None:
    found = fetching([0.02, 0.03, 0.4, 0.02])

    assert [each.code for each in found] == ["starved"]
    assert words(found[0].sentence) == "Input starves replica 2: 40 % of its time"
    assert words(found[0].evidence).startswith("it waits 40 % of its time for batches, the others 2 %")
    assert (found[0].replica, found[0].link) == (2, "input")


def test_where_all_wait_for_data_nobody_is_named() -> None:
    found = fetching([0.5, 0.5, 0.6, 0.5])

    assert [each.code for each in found] == ["input"]
    assert words(found[0].sentence) == "Everyone waits for data: 53 % of each step"
    assert found[0].replica is None


def test_little_waiting_for_data_is_no_news() -> None:
    assert [each.code for each in fetching([0.1, 0.15, 0.19, 0.0])] == ["good"]


def test_a_replica_without_data_is_named_with_the_reason() -> None:
    found = fetching([0.0] * 4, rows=[1, 1, 1, 0])

    assert found[0].sentence == "Replica 3 gets no data: batches of 3 for 4 replicas"
    assert "rows by replica 1 1 1 0" in found[0].evidence
    assert fetching([0.0] * 4, rows=[8, 8, 8, 0])[0].sentence == (
        "Replica 3 gets no data: its part of each batch is empty"
    )


def paced(
    length_ns: Sequence[int],
    *,
    sent_ns: int = 20_000,
    n: int = 4,
    cores: int = 0,
    used: float | None = None,
    gap: int = 0,
) -> tuple[Verdict, ...]:
    """Steps that take so long each, of which all_reduce takes a part; numbers leave a gap in the middle."""
    calls, now = [], MS
    for number, length in enumerate(length_ns):
        step = number + (gap if number >= len(length_ns) // 2 else 0)
        calls.append(Call([now] * n, now + sent_ns, step=step, inputs="finite", nbytes=1 << 20))
        now += length
    replicas = Replicas(["a"] * n)
    feed = Feed(now_ns=lambda: LONG_AFTER)
    feed.set_cores("g", cores)
    feed.set_cores_used("g", used)
    replicas.record(*calls)
    for data in replicas.drain():
        feed.ingest(data)
    return verdicts(feed.snapshot())


def test_sending_that_takes_much_of_each_step_is_told_with_its_rate() -> None:
    found = paced([10 * MS] * 40, sent_ns=6 * MS)

    assert [each.code for each in found] == ["sending"]
    assert words(found[0].sentence) == "Sending takes 60 % of each step"
    assert words(found[0].evidence) == (
        "6.00 ms of 10.0 ms per step; most by all_reduce of 1 MiB at 262 MB/s; limit not measured"
    )
    assert [each.code for each in paced([200_000] * 40, sent_ns=150_000)] == ["good"]  # nobody notices it


def test_steps_that_became_slower_are_told_with_the_step_and_what_grew() -> None:
    found = paced([5 * MS] * 60 + [20 * MS] * 60)

    assert [each.code for each in found] == ["slower"]
    assert found[0].sentence == "Steps became slower: 200 to 50.0 per second since step 60"
    assert found[0].evidence == "computing grew most: 4.98 ms to 20.0 ms per step"
    assert found[0].step == 60


def test_numbers_of_steps_may_be_far_apart() -> None:
    found = paced([5 * MS] * 60 + [20 * MS] * 60, gap=1 << 50)

    assert [each.code for each in found] == ["slower"]
    assert found[0].step == 60 + (1 << 50)
    assert found[0].evidence == "computing grew most: 4.98 ms to 20.0 ms per step"


def test_a_slow_moment_a_pause_and_warming_up_are_no_slowdown() -> None:
    assert [each.code for each in paced([5 * MS] * 60 + [20 * MS] * 20 + [5 * MS] * 40)] == ["good"]
    assert [each.code for each in paced([5 * MS] * 60 + [9000 * MS] + [5 * MS] * 60)] == ["good"]
    assert [each.code for each in paced([36 * MS] * 5 + [5 * MS] * 100)] == ["good"]


def test_other_steps_are_not_compared() -> None:
    fast, slow = even(60), []
    for step in range(60, 130):
        begin = 62 * MS + (step - 60) * 10 * MS
        slow.append(Call([begin] * 4, begin + MS, step=step, nbytes=1 << 22, inputs="finite"))

    assert [each.code for each in judged([*fast, *slow])] == ["good"]


def test_replicas_that_share_cores_are_told_what_to_expect() -> None:
    assert (
        paced([10 * MS] * 40, n=2, cores=1, used=0.9)[0].sentence
        == "Two replicas share a core: expect half the speed"
    )
    assert words(paced([10 * MS] * 40, n=4, cores=3, used=2.5)[0].sentence) == (
        "4 replicas share 3 cores: expect 75 % of the speed"
    )
    assert [each.code for each in paced([10 * MS] * 40, n=4, cores=4)] == ["good"]
    assert [each.code for each in paced([10 * MS] * 40, n=4, cores=3, used=0.1)] == ["good"]  # they sleep
    assert [each.code for each in paced([10 * MS] * 40, n=4, cores=3)] == ["good"]  # they may have slept


def test_a_full_memory_is_told_with_its_growth() -> None:
    replicas = Replicas(["a"] * 4)
    replicas.record(*even())
    feed = Feed(now_ns=lambda: LONG_AFTER)
    for data in replicas.drain():
        feed.ingest(data)
    feed.set_memory("g", MemoryFacts(1, 50 << 30, 80 << 30), step=10)
    assert verdicts(feed.snapshot())[0].code == "good"
    feed.set_memory("g", MemoryFacts(1, 75 << 30, 80 << 30), step=60)
    (found,) = verdicts(feed.snapshot())

    assert found.sentence == "Memory of replica 1 is nearly full: 75 GiB of 80 GiB"
    assert found.evidence == "growth per step 512 MiB; over 50 steps"


def test_a_strategy_that_is_over_is_no_news() -> None:
    replicas = Replicas(["a"] * 4)
    replicas.record(*(replace(call, group="old") for call in steps(40, [0, 0, 400_000, 0])))
    late = [
        replace(call, enter_ns=[20_000 * MS + call.step * MS] * 4, end_ns=20_000 * MS + call.step * MS + 1000)
        for call in even(40)
    ]
    replicas.record(*late)
    feed = Feed(now_ns=lambda: LONG_AFTER)
    for data in replicas.drain():
        feed.ingest(data)

    assert [group.group for group in feed.snapshot().groups] == ["g", "old"]
    assert [each.code for each in verdicts(feed.snapshot())] == ["good"]


def test_every_code_has_its_place() -> None:
    codes = set(
        re.findall(
            r'"(?:error|warning|good|watching)",\s*"(\w+)"',
            "".join(path.read_text(encoding="utf-8") for path in Path(judge.__file__).parent.glob("*.py")),
        )
    )

    assert codes - {"warning", "good"} >= {"gone", "late"}
    assert codes - {"warning"} <= set(PRIORITY) | {"good"}
    assert set(PRIORITY) <= codes
