"""How long replicas wait for input: pauses of the notebook between cells change no figure."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.telemetry.feed.told_of_groups import ToldOfGroups
from workbench.telemetry.told import InputFacts, SentSteps

MS = 1_000_000
FETCHES = 16


def played(pauses_ms: Sequence[int], *, steps_sent: int = FETCHES, told: bool = True) -> InputFacts:
    """What is found out of fetches of four elements, each 40 ms after the one before and a pause.

    A step is sent 1 ms after each fetch. Replica 1 waits half of the time, and no replica in pauses.

    Args:
      pauses_ms: Before each fetch.
      steps_sent: How many steps have been sent by now.
      told: Whether the steps tell of pauses.
    """
    groups = ToldOfGroups()
    now, paused = 0, 0
    sent: list[tuple[int, int, int]] = []
    for fetch, pause in enumerate(pauses_ms):
        now += (40 + pause) * MS
        paused += pause * MS
        groups.add_input("g", now, waited_ns=(0, 20 * MS), elements=4, rows=(8, 8))
        if fetch < steps_sent:
            sent.append((fetch, now + MS, paused))
    steps, at_ns, paused_ns = zip(*sent, strict=True)
    groups.set_sent("g", SentSteps(steps, at_ns, paused_ns if told else ()))
    facts = groups.of("g").input
    assert facts is not None
    return facts


NONE = [0] * FETCHES
ALWAYS = [500 + 100 * (fetch % 3) for fetch in range(FETCHES)]
SOMETIMES = [2000 if fetch % 4 == 3 else 0 for fetch in range(FETCHES)]


def test_pauses_before_fetches_change_no_figure() -> None:
    expected = played(NONE)
    assert expected.waited_shares == (0.0, 0.5)
    assert played(ALWAYS) == played(SOMETIMES) == expected


def test_a_fetch_whose_pause_is_not_known_yet_does_not_count() -> None:
    paused = [*NONE[:-1], 3_600_000]
    facts = played(paused, steps_sent=FETCHES - 1)
    assert facts.waited_shares == (0.0, 0.5)
    assert facts.elements == 4 * (FETCHES - 2)
    assert played(paused) == played(NONE)


def test_fetches_that_no_step_follows_count() -> None:
    assert played(NONE, steps_sent=1) == played(NONE)


def test_where_nobody_tells_of_pauses_a_long_one_counts_as_three_steps() -> None:
    facts = played([3_600_000 if fetch == 5 else 0 for fetch in range(FETCHES)], told=False)
    assert facts.waited_shares == (0.0, round(0.5 * 15 / 17, 3))
