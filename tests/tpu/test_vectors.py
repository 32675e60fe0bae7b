"""The reference cases of strategies, on emulated TPU devices; `--strategy tpu` of tests/reference shows the table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.reference.clusters import Clusters
from tests.reference.decisions import decided
from tests.reference.kinds import observe
from tests.reference.on_tpu import refuse_untraceable
from tests.reference.outcomes import Mismatch, NotExpressible
from tests.reference.test_vectors import ON_TPU, OWN_VECTORS
from tests.reference.world import World

pytestmark = [pytest.mark.timeout(60), pytest.mark.filterwarnings("ignore")]

NOT_TRACEABLE = 8
"""Cases that tracing cannot express: Python branches, effects outside, texts, components of different shapes."""


def cases() -> Iterator[Any]:
    """Cases that name no strategy."""
    for area in ON_TPU:
        for case in json.loads((OWN_VECTORS / f"{area}.json").read_text(encoding="utf-8"))["cases"]:
            if "strategy" not in case["input"]:
                yield case


@pytest.fixture(scope="module")
def clusters() -> Iterator[Clusters]:
    shared = Clusters(tpu=True)
    yield shared
    shared.close()


@pytest.fixture(scope="module")
def refused() -> list[str]:
    return []


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case["id"])
def test_case(case: Any, clusters: Clusters, tmp_path: Path, refused: list[str]) -> None:
    observed = observe(case["input"], World(scratch=tmp_path, clusters=clusters))
    try:
        refuse_untraceable(case, observed)
    except NotExpressible:
        refused.append(case["id"])  # an error that says why is what such a program gets
        return
    try:
        observed.check(decided(case["input"], case["expected"]))
    except Mismatch:
        if "expected_alternative" not in case:
            raise
        observed.check(decided(case["input"], case["expected_alternative"]["expected"]))


def test_few_cases_cannot_be_traced(refused: list[str]) -> None:
    assert len(refused) <= NOT_TRACEABLE, refused
