"""Strategies over several hosts, and after their cluster has closed; each test has a cluster of its own."""

from __future__ import annotations

import numpy as np
import pytest

import workbench as wb
from workbench.communicators.core.options import CommunicationImplementation, CommunicationOptions
from workbench.distribute import MirroredStrategy, experimental, get_replica_context
from workbench.distribute.cluster_resolver import ClusterResolver
from workbench.errors import ClusterClosed, InvalidArgumentError


def test_several_hosts_make_one_strategy() -> None:
    with wb.connect(hosts=2, replicas_per_host=2, processes=False) as cluster:
        strategy = wb.MultiWorkerMirroredStrategy()
        assert strategy.num_replicas_in_sync == 4
        resolver = strategy.cluster_resolver
        assert isinstance(resolver, ClusterResolver)
        assert (resolver.task_type, resolver.task_id, resolver.rpc_layer) == ("worker", 0, None)
        assert resolver.cluster_spec().num_tasks("worker") == 2
        assert resolver.master() == resolver.cluster_spec().task_address("worker", 0)
        assert (
            strategy.run(lambda: get_replica_context().strategy.cluster_resolver.task_id).values == (0,) * 4
        )
        total = strategy.run(lambda: get_replica_context().all_reduce("sum", np.float32(1)))
        assert total.values == (4, 4, 4, 4)
        older = experimental.MultiWorkerMirroredStrategy("ring")
        assert older.communication_options == CommunicationOptions(
            implementation=CommunicationImplementation.RING
        )
        uneven = MirroredStrategy([device.string for device in cluster.devices[:3]])
        with pytest.raises(InvalidArgumentError, match="equally many replicas"):
            uneven.distribute_dataset(wb.data.Dataset.range(4).batch(2))


def test_what_explain_sharding_says_is_what_replicas_on_several_hosts_get() -> None:
    with wb.connect(hosts=2, replicas_per_host=2, processes=False):
        strategy = wb.MultiWorkerMirroredStrategy()
        data = wb.data.Dataset.range(11).batch(8)
        explained = wb.explain_sharding(data, strategy)
        assert (explained.hosts, explained.replicas_per_host) == (2, 2)
        steps = [strategy.local_results(step) for step in strategy.distribute_dataset(data)]
        got = [[part.tolist() for part in step] for step in steps]
        assert [[list(cell.ids) for cell in step] for step in explained.steps] == got


def test_a_strategy_of_a_closed_cluster_says_so() -> None:
    with wb.connect(replicas=1, processes=False):
        strategy = MirroredStrategy(["CPU:0"])
        with strategy.scope():
            v = wb.Variable(1.0)
    for use in (lambda: strategy.run(lambda: 1), v.read_value, lambda: v.assign(2.0)):
        with pytest.raises(ClusterClosed, match=r"wb\.connect"):
            use()
