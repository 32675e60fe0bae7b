"""Every documented name of the reference exists and is used by a test, or is listed with what brings it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reference.documented import Documented, documented, names_used, refusals

TESTS = Path(__file__).parents[1]


def _used_by_tests() -> set[str]:
    files = [*TESTS.rglob("test_*.py"), TESTS / "distribute" / "inside_replicas.py"]
    return set().union(*(names_used(path.read_text(encoding="utf-8")) for path in files))


def test_every_documented_name_exists_and_is_used_by_a_test_or_is_listed_as_later() -> None:
    assert refusals(documented(), _used_by_tests()) == []


def test_no_documented_name_is_forgotten() -> None:
    table = documented()

    assert len(table.built) + len(table.later) == 100


def test_a_name_that_does_not_exist_is_refused() -> None:
    table = Documented({"tf.data.Nonsense": "wb.data.Nonsense"}, {})

    assert refusals(table, {"wb.data.Nonsense"}) == [
        "tf.data.Nonsense is missing: there is no wb.data.Nonsense"
    ]


def test_a_name_that_no_test_uses_is_refused() -> None:
    table = Documented({"tf.data.Options": "wb.data.Options"}, {})

    assert refusals(table, {"wb.data"}) == ["no test uses wb.data.Options, which is tf.data.Options"]
    assert refusals(table, {"wb.data.Options"}) == []


def test_a_name_that_exists_is_not_listed_as_later() -> None:
    table = Documented({}, {"tf.data.Options": "options", "tf.data.Nonsense": "nonsense"})

    assert refusals(table, set()) == [
        "tf.data.Options is listed as later, but wb.data.Options exists: move it to [built]"
    ]


def test_a_name_in_both_tables_is_refused() -> None:
    table = Documented({"tf.data.Options": "wb.data.Options"}, {"tf.data.Options": "options"})

    assert "tf.data.Options is in both tables" in refusals(table, {"wb.data.Options"})


@pytest.mark.parametrize(
    "program",
    [
        "import workbench as wb\nwb.data.Options()",
        "import workbench\nworkbench.data.Options()",
        "import workbench.data\nworkbench.data.Options()",
        "import workbench.data as d\nd.Options()",
        "from workbench import data\ndata.Options.deterministic",
        "from workbench.data import Options\ndef test():\n    Options()",
        "from workbench.data import Options as O\nx: O",
        "import workbench as wb\nD = wb.data\nD.Options()",
    ],
)
def test_a_use_is_found_however_the_name_is_imported(program: str) -> None:
    assert {"wb.data", "wb.data.Options"} <= names_used(program)


@pytest.mark.parametrize(
    "program",
    [
        "from workbench.data import Options",
        "import workbench as wb\nwb.data.OptionsOfOthers()",
        "import workbench as wb\n'wb.data.Options()'",
        "import numpy as wb\nwb.data.Options()",
        "import workbench as wb\nfound.data.Options()",
        "import workbench as wb\nwb.data.Options = 3",
    ],
)
def test_what_only_looks_like_a_use_is_none(program: str) -> None:
    assert "wb.data.Options" not in names_used(program)
