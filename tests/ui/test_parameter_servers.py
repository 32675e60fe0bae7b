"""Strategies with parameter servers, and their variables, in the views and cells that other strategies have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench import distribute
from workbench.errors import FailedPreconditionError, InvalidArgumentError
from workbench.ui import formatters
from workbench.ui.cells.replica_cells import only_strategy, run_cell


@pytest.fixture(scope="module")
def servers() -> Iterator[Any]:
    """A strategy with a worker and two servers, whose tables are divided in two."""
    partitioner = distribute.experimental.partitioners.FixedShardsPartitioner(2)
    with wb.connect(replicas=3, replace=True):
        yield distribute.ParameterServerStrategy(None, partitioner, servers=2)


def test_a_variable_is_inspected_where_its_shards_are(servers: Any) -> None:
    with servers.scope():
        table = wb.Variable(np.arange(6.0).reshape(3, 2), name="table")
        whole = wb.Variable(7.0, name="whole")

    shards = wb.inspect(table).values
    (alone,) = wb.inspect(whole).values

    assert [(value.name, value.replicas[0].device) for value in shards] == [
        ("table/part_0:0", "ps:0"),
        ("table/part_1:0", "ps:1"),
    ]
    assert [value.replicas[0].summary.shape for value in shards] == [(2, 2), (1, 2)]  # type: ignore[union-attr]
    assert alone.replicas[0].summary.mean == 7  # type: ignore[union-attr]
    assert f"{alone.replicas[0].host}:{alone.replicas[0].device}" in repr(wb.inspect(whole))
    wb.testing.assert_finite(table)


def test_a_notebook_draws_strategy_and_variables(servers: Any) -> None:
    with servers.scope():
        whole = wb.Variable(7.0, name="drawn")

    assert "ps:1" in formatters.bundle_of(servers)["text/html"]
    assert "ServerVariable" in formatters.bundle_of(whole)["text/html"]
    assert "ps:1" in repr(wb.topology(servers))


def test_placements_are_logged(servers: Any) -> None:
    wb.debugging.set_log_device_placement(True)
    try:
        with servers.scope():
            logged = wb.Variable(7.0, name="logged")
    finally:
        wb.debugging.set_log_device_placement(False)

    (told,) = [
        event for event in servers.gang.cluster.feed.snapshot().events if "'logged:0'" in event.message
    ]
    assert told.message == (
        f"ParameterServerStrategy: variable 'logged:0' float32[] is on ps:{logged.description.server}"
    )


def test_cells_do_not_run_on_workers(servers: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"ClusterCoordinator\(strategy\)\.schedule\(fn\)"):
        run_cell("1", servers)
    with pytest.raises(FailedPreconditionError, match="there is no strategy"):
        only_strategy({"strategy": servers})
    with pytest.raises(RuntimeError, match="no replicas that run steps together"):
        wb.collectives(servers)
