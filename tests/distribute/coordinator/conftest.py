"""Coordinators on the two kinds of embedded cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import workbench as wb
from workbench import distribute


@pytest.fixture(scope="module", params=["threads", "processes"])
def three(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A cluster of three devices, of each kind."""
    with wb.connect(replicas=3, processes=request.param == "processes", replace=True) as connected:
        yield connected


@pytest.fixture
def strategy(three: Any) -> Iterator[Any]:
    """Two workers and a server."""
    made = distribute.ParameterServerStrategy(servers=1)
    yield made
    made.close()


@pytest.fixture
def coordinator(strategy: Any) -> Any:
    """Schedules functions on the two workers."""
    return distribute.coordinator.ClusterCoordinator(strategy)
