"""The heat map of lateness: one late replica is a straggler, bad luck is not."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.telemetry.simulation import MS, Call, Replicas, steps
from workbench.telemetry.feed import Feed
from workbench.telemetry.snapshot import Lateness


def lateness(replicas: Replicas, *calls: Call) -> Lateness:
    replicas.record(*calls)
    feed = Feed(now_ns=lambda: 0)
    for data in replicas.drain():
        feed.ingest(data)
    return feed.snapshot().groups[0].lateness


def test_cells_are_the_time_after_the_first_replica_summed_over_a_step() -> None:
    calls = [
        Call([MS, 2 * MS], 3 * MS, step=4, seq=0),
        Call([5 * MS, 4 * MS], 6 * MS, step=4, seq=1),
        Call([9 * MS, 9 * MS + 500], 10 * MS, step=5, seq=0),
    ]
    heat = lateness(Replicas(["a", "a"]), *calls)
    assert (heat.replicas, heat.steps) == ((0, 1), (4, 5))
    assert heat.late_us == ((1000.0, 0.0), (1000.0, 0.5))


def test_a_replica_that_is_late_step_after_step_is_a_straggler() -> None:
    assert lateness(Replicas(["a"] * 4), *steps(20, [0, 10_000, 5_000, 400_000])).stragglers == (3,)
    assert lateness(Replicas(["a"] * 2), *steps(20, [300_000, 0])).stragglers == (0,)


def test_one_bad_step_makes_no_straggler() -> None:
    calls = [*steps(20, [2000, 1000, 0]), Call([50 * MS, 50 * MS, 90 * MS], 91 * MS, step=20)]
    assert lateness(Replicas(["a"] * 3), *calls).stragglers == ()


def test_replicas_that_take_turns_in_being_late_are_no_stragglers() -> None:
    rng = random.Random(1)
    calls = []
    for step in range(60):
        start = (step + 1) * MS
        enter = [start + rng.randrange(300_000) for _ in range(4)]
        calls.append(Call(enter, max(enter) + 50_000, step=step))
    assert lateness(Replicas(["a"] * 4), *calls).stragglers == ()


def test_lateness_below_the_clock_error_makes_no_straggler() -> None:
    calls = steps(20, [0, 300_000])
    assert lateness(Replicas(["a", "b"], err_ns=200_000), *calls).stragglers == ()
    assert lateness(Replicas(["a", "b"], err_ns=1000), *calls).stragglers == (1,)


def test_lateness_that_costs_nothing_makes_no_straggler() -> None:
    calls = [Call([k * 100 * MS, k * 100 * MS + 1000], (k * 100 + 90) * MS, step=k) for k in range(30)]
    assert lateness(Replicas(["a", "a"]), *calls).stragglers == ()


def test_lateness_makes_a_straggler_only_if_the_others_lose_a_tenth_of_their_collectives_to_it() -> None:
    def late_by(late_ns: int, collective_ns: int) -> tuple[int, ...]:
        step_ns = 10 * MS
        calls = [
            Call([k * step_ns, k * step_ns + late_ns], k * step_ns + collective_ns, step=k)
            for k in range(1, 41)
        ]
        return lateness(Replicas(["a", "a"]), *calls).stragglers

    assert late_by(600_000, 9 * MS) == ()  # 0.6 of the 17.4 ms that both spend in it
    assert late_by(600_000, 2 * MS) == (1,)  # 0.6 of 3.4 ms


def test_a_few_steps_make_no_straggler() -> None:
    assert lateness(Replicas(["a"] * 2), *steps(19, [300_000, 0])).stragglers == ()


def test_a_replica_that_is_late_by_little_is_no_straggler_however_short_the_steps_are() -> None:
    def tiny(late_ns: int, step_ns: int) -> Lateness:
        calls = [
            Call([k * step_ns, k * step_ns + late_ns], k * step_ns + late_ns + 2000, step=k)
            for k in range(1, 41)
        ]
        return lateness(Replicas(["a", "a"]), *calls)

    assert tiny(20_000, 60_000).stragglers == ()  # a third of a step, but 20 µs are nothing to act on
    assert tiny(150_000, 10 * MS).stragglers == ()  # 150 µs of a step of 10 ms do not matter either
    assert tiny(150_000, MS).stragglers == (1,)


def test_what_workbench_itself_waits_for_makes_no_straggler() -> None:
    calls = [replace(call, purpose="input") for call in steps(30, [400_000, 0])]
    assert lateness(Replicas(["a", "a"]), *calls) == Lateness()


def test_a_step_in_which_everybody_is_late_is_slow() -> None:
    normal = [
        Call([k * MS, k * MS + 1000, k * MS + 1100, k * MS + 900], (k * MS) + 2000, step=k) for k in range(20)
    ]
    slow = Call([50 * MS, 50 * MS + 900_000, 50 * MS + 950_000, 50 * MS + 920_000], 51 * MS, step=20)
    heat = lateness(Replicas(["a"] * 4), *normal, slow)
    assert heat.slow_steps == (20,)
    assert heat.stragglers == ()


def test_only_the_newest_steps_are_shown() -> None:
    heat = lateness(Replicas(["a", "a"]), *steps(200, [0, 10]))
    assert heat.steps == tuple(range(136, 200))
