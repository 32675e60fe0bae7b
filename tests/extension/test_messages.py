"""The plugin for JupyterLab and the server agree on the messages, and on the views that settings can name."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest

from workbench.server.channels import CHANNEL_OF, RUNS
from workbench.server.clusters import describe
from workbench.server.summary import PoolSummary, StrategySummary, Summary
from workbench.server.worker_options import MAX_REPLICAS
from workbench.telemetry.feed.losses import losses
from workbench.telemetry.snapshot import Counters
from workbench.ui.layouts import LAYOUTS
from workbench.ui.layouts import MIME as LAYOUT_MIME
from workbench.ui.models.messages import MODELS
from workbench.ui.widgets.bundle import MIME, VERSION

EXTENSION = Path(__file__).parents[2] / "extension"
LAB = EXTENSION / "src" / "lab"
MESSAGES = LAB / "server" / "messages.ts"


def body_of(declaration: str) -> str:
    text = MESSAGES.read_text(encoding="utf-8")
    found = re.search(re.escape(declaration) + r" (?:= )?\{(.*?)\n\}", text, re.DOTALL)
    assert found is not None, declaration
    return found.group(1)


@pytest.mark.parametrize("model", [Summary, StrategySummary, PoolSummary])
def test_a_summary_has_the_same_fields_on_both_sides(model: type) -> None:
    names = re.findall(r"^  (\w+):", body_of(f"export interface {model.__name__}"), re.MULTILINE)

    assert names == [field.name for field in fields(model)]


def test_the_panel_asks_for_as_many_replicas_as_the_server_starts() -> None:
    text = (LAB / "clusters" / "worker_options.ts").read_text(encoding="utf-8")
    assert f"export const MAX_REPLICAS = {MAX_REPLICAS};" in text


def test_a_cluster_has_the_same_fields_on_both_sides() -> None:
    class Link:
        summary = None

        class entry:
            id = kind = name = kernel = workers_of = ""
            pid = started = 0

    names = re.findall(r"^  (\w+):", body_of("export interface ClusterInfo"), re.MULTILINE)

    assert names == list(describe(Link()))  # type: ignore[arg-type]


def test_views_have_the_same_channels_on_both_sides() -> None:
    pairs = re.findall(r'^  (\w+): "(\w+)"', body_of("export const CHANNEL_OF"), re.MULTILINE)

    assert dict(pairs) == CHANNEL_OF


def test_the_list_of_recorded_runs_has_the_same_name_on_both_sides() -> None:
    assert RUNS == ("", "runs")
    assert 'export const RUNS = "runs";' in MESSAGES.read_text(encoding="utf-8")


def test_the_settings_know_every_view() -> None:
    schema = json.loads((EXTENSION / "schema" / "plugin.json").read_text(encoding="utf-8"))
    setting = schema["properties"]["openOnFirstCluster"]

    views = {choice["const"] for choice in setting["items"]["oneOf"]}
    assert views == set(MODELS) - {"replay"}  # it belongs to a file, never to a cluster
    assert set(setting["default"]) <= set(MODELS)


def test_the_guide_lists_all_settings_with_their_defaults() -> None:
    schema = json.loads((EXTENSION / "schema" / "plugin.json").read_text(encoding="utf-8"))
    page = EXTENSION.parent / "notebooks" / "guide" / "reference" / "settings.md"
    rows = re.findall(
        r"^\| `(\w+)` \| ([^|]+) \| `([^`]+)` \|", page.read_text(encoding="utf-8"), re.MULTILINE
    )

    assert [(name, title, json.loads(default)) for name, title, default in rows] == [
        (name, setting["title"], setting["default"]) for name, setting in schema["properties"].items()
    ]


def test_keys_of_panes_are_not_those_that_jupyterlab_has_there() -> None:
    from jupyterlab.commands import get_app_dir

    schema = json.loads((EXTENSION / "schema" / "plugin.json").read_text(encoding="utf-8"))
    ours = {tuple(shortcut["keys"]) for shortcut in schema["jupyter.lab.shortcuts"]}
    folder = Path(get_app_dir()) / "schemas" / "@jupyterlab"
    theirs = [
        (tuple(shortcut["keys"]), shortcut["selector"])
        for file in folder.rglob("*.json")
        for shortcut in json.loads(file.read_text(encoding="utf-8")).get("jupyter.lab.shortcuts", ())
    ]

    assert (("Alt W",), ".jp-Activity") in theirs
    # Panes never appear in a notebook.
    assert [pair for pair in theirs if pair[0] in ours and not pair[1].startswith(".jp-Notebook")] == []


def test_views_and_texts_say_the_same_of_what_was_lost() -> None:
    code = (EXTENSION / "src" / "views" / "collective_table.tsx").read_text(encoding="utf-8")
    all_kinds = losses(Counters(failed=1, incomplete=1, dropped=1, dropped_events=1))

    assert len(all_kinds) == 4
    for text, meaning in all_kinds:
        assert f'"{text.removeprefix("1 ")}"' in code
        assert f'"{meaning}"' in code


def test_outputs_keep_views_in_the_form_that_the_plugin_draws() -> None:
    text = (LAB / "saved" / "saved_model.ts").read_text(encoding="utf-8")

    assert f'SAVED = "{MIME}"' in text
    assert f"VERSION = {VERSION};" in text


def test_the_layouts_have_the_same_names_and_views_on_both_sides() -> None:
    text = (LAB / "layouts" / "layouts.ts").read_text(encoding="utf-8")
    body = re.search(r"SHIPPED = \{\n(.*?)\n\}", text, re.DOTALL)
    assert body is not None
    _, *rows = re.split(r"^  (\w+): beside", body.group(1), flags=re.MULTILINE)

    named = zip(rows[::2], rows[1::2], strict=True)
    assert {name: tuple(re.findall(r'"(\w+)"', views)) for name, views in named} == LAYOUTS
    assert LAYOUT_MIME in (LAB / "layouts" / "layout_commands.ts").read_text(encoding="utf-8")
