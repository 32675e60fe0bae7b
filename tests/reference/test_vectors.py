"""Every reference vector, through the public API. `README.md` says how to read the results."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.reference.decisions import decided
from tests.reference.kinds import observe
from tests.reference.on_tpu import refuse_untraceable
from tests.reference.outcomes import Mismatch, Missing, NotExpressible
from tests.reference.report import AREA, MISSING, NOT_EXPRESSIBLE
from tests.reference.world import World

# By warning, the library says that it follows the reference into a loss, and NumPy that a program makes a NaN;
# here only results count.
pytestmark = [pytest.mark.timeout(60), pytest.mark.filterwarnings("ignore")]

ON_TPU = (
    "run",
    "reduce",
    "gather",
    "values",
    "variables",
    "replica_context",
    "merge_call",
    "distribute_dataset",
)
"""Areas that `--strategy tpu` runs."""
OWN_VECTORS = Path(__file__).parent / "vectors"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    given = metafunc.config.getoption("vectors", default=None)
    folder = Path(given) if given else OWN_VECTORS
    files = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    if not files:
        raise pytest.UsageError(f"there are no vectors (*.json) in {folder}")
    cases = [(file["area"], case) for file in files for case in file["cases"]]
    if metafunc.config.getoption("strategy", default=None) == "tpu":
        cases = [(area, case) for area, case in cases if area in ON_TPU]
    metafunc.parametrize(("area", "case"), cases, ids=[case["id"] for _, case in cases])


def test_vector(area: str, case: Any, world: World, record_property: Callable[[str, object], None]) -> None:
    record_property(AREA, area)
    try:
        observed = observe(case["input"], world)
        if world.clusters.tpu:
            refuse_untraceable(case, observed)
    except Missing as missing:
        record_property(MISSING, missing.name)
        pytest.skip(str(missing))
    except NotExpressible as reason:
        record_property(NOT_EXPRESSIBLE, f"{case['id']}: {reason}")
        pytest.skip(f"not expressible: {reason}")
    try:
        observed.check(decided(case["input"], case["expected"]))
    except Mismatch:
        if "expected_alternative" not in case:
            raise
        observed.check(decided(case["input"], case["expected_alternative"]["expected"]))
