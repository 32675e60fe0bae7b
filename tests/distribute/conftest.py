"""Strategies on the two kinds of embedded cluster: replicas as threads of this process, and as processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import workbench as wb
from workbench import distribute


@pytest.fixture(scope="module", params=["threads", "processes"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A cluster of one host with two replicas, of each kind."""
    with wb.connect(replicas=2, processes=request.param == "processes", replace=True) as connected:
        yield connected


@pytest.fixture(scope="module")
def threads() -> Iterator[Any]:
    """A cluster of one host with four replicas in this process."""
    with wb.connect(replicas=4, processes=False, replace=True) as connected:
        yield connected


@pytest.fixture
def strategy(cluster: Any) -> Iterator[Any]:
    """Two replicas on each kind of cluster."""
    made = distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    yield made
    made.group.close()


@pytest.fixture
def local(threads: Any) -> Iterator[Any]:
    """Two replicas that share this process's objects."""
    made = distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    yield made
    made.group.close()
