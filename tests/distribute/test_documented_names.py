"""Options by the names that the reference documents, each with what it does to a step or to its input."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench import distribute
from workbench.errors import DeadlineExceededError


def _sum(options: Any) -> Any:
    context = distribute.get_replica_context()
    return context.all_reduce("SUM", [np.arange(5.0) + context.replica_id_in_sync_group, np.ones(3)], options)


@pytest.mark.parametrize(
    "options",
    [
        distribute.experimental.CommunicationOptions(bytes_per_pack=24),
        distribute.experimental.CommunicationOptions(
            implementation=distribute.experimental.CommunicationImplementation.RING, timeout_seconds=60
        ),
    ],
)
def test_a_collective_takes_options_by_their_documented_names(local: Any, options: Any) -> None:
    summed = local.run(_sum, args=(options,))

    for replica in (0, 1):
        np.testing.assert_array_equal(local.local_results(summed[0])[replica], [1, 3, 5, 7, 9])
        np.testing.assert_array_equal(local.local_results(summed[1])[replica], [2, 2, 2])


def test_collective_hints_bound_the_wait_for_other_replicas(local: Any) -> None:
    hints = distribute.experimental.CollectiveHints(bytes_per_pack=16, timeout_seconds=0.2)

    given_up = threading.Event()

    def only_the_first() -> None:
        if distribute.get_replica_context().replica_id_in_sync_group == 1:
            assert given_up.wait(30)
            return
        try:
            _sum(hints)
        finally:
            given_up.set()

    with pytest.raises(DeadlineExceededError, match="replica 1"):
        local.run(only_the_first)
    np.testing.assert_array_equal(local.local_results(local.run(_sum, args=(hints,))[1])[0], [2, 2, 2])


def test_input_options_say_how_often_an_input_function_is_called(local: Any) -> None:
    contexts = []

    def per_replica(context: distribute.InputContext) -> wb.data.Dataset:
        contexts.append((context.input_pipeline_id, context.num_input_pipelines))
        return wb.data.Dataset.range(2)

    options = distribute.InputOptions(
        experimental_replication_mode=distribute.InputReplicationMode.PER_REPLICA
    )
    steps = list(local.distribute_datasets_from_function(per_replica, options))

    assert sorted(set(contexts)) == [(0, 2), (1, 2)]
    assert [[int(part) for part in local.local_results(step)] for step in steps] == [[0, 0], [1, 1]]
