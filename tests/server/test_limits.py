"""The configuration of the Jupyter server: each limit can be set, and the guide lists it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from traitlets import TraitError
from traitlets.config import Config

from workbench.server.extension import WorkbenchApp
from workbench.server.limits import Limits


def test_the_configuration_of_the_server_sets_each_limit() -> None:
    traits = WorkbenchApp.class_own_traits(config=True)
    given = {"max_clusters": 3, "max_replicas": 16, "idle_minutes": 30.0, "start_seconds": 90.0}
    given |= {"ended_clusters": 1, "max_pages": 5, "updates_per_second": 2.0, "max_run_bytes": 1 << 20}
    assert set(given) == set(traits)

    app = WorkbenchApp(config=Config({"WorkbenchApp": given}))
    assert app.limits == Limits(3, 16, 30.0, 90.0, 1, 5, 2.0, 1 << 20)
    assert WorkbenchApp().limits == Limits()
    for name, value in {"max_replicas": 0, "idle_minutes": -1.0, "updates_per_second": 20.0}.items():
        with pytest.raises(TraitError, match=name):
            WorkbenchApp(config=Config({"WorkbenchApp": {name: value}}))


def test_the_guide_lists_what_the_configuration_sets() -> None:
    page = Path(__file__).parents[2] / "notebooks" / "guide" / "reference" / "settings.md"
    rows = re.findall(
        r"^\| `c\.WorkbenchApp\.(\w+)` \| (\S+) \| (.+) \|$", page.read_text(encoding="utf-8"), re.MULTILINE
    )

    assert {name: (float(default), text) for name, default, text in rows} == {
        name: (trait.default(), trait.help)
        for name, trait in WorkbenchApp.class_own_traits(config=True).items()
    }
