"""TPU devices, emulated on the CPU; the tests need JAX, which is an extra of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import workbench as wb

pytest.importorskip("jax", reason="JAX is not installed: pip install -e '.[jax]'")

REPLICAS = 4


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """One host with four emulated devices."""
    with wb.connect(tpu=REPLICAS) as connected:
        yield connected


@pytest.fixture(scope="module", params=["1 host × 4", "2 hosts × 2"])
def layouts(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Four emulated devices in one process, then in two, with 64-bit numbers."""
    hosts = int(request.param[0])
    with wb.connect(hosts=hosts, tpu=REPLICAS // hosts, environment={"JAX_ENABLE_X64": "1"}) as connected:
        yield connected


@pytest.fixture
def strategy(cluster: Any) -> Iterator[Any]:
    """Four replicas on one host."""
    made = wb.TPUStrategy()
    yield made
    made.group.close()


@pytest.fixture
def spread(layouts: Any) -> Iterator[Any]:
    """Four replicas in each layout."""
    made = wb.TPUStrategy()
    yield made
    made.group.close()


def by_replica(strategy: Any, *values: Any) -> Any:
    """A distributed value with these components."""
    return strategy.distribute_values_from_function(lambda context: values[context.replica_id_in_sync_group])


def ids(strategy: Any, dtype: Any = np.float32) -> Any:
    """A distributed value: each replica its number."""
    return by_replica(strategy, *np.arange(REPLICAS, dtype=dtype))
