"""The view of what input costs: in outputs, for listeners, and in recorded runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.data.dataset import Dataset
from workbench.telemetry.runs.recorded_run import open_run
from workbench.ui.formatters import bundle_of
from workbench.ui.models.messages import MODELS
from workbench.ui.models.model_check import misfits
from workbench.ui.runs.runs_model import replay_of
from workbench.ui.widgets import shown
from workbench.ui.widgets.bundle import MIME
from workbench.ui.widgets.live_sources import input_source


def test_an_explained_dataset_gives_text_html_and_the_model() -> None:
    bundle = bundle_of(Dataset.range(10).batch(4).explain(), {MIME})

    assert "batch(4)" in bundle["text/plain"]
    assert "<table>" in bundle["text/html"]
    assert bundle[MIME]["view"] == "input"
    assert misfits(bundle[MIME]["model"], MODELS["input"]) == []


def test_those_who_listen_are_told_of_what_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(shown, "listeners", [lambda view, make: told.append((view, make))])

    Dataset.range(10).batch(4).explain()

    ((view, make),) = told
    assert view == "input"
    assert [stage["name"] for stage in make().model()["pipelines"][0]["stages"]] == ["range", "batch(4)"]
    assert make().ended


@pytest.fixture(scope="module")
def strategy() -> Any:
    with wb.connect(replicas=2, processes=False, replace=True):
        yield wb.MirroredStrategy()


def test_a_live_source_follows_the_replicas(strategy: Any) -> None:
    distributed = strategy.distribute_dataset(Dataset.range(24).map(lambda x: x).batch(4))
    source = input_source(distributed.explain())
    assert source.model()["pipelines"] == []
    assert not source.ended

    for batch in distributed:
        strategy.run(lambda rows: rows.sum(), args=(batch,))

    change = source.change()
    assert change is not None
    sampled, waited = change["model"]["sampled"], change["model"]["waited_percent"]
    assert (sampled["run_id"], sampled["group"]) == (strategy.group.gang.run_id, strategy.group.name)
    assert sampled["steps"] == sorted(sampled["steps"])
    assert sampled["steps"][-1] <= strategy.group.number
    assert len(sampled["steps"]) == len(waited) > 1
    assert all(0 <= percent <= 100 for percent in waited)
    names = [stage["name"] for stage in change["model"]["pipelines"][0]["stages"]]
    assert names == ["range", "map(<lambda>)", "batch(4)", "even_split(2)"]
    assert len(change["model"]["replicas"]) == 2


def test_a_recorded_run_keeps_what_input_cost(strategy: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    distributed = strategy.distribute_dataset(Dataset.range(24).map(lambda x: x).batch(4))

    with wb.record(path):
        for batch in distributed:
            strategy.run(lambda rows: rows.sum(), args=(batch,))
        distributed.explain()

    found = replay_of(open_run(path))["input"]
    assert found["status"] == "replay"
    assert [stage["name"] for stage in found["pipelines"][0]["stages"]][:2] == ["range", "map(<lambda>)"]
    assert len(found["replicas"]) == 2
