"""Clusters for the tests of the runtime. Programs are local functions, which travel by value as in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from workbench import runtime
from workbench.runtime import Cluster, Group

LAYOUTS: dict[str, dict[str, Any]] = {
    "processes": {"replicas": 2},
    "threads": {"replicas": 2, "processes": False},
    "threads_in_a_worker": {"replicas": 2, "replicas_per_worker": 2},
    "hosts": {"hosts": 2, "replicas_per_host": 1},
}

Run = Callable[..., Any]


def runner(group: Group) -> Run:
    """`run(program, *args, **options of Group.run)`: prepares and runs, as a strategy does with a plain function."""

    def run(program: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return group.run(group.prepare(program, user_function=program), args, **options)

    return run


@pytest.fixture(scope="module", params=LAYOUTS)
def any_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Two replicas, in each of the layouts."""
    with runtime.connect(**LAYOUTS[request.param]) as cluster:
        yield cluster


@pytest.fixture
def any_group(any_cluster: Cluster) -> Iterator[Group]:
    """Both replicas of `any_cluster`."""
    group = any_cluster.group(any_cluster.devices, label="Test")
    yield group
    group.close()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Two replicas in processes of their own."""
    with runtime.connect(replicas=2) as cluster:
        yield cluster


@pytest.fixture
def group(cluster: Cluster) -> Iterator[Group]:
    """Both replicas of `cluster`."""
    group = cluster.group(cluster.devices, label="Test")
    yield group
    group.close()


@pytest.fixture
def run(group: Group) -> Run:
    """Runs programs on `group`."""
    return runner(group)


@pytest.fixture
def run_any(any_group: Group) -> Run:
    """Runs programs on `any_group`."""
    return runner(any_group)
