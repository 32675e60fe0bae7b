"""The run at a glance, of records that were made for it."""

from __future__ import annotations

import pytest

from tests.extension.crowd import MS, Crowd
from workbench.telemetry.events import Event
from workbench.telemetry.snapshot import Snapshot
from workbench.ui.models.overview_model import overview_model

STEP_MS = 20


def run(replicas: int, steps: int) -> Crowd:
    """A run in which replica `replicas // 3` comes 5 ms late to each step of 20 ms."""
    crowd = Crowd(replicas, capacity=256)
    for step in range(steps):
        crowd.work(1, at_ns=10**9 + step * STEP_MS * MS)
        crowd.deliver()
    return crowd


def test_nothing_is_said_of_a_run_without_collectives() -> None:
    model = overview_model(Snapshot(), status="live")

    assert (model.group, model.step, model.steps_per_second, model.waited_percent) == ("", -1, None, None)
    assert model.verdict.severity == "watching"


@pytest.mark.parametrize("replicas", [4, 64])
def test_the_figures_are_those_of_all_replicas(replicas: int) -> None:
    crowd = run(replicas, 40)
    model = overview_model(crowd.feed.snapshot(), status="live")

    assert (model.replicas, model.live, model.step, model.not_finite_steps) == (replicas, replicas, 39, 0)
    assert model.steps_per_second == pytest.approx(1000 / STEP_MS, rel=0.1)
    assert model.waited_percent is not None
    assert 15 < model.waited_percent < 35  # 5 of 20 ms
    assert (model.verdict.code, model.verdict.replica) == ("late", replicas // 3)
    assert model.verdict.link in ("lanes", "heat_map")
    assert [verdict.code for verdict in model.others] == []


def test_what_is_to_be_said_after_the_first_thing_comes_in_its_order() -> None:
    crowd = run(4, 40)
    newest = crowd.feed.snapshot().groups[0].generation
    for number in range(6):
        message = f"copies of w{number} differ: replica 2; largest difference 1"
        crowd.feed.add_event(
            Event("alert", "copies_differ", message, 10**9, severity="error", generation=newest)
        )
    model = overview_model(crowd.feed.snapshot(), status="live")

    assert model.verdict.sentence == "Copies of w0 differ: replica 2"
    assert [verdict.sentence for verdict in model.others] == [
        f"Copies of w{number} differ: replica 2" for number in range(1, 5)
    ]


def test_steps_are_told_one_by_one_beside_their_figures() -> None:
    (group,) = run(4, 100).feed.snapshot().groups

    assert [step.step for step in group.steps] == list(range(36, 100))
    assert all(step.seconds == pytest.approx(STEP_MS / 1000, abs=0.006) for step in group.steps[:-1])
    assert group.steps[-1].seconds is None
    assert len(group.lateness.late_steps) == len(group.lateness.replicas) == 4
    assert group.lateness.late_steps[1] > 60
    assert len(group.lateness.median_us) == len(group.lateness.steps)


def test_the_mean_and_the_end_of_a_collective_are_those_of_all_replicas() -> None:
    (group,) = run(64, 30).feed.snapshot().groups
    assert group.hidden_lanes == 32

    for item in group.items:
        assert item.mean_enter_ns < item.ready_ns < item.last_end_ns
        assert item.last_end_ns >= max(end for end in item.end_ns if end is not None)


def test_a_lost_replica_is_not_live() -> None:
    crowd = run(4, 30)
    generation = crowd.feed.snapshot().groups[0].generation
    event = Event("alert", "replica_lost", "gone", 1, severity="error", replica=2, generation=generation)
    crowd.feed.add_event(event)

    model = overview_model(crowd.feed.snapshot(), status="live")
    assert (model.live, model.replicas, model.lost) == (3, 4, (2,))
    assert (model.verdict.severity, model.verdict.replica) == ("error", 2)


def test_a_replica_of_another_strategy_that_is_lost_changes_nothing() -> None:
    crowd = run(4, 30)
    generation = crowd.feed.snapshot().groups[0].generation
    event = Event(
        "alert", "replica_lost", "gone", 1, "error", replica=2, generation=generation, group="other"
    )
    crowd.feed.add_event(event)

    model = overview_model(crowd.feed.snapshot(), status="live")
    assert (model.live, model.lost) == (4, ())
    assert model.verdict.code != "gone"


def test_a_replica_that_is_lost_after_a_recovery_is_not_live_whatever_step_another_strategy_is_at() -> None:
    """The one alert of a loss has the step of the youngest strategy on the worker."""
    crowd = run(4, 30)
    view = crowd.feed.snapshot().groups[0]
    succeeded, lost, again = (
        Event("lifecycle", "step_succeeded", "", 1, step=29, generation=view.generation, group=view.group),
        Event("alert", "replica_lost", "gone", 2, "error", replica=2, step=2, generation=view.generation),
        Event(
            "lifecycle", "step_succeeded", "", 3, step=30, generation=view.generation + 1, group=view.group
        ),
    )
    for event, gone in ((succeeded, ()), (lost, (2,)), (again, ())):
        crowd.feed.add_event(event)
        model = overview_model(crowd.feed.snapshot(), status="live")
        assert (model.live, model.lost) == (4 - len(gone), gone)
        assert (model.verdict.code == "gone") == bool(gone)


def test_a_step_that_an_inspection_knows_of_is_counted_as_not_finite() -> None:
    crowd = run(4, 30)
    generation = crowd.feed.snapshot().groups[0].generation

    def counted(step: int) -> int:
        message = "wb.inspect found in w: NaN"
        event = Event("alert", "nan", message, 1, severity="warning", step=step, generation=generation)
        crowd.feed.add_event(event)
        model = overview_model(crowd.feed.snapshot(), status="live")
        assert model.verdict.code == "nan"
        return model.not_finite_steps

    assert [counted(step) for step in (-1, 29, 20)] == [1, 1, 1]


def test_a_first_step_that_fails_everywhere_is_the_verdict() -> None:
    crowd = Crowd(4)
    crowd.feed.add_event(Event("lifecycle", "step_failed", "M: step 0 failed", 1, step=0, group="M/1"))

    model = overview_model(crowd.feed.snapshot(), status="live")
    assert (model.group, model.verdict.sentence) == ("", "Step 0 failed")


def test_of_a_cluster_that_was_closed_nobody_is_live() -> None:
    assert overview_model(run(4, 30).feed.snapshot(), status="stopped").live == 0
