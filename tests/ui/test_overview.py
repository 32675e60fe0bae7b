"""`wb.overview`: text, HTML, and the model that a notebook draws."""

from __future__ import annotations

import numpy as np
import pytest

import workbench as wb
from workbench.errors import FailedPreconditionError
from workbench.ui.widgets.bundle import MIME


def step() -> None:
    """All replicas meet once."""
    wb.distribute.get_replica_context().all_reduce("sum", np.ones(8, np.float32))


def test_it_says_what_is_to_be_said_first_and_four_figures(cluster: wb.Cluster) -> None:
    strategy = wb.MirroredStrategy()
    for _ in range(3):
        strategy.run(step)
    shown = wb.overview(strategy)

    text, html = repr(shown), shown._repr_html_()
    for part in ("Watching: 3 of 20 steps", "steps per second", "2 of 2", "not finite"):
        assert part in text
        assert part in html
    assert shown.to_dict()["step"] == 2

    bundle = shown._repr_mimebundle_(include={MIME})
    assert bundle[MIME]["view"] == "overview"
    assert bundle[MIME]["model"]["overview"]["replicas"] == 2


def test_it_says_how_far_the_loop_over_a_dataset_is(cluster: wb.Cluster) -> None:
    strategy = wb.MirroredStrategy()
    data = strategy.distribute_dataset(wb.data.Dataset.range(12).batch(2))
    strategy.run(step)
    assert "epoch" not in repr(wb.overview(strategy))
    for _ in range(2):
        for batch in data:
            strategy.run(lambda _: step(), args=(batch,))

    shown = wb.overview(strategy)
    assert "epoch 1, batch 6 of 6" in repr(shown)
    model = shown._repr_mimebundle_(include={MIME})[MIME]["model"]
    assert model["snapshot"]["groups"][0]["told"]["epoch"] == {"number": 1, "batches": 6, "of": 6}


def step_without_one() -> None:
    """Replica 1 fails before it meets the others."""
    if wb.distribute.get_replica_context().replica_id_in_sync_group == 1:
        raise ValueError("no data")
    step()


def test_after_a_first_step_that_failed_it_says_only_what_is_known(cluster: wb.Cluster) -> None:
    strategy = wb.MirroredStrategy()
    with pytest.raises(ValueError, match="no data"):
        strategy.run(step_without_one)

    failed = repr(wb.overview(strategy)).splitlines()
    strategy.run(step)
    healthy = repr(wb.overview(strategy)).splitlines()

    assert failed[0] == f"Overview, {strategy.group.name}, 2 replicas, live"
    assert "Step 0 failed on replica 1" in failed[1]
    assert healthy[0] == f"Overview, {strategy.group.name}, 2 replicas on 1 host, step 1, live"


def fail() -> None:
    """Every replica fails before it meets another."""
    raise ValueError("no data")


def test_a_step_that_fails_is_told_until_one_succeeds_even_where_replicas_never_meet(
    cluster: wb.Cluster,
) -> None:
    strategy = wb.MirroredStrategy()
    with pytest.raises(ValueError, match="no data"):
        strategy.run(fail)

    assert "Step 0 failed on replica 0: ValueError at test_overview.py:" in repr(wb.overview(strategy))
    assert "step 0 failed on replica 0: ValueError" in repr(wb.diagnose(strategy))
    strategy.run(lambda: 1)
    assert "failed" not in repr(wb.overview(strategy))
    assert "failed" not in repr(wb.diagnose(strategy))


def train(batch: float) -> dict[str, np.float64]:
    """A step that returns its loss, another one on each replica."""
    context = wb.distribute.get_replica_context()
    context.all_reduce("sum", np.ones(8, np.float32))
    return {"accuracy": np.float64(1), "loss": np.float64(batch + context.replica_id_in_sync_group)}


def test_the_loss_that_steps_return_has_its_course_by_step_and_replica(cluster: wb.Cluster) -> None:
    strategy = wb.MirroredStrategy()
    for k in range(4):
        strategy.run(train, args=(4.0 - k,))
    shown = wb.overview(strategy)

    course = cluster.feed.snapshot().groups[0].told.result
    assert course is not None
    assert (course.name, course.function, course.steps) == ("loss", "train", (0, 1, 2, 3))
    assert course.mean == (4.5, 3.5, 2.5, 1.5)
    assert course.replicas == ((4.0, 3.0, 2.0, 1.0), (5.0, 4.0, 3.0, 2.0))
    assert "loss              1.50" in repr(shown)

    model = shown._repr_mimebundle_(include={MIME})[MIME]["model"]
    assert list(model["snapshot"]["groups"][0]["told"]["result"]["mean"]) == [4.5, 3.5, 2.5, 1.5]


def test_without_a_cluster_it_says_what_to_do() -> None:
    with pytest.raises(FailedPreconditionError, match=r"wb.overview\(\)"):
        wb.overview(wb.distribute.get_strategy())
