"""The vectors of strategies once more, each replica in a process of its own: values, functions and errors travel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.reference.checking import OWN_VECTORS, cases_in, check
from tests.reference.inexpressible import OVER_PROCESSES
from tests.reference.interpreter.clusters import Clusters
from tests.reference.interpreter.world import World
from tests.reference.outcomes import NotExpressible
from tests.reference.report import AREA, NOT_EXPRESSIBLE

pytestmark = [pytest.mark.timeout(60), pytest.mark.filterwarnings("ignore")]

AREAS = (
    "contexts",
    "cross_device_ops",
    "distribute_dataset",
    "distribute_from_function",
    "gather",
    "merge_call",
    "reduce",
    "replica_context",
    "run",
    "values",
    "variables",
)
MOST_REPLICAS = 4
NOT_EXPRESSIBLE_CASES = 5
"""Replica functions that append to a list of the notebook, and one that takes the notebook's iterator along."""


def cases() -> list[tuple[str, Any]]:
    """Those of `AREAS` that four processes can run."""
    return [
        (area, case)
        for area, case in cases_in(OWN_VECTORS)
        if area in AREAS and case["input"].get("replicas", 1) <= MOST_REPLICAS
    ]


@pytest.fixture(scope="module")
def processes() -> Iterator[Clusters]:
    shared = Clusters(processes=True, replicas=MOST_REPLICAS)
    yield shared
    shared.close()


@pytest.fixture(scope="module")
def refused() -> list[str]:
    return []


@pytest.mark.parametrize(("area", "case"), cases(), ids=[case["id"] for _, case in cases()])
def test_vector(
    area: str,
    case: Any,
    processes: Clusters,
    tmp_path: Path,
    refused: list[str],
    record_property: Callable[[str, object], None],
) -> None:
    record_property(AREA, f"{area} (processes)")
    try:
        check(case, World(scratch=tmp_path, clusters=processes), OVER_PROCESSES)
    except NotExpressible as reason:
        refused.append(case["id"])
        record_property(NOT_EXPRESSIBLE, f"{case['id']}: {reason}")
        pytest.skip(f"not expressible: {reason}")


def test_few_cases_cannot_be_expressed(refused: list[str]) -> None:
    assert len(refused) <= NOT_EXPRESSIBLE_CASES, refused
