"""The heat map of lateness: one late replica is a straggler, bad luck is not."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest

from tests.telemetry.simulation import MS, Call, Replicas, steps
from workbench.telemetry.feed.feed import Feed
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

    assert tiny(20_000, 60_000).stragglers == ()  # a third of a step, but 20 µs are too little to act on
    assert tiny(200_000, MS).stragglers == ()  # what another program on the machine may cost
    assert tiny(300_000, 20 * MS).stragglers == ()  # 300 µs in a step of 20 ms do not matter either
    assert tiny(300_000, MS).stragglers == (1,)


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


def noisy(
    n: int, seed: int, *, count: int = 64, late: dict[int, int] | None = None, drift: bool = False
) -> list[Call]:
    """Steps of 2 ms, in which replicas come as chance has it, up to 400 µs apart.

    Args:
      n: Replicas.
      seed: The seed of the random numbers.
      count: Steps.
      late: By how many ns some are later than that, in each step.
      drift: Chance changes slowly, as the load of a machine does, instead of from step to step.
    """
    rng = random.Random(seed)
    mood = [rng.random() for _ in range(n)]
    calls = []
    for step in range(count):
        mood = [0.9 * m + 0.1 * rng.random() if drift else rng.random() for m in mood]
        start = 2 * (step + 1) * MS
        enter = [start + int(400_000 * m) + (late or {}).get(r, 0) for r, m in enumerate(mood)]
        calls.append(Call(enter, max(enter) + 50_000, step=step))
    return calls


@pytest.mark.parametrize("n", [2, 3, 4, 64])
@pytest.mark.parametrize("count", [20, 64])
def test_of_many_healthy_runs_none_has_a_straggler(n: int, count: int) -> None:
    named = [
        seed
        for seed in range(100 if n < 64 else 10)
        if lateness(Replicas(["a"] * n), *noisy(n, seed, count=count)).stragglers
    ]
    assert named == []


@pytest.mark.parametrize("n", [2, 4, 64])
def test_the_late_replica_of_noisy_runs_is_found_with_its_figure(n: int) -> None:
    for seed in range(20 if n < 64 else 3):
        heat = lateness(Replicas(["a"] * n), *noisy(n, seed, late={1: MS}))
        assert heat.stragglers == (1,)
        pattern = r"late step after step: replica 1, by ([\d.]+) ms a step \((\d+)\u202f%\)"
        found = re.fullmatch(pattern, heat.text)
        assert found is not None
        assert 0.7 < float(found[1]) < 1.3
        assert 35 < int(found[2]) < 65


@pytest.mark.parametrize(
    ("late", "told"), [(400_000, "0.4 ms"), (104 * MS, "104 ms"), (1500 * MS, "1500 ms")]
)
def test_lateness_is_told_without_powers_of_ten(late: int, told: str) -> None:
    calls = []
    for step in range(20):
        start = (step + 1) * 2 * late
        calls.append(Call([start, start, start + late], start + late + 50_000, step=step))
    assert f"replica 2, by {told} a step" in lateness(Replicas(["a"] * 3), *calls).text


def test_two_late_replicas_are_both_named() -> None:
    assert lateness(Replicas(["a"] * 4), *noisy(4, 0, late={1: MS, 3: MS})).stragglers == (1, 3)


def test_waiting_that_is_less_than_a_tenth_of_the_time_in_collectives_names_nobody() -> None:
    assert [bool(_named(percent)) for percent in (8, 9, 11, 12)] == [False, False, True, True]


def _named(percent: int) -> tuple[int, ...]:
    """The replicas named for steps of 5 ms, where waiting takes this share of all time in collectives."""
    late = 400_000
    spent = late * 100 // percent  # spent by both together; the late one spends `late` less
    calls = [
        Call([k * 5 * MS, k * 5 * MS + late], k * 5 * MS + (spent + late) // 2, step=k) for k in range(1, 31)
    ]
    return lateness(Replicas(["a", "a"]), *calls).stragglers


def test_where_replicas_share_cores_that_is_said_instead_of_a_name() -> None:
    def on(cores: int, late_ns: int, used: float | None = None) -> Lateness:
        replicas = Replicas(["a"] * 4)
        replicas.record(*noisy(4, 1, late={2: late_ns}))
        feed = Feed(now_ns=lambda: 0)
        feed.set_cores("g", cores)
        feed.set_cores_used("g", used)
        for data in replicas.drain():
            feed.ingest(data)
        return feed.snapshot().groups[0].lateness

    assert on(2, MS).stragglers == ()
    assert on(2, MS).text == "4 replicas share 2 cores"
    assert on(4, MS).stragglers == (2,)
    assert on(2, 2 * MS).stragglers == (2,)  # more than sharing explains
    assert on(2, 2 * MS).text.endswith("; 4 replicas share 2 cores")
    assert on(2, MS, used=1.9).stragglers == ()
    assert on(2, MS, used=0.1).stragglers == (2,)  # nothing waits for a core
    assert "cores" not in on(2, MS, used=0.1).text
