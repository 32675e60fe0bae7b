"""Parameter servers on the two kinds of embedded cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import workbench as wb
from workbench import distribute


@pytest.fixture(scope="module", params=["threads", "processes"])
def four(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A cluster of four devices, of each kind."""
    with wb.connect(replicas=4, processes=request.param == "processes", replace=True) as connected:
        yield connected


@pytest.fixture
def servers(four: Any) -> Iterator[Any]:
    """A strategy with two workers and two servers."""
    made = distribute.ParameterServerStrategy(servers=2)
    yield made
    made.close()


@pytest.fixture
def in_three(four: Any) -> Iterator[Any]:
    """One whose variables are divided into three shards."""
    partitioner = distribute.experimental.partitioners.FixedShardsPartitioner(3)
    made = distribute.ParameterServerStrategy(None, partitioner, servers=2)
    yield made
    made.close()
