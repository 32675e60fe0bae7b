"""Two replicas in processes of their own for the tests of a module, and a strategy on them for each test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import workbench as wb


@pytest.fixture(scope="module")
def cluster() -> Iterator[wb.Cluster]:
    """Two replicas, for which an input process reads."""
    with wb.connect(replicas=2, processes=True, replace=True) as cluster:
        yield cluster


@pytest.fixture
def strategy(cluster: wb.Cluster) -> Iterator[Any]:
    """A strategy on the module's cluster."""
    made = wb.MirroredStrategy()
    yield made
    made.group.close()
