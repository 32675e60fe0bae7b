"""The view of parameter servers: in outputs, for those who are told, and in recorded runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench import distribute
from workbench.distribute.coordinator.cluster_coordinator import ClusterCoordinator
from workbench.telemetry.runs.recorded_run import open_run
from workbench.ui.formatters import bundle_of, coordinator_html, servers_html
from workbench.ui.models.messages import MODELS
from workbench.ui.models.model_check import misfits
from workbench.ui.runs.runs_model import replay_of
from workbench.ui.widgets import shown
from workbench.ui.widgets.bundle import MIME
from workbench.ui.widgets.live_sources import servers_source


def test_a_strategy_a_coordinator_and_a_status_give_text_html_and_the_model() -> None:
    with wb.connect(replicas=2, processes=False, replace=True):
        strategy = distribute.ParameterServerStrategy(servers=1)
        coordinator = ClusterCoordinator(strategy)
        with strategy.scope():
            table = wb.Variable(np.zeros((8, 2)), name="<b>")
        coordinator.schedule(lambda: table.assign_add(np.ones((8, 2))))
        coordinator.join()

        for value in (strategy, coordinator, strategy.status()):
            bundle = bundle_of(value, {MIME})

            assert bundle[MIME]["view"] == "servers"
            model = bundle[MIME]["model"]
            assert misfits(model, MODELS["servers"]) == []
            assert "<b>" not in bundle["text/html"]
            assert "&lt;b&gt;" in bundle["text/html"]
            assert "1 function done, none under way." in bundle["text/plain"]
            assert [each["name"] for each in model["servers"][0]["variables"]] == ["<b>"]
            assert model["queue"]["done"] == 1
        assert "ps:0" in servers_html(strategy)
        assert "worker:0" in coordinator_html(coordinator)


def test_those_who_listen_are_told_of_servers_that_start(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(shown, "listeners", [lambda view, make: told.append((view, make))])
    with wb.connect(replicas=2, processes=False, replace=True):
        strategy = distribute.ParameterServerStrategy(servers=1)
        ((view, make),) = told
        source = make()

        assert view == "servers"
        assert source.model()["status"] == "live"
        assert not source.ended
        with strategy.scope():
            w = wb.Variable(1.0, name="w")
        change = source.change()
        assert [each["name"] for each in change["model"]["servers"][0]["variables"]] == ["w"]
        strategy.close()
        assert source.ended
        assert source.model()["sentence"] == "These parameter servers have ended."
        del w


def test_looking_does_not_keep_a_strategy_alive() -> None:
    with wb.connect(replicas=2, processes=False, replace=True):
        strategy = distribute.ParameterServerStrategy(servers=1)
        watched = strategy.hosting.watched
        servers_source(watched).model()
        ended = strategy.hosting.servers[0]._closed
        del strategy

        assert ended.wait(60)
        assert watched.ended


def test_a_recorded_run_keeps_what_its_servers_did(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    with wb.connect(replicas=2, processes=False, replace=True), wb.record(path):
        strategy = distribute.ParameterServerStrategy(servers=1)
        with strategy.scope():
            w = wb.Variable(1.0, name="w")
        w.assign_add(1.0)
        strategy.close()

    found = replay_of(open_run(path))["servers"]
    assert found["status"] == "replay"
    assert misfits(found, MODELS["servers"]) == []
