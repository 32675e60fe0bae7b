"""What the input pipelines of hosts cost while replicas read: `DistributedDataset.explain`."""

from __future__ import annotations

from typing import Any

import pytest

import workbench as wb
from workbench.data.dataset import Dataset


def _stages(flow: Any, host: int = 0) -> dict[str, int]:
    return {stage.name: stage.elements for stage in flow.pipelines[host].stages}


def test_before_anything_is_read_it_says_so(strategy: Any) -> None:
    found = strategy.distribute_dataset(Dataset.range(8).batch(4)).explain()

    assert (found.flow.status, found.flow.pipelines) == ("live", ())
    assert repr(found) == "Input: live, 0 s\nNothing was read yet: numbers come with the first batches."


@pytest.mark.parametrize("mapped", [False, True])
def test_each_stage_is_measured_where_it_is_read(strategy: Any, mapped: bool) -> None:
    data = Dataset.range(24)
    distributed = strategy.distribute_dataset((data.map(lambda x: x) if mapped else data).batch(4))
    list(distributed)

    flow = distributed.explain().flow

    (pipeline,) = flow.pipelines
    # Each process reads what only computes row numbers; one process per host reads everything else.
    times = pipeline.processes
    assert times == (1 if mapped or strategy.group.gang.shipping.codec.by_reference else 2)
    found = _stages(flow)
    assert found["batch(4)"] == 6 * times
    assert found["even_split(2)"] == 12 * times
    assert flow.limit == "epoch 0"
    assert [wait.replica for wait in flow.replicas] == [0, 1]
    assert all(wait.waited_seconds > 0 for wait in flow.replicas)


def test_an_epoch_begins_anew(strategy: Any) -> None:
    distributed = strategy.distribute_dataset(Dataset.range(24).map(lambda x: x).batch(4))
    for _ in range(2):
        list(distributed)

    flow = distributed.explain().flow

    assert flow.limit == "epoch 1"
    assert _stages(flow)["range"] == 24


def test_an_explanation_follows_the_replicas(strategy: Any) -> None:
    distributed = strategy.distribute_dataset(Dataset.range(24).map(lambda x: x).batch(4))
    found = distributed.explain()
    assert not found.ended

    list(distributed)

    assert found.flow.pipelines == ()
    assert _stages(found.now())["batch(4)"] == 6


def test_datasets_of_a_function_are_measured_one_by_one(strategy: Any) -> None:
    distributed = strategy.distribute_datasets_from_function(
        lambda context: Dataset.range(12).map(lambda x: x).batch(2)
    )
    list(distributed)

    assert _stages(distributed.explain().flow)["range"] == 12


def test_the_default_strategy_is_sent_to_the_dataset_itself() -> None:
    strategy = wb.distribute.get_strategy()
    distributed = strategy.distribute_dataset(Dataset.range(4).batch(2))

    with pytest.raises(RuntimeError, match=r"dataset\.explain\(\)"):
        distributed.explain()
