"""What inspections tell the log of a cluster, and what they tell again: after a rebuild, and once steps have run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import workbench as wb
from workbench.telemetry.snapshot import EventItem


@pytest.fixture
def cluster() -> Iterator[wb.Cluster]:
    with wb.connect(replicas=2, processes=False) as own:
        yield own


@pytest.fixture
def strategy(cluster: wb.Cluster) -> wb.MirroredStrategy:
    return wb.MirroredStrategy()


def told(cluster: wb.Cluster, name: str) -> list[EventItem]:
    return [event for event in cluster.feed.snapshot().events if event.name == name]


def rebuild(strategy: wb.MirroredStrategy) -> None:
    """Has replicas call different collectives, after which they are connected anew."""

    def differently() -> None:
        context = wb.distribute.get_replica_context()
        context.all_reduce("sum", np.ones(2 + context.replica_id_in_sync_group))

    before = strategy.group.generation
    with pytest.raises(wb.errors.CollectiveMismatch):
        strategy.run(differently)
    strategy.run(lambda: None)
    assert strategy.group.generation > before


def test_copies_that_differ_and_values_that_are_not_finite_are_told_anew_after_a_rebuild(
    cluster: wb.Cluster, strategy: wb.MirroredStrategy
) -> None:
    with strategy.scope():
        w = wb.Variable(np.zeros(3), name="w")

    def spoil() -> None:
        if wb.distribute.get_replica_context().replica_id_in_sync_group == 1:
            w.values[1].assign(np.array([0.0, np.nan, 1.0]))

    strategy.run(spoil)
    for _ in range(2):
        wb.inspect(w)
    assert [event.generation for event in told(cluster, "copies_differ")] == [0]
    assert [event.generation for event in told(cluster, "nan")] == [0]

    rebuild(strategy)
    for _ in range(2):
        wb.inspect(w)
    now = strategy.group.generation
    assert [event.generation for event in told(cluster, "copies_differ")] == [0, now]
    assert [event.generation for event in told(cluster, "nan")] == [0, now]
    w.assign(np.zeros(3))
    wb.inspect(w)
    assert told(cluster, "copies_agree")[-1].generation == now
    assert told(cluster, "finite")[-1].generation == now


def test_all_copies_agree_only_where_all_variables_were_compared(
    cluster: wb.Cluster, strategy: wb.MirroredStrategy
) -> None:
    with strategy.scope():
        w, same_name, b = (wb.Variable(np.zeros(3), name=name) for name in "wwb")
    wb.inspect(w)
    wb.inspect([w, b])  # so soon after the first, it adds nothing
    for _ in range(2):
        wb.inspect([w, same_name, b])

    messages = [event.message for event in told(cluster, "copies_agree")]
    assert messages == ["copies of w:0 agree", "all copies agree"]


def test_an_agreement_from_before_the_first_step_is_told_again_once_steps_have_run(
    cluster: wb.Cluster, strategy: wb.MirroredStrategy
) -> None:
    with strategy.scope():
        w = wb.Variable(np.zeros(3), name="w")
    for _ in range(2):
        wb.inspect(w)
    assert [event.step for event in told(cluster, "copies_agree")] == [-1]

    for _ in range(3):
        strategy.run(lambda: None)
    for _ in range(2):
        wb.inspect(w)
    assert [event.step for event in told(cluster, "copies_agree")] == [-1, 2]
