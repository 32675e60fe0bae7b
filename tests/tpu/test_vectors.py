"""The reference cases of strategies, on emulated TPU devices; `--strategy tpu` of tests/reference shows the table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.reference.checking import OWN_VECTORS, cases_in, check
from tests.reference.inexpressible import ON_TPU
from tests.reference.interpreter.clusters import Clusters
from tests.reference.interpreter.world import World
from tests.reference.outcomes import NotExpressible
from tests.reference.test_vectors import TPU_AREAS

pytestmark = [pytest.mark.timeout(60), pytest.mark.filterwarnings("ignore")]

NOT_TRACEABLE = 8
"""Cases that tracing cannot express: Python branches, effects outside, texts, components of different shapes."""


def cases() -> list[Any]:
    """Cases that name no strategy."""
    return [
        case for area, case in cases_in(OWN_VECTORS) if area in TPU_AREAS and "strategy" not in case["input"]
    ]


@pytest.fixture(scope="module")
def clusters() -> Iterator[Clusters]:
    shared = Clusters(tpu=True)
    yield shared
    shared.close()


@pytest.fixture(scope="module")
def refused() -> list[str]:
    return []


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_case(case: Any, clusters: Clusters, tmp_path: Path, refused: list[str]) -> None:
    try:
        check(case, World(scratch=tmp_path, clusters=clusters), ON_TPU)
    except NotExpressible as reason:
        refused.append(case["id"])
        pytest.skip(f"not expressible: {reason}")


def test_few_cases_cannot_be_traced(refused: list[str]) -> None:
    assert len(refused) <= NOT_TRACEABLE, refused
