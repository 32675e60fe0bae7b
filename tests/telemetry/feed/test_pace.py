"""How long steps take, and how much of that is waiting: of runs with pauses, overlapped steps and a slow first step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import pytest

from tests.telemetry.simulation import MS, Call, Replicas
from workbench.telemetry.feed.feed import Feed
from workbench.telemetry.snapshot import GroupView
from workbench.telemetry.told import SentSteps
from workbench.telemetry.verdicts import verdicts

STEPS = 40
STEP_MS = 20
PAUSES_MS = [1000 + 400 * (step % 7) for step in range(STEPS)]


def played(
    lengths_ms: Sequence[int], pauses_ms: Sequence[int], *, late_ms: int = 4, told: bool = True
) -> tuple[GroupView, list[str]]:
    """Steps of four replicas, of which replica 2 comes late, each with a pause behind it; and what is said of them.

    They meet in the middle of a step: the rest of it lies behind its last collective.
    """
    starts = list(accumulate(length + pause for length, pause in zip(lengths_ms, pauses_ms, strict=True)))
    calls = []
    for step, (length, start) in enumerate(zip(lengths_ms, [0, *starts], strict=False)):
        middle = start + length // 2
        enter = [(middle + late_ms * (replica == 2)) * MS for replica in range(4)]
        calls.append(Call(enter, max(enter) + MS, step=step, inputs="finite"))
    replicas = Replicas(["a"] * 4)
    replicas.record(*calls)
    feed = Feed(now_ns=lambda: 10**15)
    for data in replicas.drain():
        feed.ingest(data)
    if told:
        paused = [0, *accumulate(pauses_ms[:-1])]
        sent = [0, *starts[:-1]]
        feed.set_sent(
            "g",
            SentSteps(
                tuple(range(len(sent))), tuple(at * MS for at in sent), tuple(ms * MS for ms in paused)
            ),
        )
    snapshot = feed.snapshot()
    return snapshot.groups[0], [each.code for each in verdicts(snapshot)]


def test_pauses_between_steps_change_no_figure() -> None:
    without, _ = played([STEP_MS] * STEPS, [0] * STEPS)
    paused, said = played([STEP_MS] * STEPS, PAUSES_MS)

    assert without.pace.steps_per_second == pytest.approx(1000 / STEP_MS)
    assert without.pace.waited_share == pytest.approx(4 / STEP_MS)
    assert replace(paused.pace, end_ns=0) == replace(without.pace, end_ns=0)
    assert replace(paused.lateness, slow_steps=()) == replace(without.lateness, slow_steps=())
    assert [(step.seconds, step.waited_percent) for step in paused.steps] == [
        (step.seconds, step.waited_percent) for step in without.steps
    ]
    assert said == ["late"]


def test_a_replica_is_late_by_its_part_of_a_step_not_of_a_pause() -> None:
    """A run of an earlier version does not tell pauses from steps: nobody is named that costs so little of them."""
    assert played([STEP_MS] * STEPS, PAUSES_MS, told=False)[1] == ["good"]
    assert played([STEP_MS] * STEPS, PAUSES_MS)[1] == ["late"]


def test_longer_pauses_are_no_slower_steps() -> None:
    count = 140
    pauses = [1000 if step < 70 else 4000 for step in range(count)]

    assert played([STEP_MS] * count, pauses, late_ms=0)[1] == ["good"]
    assert played([STEP_MS] * 70 + [4 * STEP_MS] * 70, pauses, late_ms=0)[1] == ["slower"]


def test_a_slow_first_step_counts_as_three_usual_ones() -> None:
    group, said = played([10_000, *[STEP_MS] * (STEPS - 1)], [0] * STEPS, late_ms=0)

    assert group.steps[0].seconds == pytest.approx(5 + STEP_MS / 2000)
    assert group.pace.steps_per_second == pytest.approx((STEPS - 1) / (STEPS + 1) * 1000 / STEP_MS)
    assert said == ["good"]


def test_overlapped_steps_take_what_each_adds() -> None:
    """All were sent at once: the notebook never paused, and each begins when the one before is over."""
    group, _ = played([STEP_MS] * STEPS, [0] * STEPS, told=False)
    replayed, said = played([STEP_MS] * STEPS, [0] * STEPS)

    assert group.pace == replayed.pace
    assert said == ["late"]


def test_each_replica_waits_what_the_figure_of_all_averages() -> None:
    group, _ = played([STEP_MS] * STEPS, PAUSES_MS)
    shares = group.lateness.waited_shares

    assert shares == pytest.approx([4 / STEP_MS] * 2 + [0] + [4 / STEP_MS])
    assert sum(share or 0 for share in shares) / 3 == pytest.approx(group.pace.waited_share)


def test_steps_of_which_some_never_meet_have_no_rate() -> None:
    replicas = Replicas(["a"] * 2)
    replicas.record(*(Call([step * MS] * 2, step * MS + 1, step=step) for step in range(0, 40, 2)))
    feed = Feed()
    for data in replicas.drain():
        feed.ingest(data)

    assert feed.snapshot().groups[0].pace.steps_per_second is None


def test_views_get_the_newest_steps_and_the_feed_keeps_more() -> None:
    group, _ = played([STEP_MS] * 100, [0] * 100)

    assert group.told.sent is not None
    assert group.told.sent.steps == tuple(range(36, 100))
