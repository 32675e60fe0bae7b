"""A strategy's resolver and the cluster that is connected: they have the same tasks, or the strategy says so."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from distributed import Scheduler, SpecCluster, Worker

import workbench as wb
from tests.own_cluster import wait_for_workers
from workbench.distribute import ClusterSpec, ParameterServerStrategy
from workbench.distribute.cluster_resolver import (
    DaskClusterResolver,
    SimpleClusterResolver,
    TFConfigClusterResolver,
)
from workbench.errors import FailedPreconditionError, InvalidArgumentError
from workbench.runtime.joining.agreement import Connected, require_agreement
from workbench.runtime.joining.roster import tasks_of

NAMES = ("chief-0", "worker-0", "worker-0.1", "ps-0")


def _resolver(**tasks: int) -> SimpleClusterResolver:
    return SimpleClusterResolver(
        ClusterSpec({job: [f"{job}{n}:1" for n in range(count)] for job, count in tasks.items()})
    )


@pytest.fixture
def there() -> Iterator[SpecCluster]:
    """A cluster that tasks have formed."""
    quiet = {"dashboard": False, "host": "127.0.0.1"}
    with SpecCluster(
        scheduler={"cls": Scheduler, "options": {**quiet, "port": 0, "dashboard_address": "127.0.0.1:0"}},
        workers={name: {"cls": Worker, "options": {"nthreads": 1, **quiet}} for name in NAMES},
    ) as formed:
        wait_for_workers(formed, len(NAMES))
        yield formed


@pytest.fixture
def joined(there: SpecCluster) -> Iterator[wb.Cluster]:
    """A cluster of tasks, which is connected."""
    with wb.connect(there) as cluster:
        yield cluster


def _tpu(resolver: Any) -> Any:
    return wb.TPUStrategy(resolver)


OTHERS = [
    ({"chief": 1, "worker": 2, "ps": 1}, r"chief-0, ps-0, worker-0 \(worker-1 not among them\)"),
    ({"worker": 1, "ps": 1}, r"chief-0, ps-0, worker-0 \(chief-0 not named by the resolver\)"),
    ({"worker": 3, "ps": 1}, r"\(worker-1, worker-2 not among them; chief-0 not named by the resolver\)"),
]


@pytest.mark.parametrize("strategy", [wb.MultiWorkerMirroredStrategy, ParameterServerStrategy, _tpu])
def test_a_resolver_of_other_tasks_is_refused_and_both_are_named(joined: wb.Cluster, strategy: Any) -> None:
    for tasks, told in OTHERS:
        with pytest.raises(FailedPreconditionError, match=told) as raised:
            strategy(_resolver(**tasks))
        assert f"SimpleClusterResolver, names {sum(tasks.values())} tasks, " in str(raised.value)
        assert "wb.current_cluster().close()" in str(raised.value)
    assert not joined.closed


def test_a_resolver_of_the_same_tasks_is_taken(joined: wb.Cluster) -> None:
    for resolver in (_resolver(chief=1, worker=1, ps=1), DaskClusterResolver(joined.client)):
        assert wb.MultiWorkerMirroredStrategy(resolver).cluster_resolver is resolver
        strategy = ParameterServerStrategy(resolver)
        assert strategy.cluster_resolver is resolver
        strategy.close()
    assert wb.MultiWorkerMirroredStrategy(SimpleClusterResolver(ClusterSpec({}))).num_replicas_in_sync == 3


@pytest.mark.parametrize(
    "layout", [{"replicas": 2}, {"replicas": 2, "processes": False}, {"hosts": 2, "replicas_per_host": 2}]
)
def test_an_embedded_cluster_plays_as_many_tasks_as_it_has_hosts_workers_or_devices(layout: Any) -> None:
    with wb.connect(**layout, replace=True):
        for tasks in ({"worker": 2}, {"chief": 1, "worker": 1}, {"worker": 1}):
            wb.MultiWorkerMirroredStrategy(_resolver(**tasks))
        with pytest.raises(
            FailedPreconditionError,
            match=r"names 3 tasks, worker-0, .* only \d hosts?, .* wb\.connect\(hosts=3, replace=True\)\. To",
        ):
            wb.MultiWorkerMirroredStrategy(_resolver(worker=3))


def _require(resolver: SimpleClusterResolver, connected: Connected, *, all_devices: bool) -> None:
    require_agreement(resolver, tasks_of(resolver.cluster_spec()), connected, all_devices=all_devices)


@pytest.mark.parametrize("connected", [False, True])
@pytest.mark.parametrize("ask", [wb.connect, wb.MultiWorkerMirroredStrategy, ParameterServerStrategy])
def test_a_resolver_is_asked_once_while_other_threads_may_connect(
    there: SpecCluster, ask: Any, connected: bool
) -> None:
    asked: list[str] = []
    refused: list[BaseException] = []

    def connects() -> None:
        try:
            wb.connect(replicas=0)  # refused only where it would start
        except InvalidArgumentError as error:
            refused.append(error)

    def while_another_connects(what: str) -> None:
        asked.append(what)
        other = threading.Thread(target=connects)
        other.start()
        other.join(30.0)
        assert not other.is_alive()

    class Slow(SimpleClusterResolver):
        def cluster_spec(self) -> ClusterSpec:
            while_another_connects("cluster_spec")
            return super().cluster_spec()

        def dask_cluster(self) -> Any:
            while_another_connects("dask_cluster")
            return there

    with contextlib.ExitStack() as stack:
        if connected:
            stack.enter_context(wb.connect(there))
        made = ask(Slow(ClusterSpec({job: ["a:1"] for job in ("chief", "worker", "ps")})))
        current = wb.current_cluster()
        assert current is not None
        stack.callback(current.close)
        if isinstance(made, ParameterServerStrategy):
            stack.callback(made.close)
    expected = ["cluster_spec"] if connected and ask is not wb.connect else ["cluster_spec", "dask_cluster"]
    assert asked == expected
    assert len(refused) == len(asked)


def test_a_cluster_that_is_connected_while_a_resolver_is_asked_is_taken(there: SpecCluster) -> None:
    connected: list[wb.Cluster] = []

    class Slow(SimpleClusterResolver):
        def dask_cluster(self) -> Any:
            connected.append(wb.connect(there, stall_seconds=20))
            return there

    wb.MultiWorkerMirroredStrategy(Slow(ClusterSpec({job: ["a:1"] for job in ("chief", "worker", "ps")})))
    with connected[0]:
        assert len(connected) == 1
        assert wb.current_cluster() is connected[0]


@pytest.mark.parametrize("strategy", [wb.MultiWorkerMirroredStrategy, ParameterServerStrategy, _tpu])
def test_a_resolver_that_gives_no_cluster_spec_is_named(strategy: Any) -> None:
    class Mine(SimpleClusterResolver):
        def cluster_spec(self) -> Any:
            return {"worker": ["a:1"]}

    with (
        wb.connect(replicas=2, processes=False, replace=True),
        pytest.raises(
            TypeError, match=r"Mine.cluster_spec\(\) must return a wb.distribute.ClusterSpec, got dict: "
        ),
    ):
        strategy(Mine(ClusterSpec({})))


@pytest.mark.parametrize(
    ("strategy", "argument"),
    [
        (wb.MultiWorkerMirroredStrategy, "MultiWorkerMirroredStrategy: cluster_resolver"),
        (ParameterServerStrategy, "ParameterServerStrategy: cluster_resolver"),
        (_tpu, "TPUStrategy: tpu_cluster_resolver"),
    ],
)
def test_the_class_of_a_resolver_is_refused(strategy: Any, argument: str) -> None:
    told = (
        f"{argument} is a resolver, got the class TFConfigClusterResolver; write TFConfigClusterResolver(...)"
    )
    with pytest.raises(TypeError, match=f"^{re.escape(told)}$"):
        strategy(TFConfigClusterResolver)


@pytest.mark.parametrize("strategy", [wb.MultiWorkerMirroredStrategy, ParameterServerStrategy, _tpu])
def test_a_class_that_is_no_resolver_is_told_from_one(strategy: Any) -> None:
    with pytest.raises(
        TypeError,
        match=r"cluster_resolver is one of wb\.distribute\.cluster_resolver, got type: <class 'int'>; S",
    ):
        strategy(int)


def test_tasks_that_may_be_missing_and_evaluators_are_no_disagreement() -> None:
    connected = Connected(("worker-0", "evaluator-0"), hosts=1, devices=2, here=False, incomplete=True)

    _require(_resolver(worker=3), connected, all_devices=True)
    with pytest.raises(FailedPreconditionError, match="worker-0 not named"):
        _require(_resolver(ps=1), connected, all_devices=True)


def test_one_task_is_no_cluster_elsewhere() -> None:
    connected = Connected(("a", "b"), hosts=2, devices=2, here=False, incomplete=False)

    _require(_resolver(worker=2), connected, all_devices=True)
    with pytest.raises(
        FailedPreconditionError,
        match=r"^the strategy's resolver, a SimpleClusterResolver, names 1 task, worker-0; the connected cluster "
        r"has no named tasks, only 2 hosts, 2 workers and 2 devices\. To use the resolver's tasks: "
        r"wb\.current_cluster\(\)\.close\(\), then make the strategy again\. To use what is connected: leave the "
        r"resolver out$",
    ):
        _require(_resolver(worker=1), connected, all_devices=True)
