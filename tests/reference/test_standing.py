"""The table of what is built: a name that goes missing fails, and so does a table that says less than there is."""

from __future__ import annotations

from pathlib import Path

import pytest

import workbench as wb
from tests.reference.checking import OWN_VECTORS, cases_in, check
from tests.reference.interpreter.clusters import Clusters
from tests.reference.interpreter.world import World
from tests.reference.outcomes import Missing
from tests.reference.report import Area
from tests.reference.standing import Standing, refusal, standings


def test_a_public_name_that_is_gone_is_no_later_work(
    monkeypatch: pytest.MonkeyPatch, clusters: Clusters, tmp_path: Path
) -> None:
    monkeypatch.delattr(wb.distribute.Strategy, "gather")
    case = next(case for area, case in cases_in(OWN_VECTORS) if area == "gather")

    with pytest.raises(Missing, match="gather") as caught:
        check(case, World(scratch=tmp_path, clusters=clusters))
    assert caught.value.name not in standings()["gather"].missing


def test_fewer_cases_than_the_floor_are_refused() -> None:
    assert refusal(Area(passed=3), Standing(passed=3)) == ""
    assert "2 cases pass, and 3 have passed before" in refusal(Area(passed=2), Standing(passed=3))
    assert "1 cases are not met" in refusal(Area(passed=3, failed=1), Standing(passed=3))


def test_a_table_that_is_out_of_date_is_refused() -> None:
    lacking = Area(passed=3)
    lacking.missing["wb.later"] = 2

    assert refusal(lacking, Standing(passed=3, later="later", missing={"wb.later": 2})) == ""
    for table in (Standing(passed=2, missing={"wb.later": 2}), Standing(passed=3, missing={"wb.later": 3})):
        assert "missing = {'wb.later': 2} is what was found" in refusal(lacking, table)
    inexpressible = Area(passed=3, not_expressible={"a/case": "no"})
    assert "out of date" in refusal(inexpressible, Standing(passed=3))
