"""The list of recorded runs is told to pages by itself, and nobody looks for runs while no page shows it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.server.conftest import PATIENCE_SECONDS, Client, Server
from tests.telemetry.runs.test_recorder import record
from workbench.runtime.deploy.registry import Registry
from workbench.server import watched_runs
from workbench.server.channels import RUNS
from workbench.server.clusters import Clusters
from workbench.server.session import Session
from workbench.server.watched_runs import WatchedRuns
from workbench.ui.runs.recorded_runs import Folder, RecordedRuns


class Noticed(RecordedRuns):
    """Runs that tell when somebody has looked."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Folder(folder))
        self.looked = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def all(self, compare: Sequence[str] = ()) -> dict[str, Any]:
        found = super().all(compare)
        self._loop.call_soon_threadsafe(self.looked.set)
        return found

    async def looks_again(self) -> None:
        self.looked.clear()
        await asyncio.wait_for(self.looked.wait(), PATIENCE_SECONDS)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_runs, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(watched_runs, "_SHARE", 0)


def listener() -> None:
    """Somebody who looks at the list whenever that is drawn."""


def names(runs: WatchedRuns) -> list[str]:
    assert runs.model is not None
    return [run["name"] for run in runs.model["runs"]]


@pytest.mark.usefixtures("quick")
def test_who_listens_is_told_once_of_each_run_that_comes_or_goes(tmp_path: Path) -> None:
    async def look() -> None:
        found = Noticed(tmp_path)
        runs = WatchedRuns(found)
        news = asyncio.Event()
        runs.listen(news.set)
        seen = []
        for change in (lambda: None, lambda: record(tmp_path / "a.parquet"), (tmp_path / "a.parquet").unlink):
            news.clear()
            change()
            await asyncio.wait_for(news.wait(), PATIENCE_SECONDS)
            seen.append(names(runs))
        news.clear()
        await found.looks_again()
        await found.looks_again()
        assert not news.is_set()
        assert (seen, runs.version) == ([[], ["a"], []], 3)
        await runs.close()

    asyncio.run(look())


@pytest.mark.usefixtures("quick")
def test_nobody_looks_for_runs_while_nobody_listens(tmp_path: Path) -> None:
    async def look() -> None:
        found = Noticed(tmp_path)
        runs = WatchedRuns(found)
        for _ in range(2):
            runs.listen(listener)
            await found.looks_again()
            runs.unlisten(listener)
            assert runs._looking is not None
            await asyncio.wait_for(runs._looking, PATIENCE_SECONDS)

    asyncio.run(look())


def test_a_look_that_takes_long_is_followed_by_a_longer_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    pauses: list[float] = []

    class Slow(RecordedRuns):
        def all(self, compare: Sequence[str] = ()) -> dict[str, Any]:
            nonlocal now
            now += 3.0 if pauses else 0.01
            return super().all(compare)

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            runs.unlisten(listener)

    async def look() -> None:
        runs.listen(listener)
        assert runs._looking is not None
        await asyncio.wait_for(runs._looking, PATIENCE_SECONDS)

    runs = WatchedRuns(Slow(Folder(tmp_path)))
    monkeypatch.setattr(watched_runs, "monotonic", lambda: now)
    monkeypatch.setattr(asyncio, "sleep", pause)
    asyncio.run(look())
    assert pauses == [2.0, 60.0]


def test_a_page_that_shows_the_list_is_sent_it_when_it_has_changed(tmp_path: Path) -> None:
    runs = WatchedRuns(RecordedRuns(Folder(tmp_path)))
    session = Session(Clusters(Registry(tmp_path / "clusters")), runs)

    def told() -> list[dict[str, Any]]:
        messages = [json.loads(text) for text in session.due()]
        return [message for message in messages if message["type"] == "model"]

    def change() -> dict[str, Any]:
        runs.version += 1
        runs.model = {"folder": ".", "runs": [runs.version], "compared": [], "rows": []}
        return runs.model

    model = change()
    assert (told(), session.watches_runs) == ([], False)
    session.take(json.dumps({"watch": [RUNS]}))
    assert session.watches_runs
    assert session.wanted() == {}  # no cluster has it
    assert told() == [{"type": "model", "cluster": "", "channel": "runs", "model": model}]
    assert told() == []
    change()
    model = change()
    assert [message["model"] for message in told()] == [model]  # only the newest
    session.take(json.dumps({"watch": []}))
    assert not session.watches_runs
    session.take(json.dumps({"watch": [RUNS]}))
    assert [message["model"] for message in told()] == [runs.model]


def test_a_run_that_is_recorded_appears_in_a_page_that_is_open(server: Server, client: Client) -> None:
    folder = server.root / "course" / "runs"
    folder.mkdir(parents=True)
    client.watch(RUNS)
    first = client.until(lambda message: message["type"] == "model")
    assert (first["cluster"], first["channel"], first["model"]["runs"]) == ("", "runs", [])

    record(folder / "new.parquet")
    second = client.until(lambda message: message["type"] == "model")
    assert [(run["path"], run["problem"]) for run in second["model"]["runs"]] == [
        ("course/runs/new.parquet", "")
    ]
