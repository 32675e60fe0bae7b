"""Every reference vector, through the public API. `README.md` says how to read the results."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.reference.checking import OWN_VECTORS, cases_in, check
from tests.reference.inexpressible import ON_TPU
from tests.reference.interpreter.world import World
from tests.reference.outcomes import Missing, NotExpressible, exists
from tests.reference.report import AREA, MISSING, NOT_EXPRESSIBLE, Area
from tests.reference.standing import refusal, standings

# The library warns when it follows the reference into a loss, and NumPy when a program makes a NaN. Only results
# count here.
pytestmark = [pytest.mark.timeout(60), pytest.mark.filterwarnings("ignore")]

TPU_AREAS = (
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
_STANDINGS = standings()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" not in metafunc.fixturenames:
        return
    given = metafunc.config.getoption("vectors", default=None)
    folder = Path(given) if given else OWN_VECTORS
    cases = list(cases_in(folder))
    if not cases:
        raise pytest.UsageError(f"there are no vectors (*.json) in {folder}")
    if metafunc.config.getoption("strategy", default=None) == "tpu":
        cases = [(area, case) for area, case in cases if area in TPU_AREAS]
    metafunc.parametrize(("area", "case"), cases, ids=[case["id"] for _, case in cases])


@pytest.fixture(scope="module")
def found() -> dict[str, Area]:
    """What the cases that have run so far came to, by area."""
    return defaultdict(Area)


def test_vector(
    area: str,
    case: Any,
    world: World,
    found: dict[str, Area],
    request: pytest.FixtureRequest,
    record_property: Callable[[str, object], None],
) -> None:
    record_property(AREA, area)
    found[area].failed += 1  # until another outcome is known
    try:
        check(case, world, ON_TPU if world.clusters.tpu else None)
    except Missing as missing:
        own = request.config.getoption("vectors", default=None) is None
        if own and missing.name not in _STANDINGS[area].missing:
            pytest.fail(f"{missing.name} does not exist, and the table does not have it as later work")
        record_property(MISSING, missing.name)
        found[area].missing[missing.name] += 1
        found[area].failed -= 1
        pytest.skip(str(missing))
    except NotExpressible as reason:
        record_property(NOT_EXPRESSIBLE, f"{case['id']}: {reason}")
        found[area].not_expressible[case["id"]] = str(reason)
        found[area].failed -= 1
        pytest.skip(f"not expressible: {reason}")
    found[area].passed += 1
    found[area].failed -= 1


@pytest.mark.parametrize("area", _STANDINGS)
def test_the_area_stands_as_the_table_says(
    area: str, found: dict[str, Area], request: pytest.FixtureRequest
) -> None:
    """A public name that is gone, or cases that pass no longer, fail here and not only where they are looked up."""
    if request.config.getoption("vectors", default=None) or request.config.getoption(
        "strategy", default=None
    ):
        pytest.skip("the table is about the project's own vectors, on the strategies that they name")
    cases = sum(1 for name, _ in cases_in(OWN_VECTORS) if name == area)
    if found[area].cases < cases:
        pytest.skip(f"{found[area].cases} of {cases} cases of {area} were selected")
    assert not (text := refusal(found[area], _STANDINGS[area])), f"{area}: {text}"


def test_the_table_has_every_area() -> None:
    assert _STANDINGS.keys() == {area for area, _ in cases_in(OWN_VECTORS)}


def test_names_of_later_work_are_not_there_yet() -> None:
    names = Counter(name for standing in _STANDINGS.values() for name in standing.missing)

    assert [name for name in names if exists(name.removeprefix("wb."))] == []
