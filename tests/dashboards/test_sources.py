"""A view of the dashboard follows a job of another process: here, one that this process announces."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Iterator
from typing import Any

import pytest

import workbench as wb
from tests.own_cluster import ROOT
from tests.server.test_announcing import Page, all_reduce, look_at
from workbench.dashboards.sources import ASKED_FOR, JobSource
from workbench.server.announcing import announced_id
from workbench.telemetry.delta import merge
from workbench.telemetry.snapshot import Snapshot


@pytest.fixture
def cluster() -> Iterator[wb.Cluster]:
    with wb.connect(replicas=2, processes=False) as cluster:
        yield cluster


def test_a_job_is_followed_by_changes(cluster: wb.Cluster) -> None:
    strategy = wb.MirroredStrategy()

    async def look() -> None:
        async with Page() as page:
            link = await page.only()
            assert link.entry.id == announced_id(cluster)
            source = JobSource(link, "collective_table")
            assert source.missing == "waiting for the job …"
            page.watch(link.entry.id, source.channel)
            await page.until(lambda: not source.missing)
            model = source.model()
            assert source.change() is None
            state = model["snapshot"]
            for _ in range(3):
                await asyncio.to_thread(strategy.run, all_reduce, (1.0,))
                await asyncio.to_thread(cluster.flush_telemetry)
                before = state["counters"]["collectives"]
                await page.until(lambda before=before: link.mirror.state["counters"]["collectives"] > before)
                change = source.change()
                assert change is not None
                assert change["change"]["since"] == state["version"]
                state = merge(state, change["change"])
            assert state["table"][0]["op"] == "all_reduce"
            assert state == link.mirror.state
            assert state["version"] > Snapshot().version
            assert not source.ended

    asyncio.run(look())


def test_what_nobody_has_shown_is_missing_and_says_how_to_show_it(cluster: wb.Cluster) -> None:
    async def look() -> None:
        async with Page() as page:
            link = await page.only()
            source = JobSource(link, "values")
            page.watch(link.entry.id, "values")
            assert ASKED_FOR["values"].line in source.missing
            look_at({"values": []})
            await page.until(lambda: not source.missing)
            assert source.model() == {"values": []}
            look_at({"values": [1]})
            await page.until(lambda: link.versions["values"] == 2)
            assert source.change() == {"kind": "model", "model": {"values": [1]}}
            assert source.change() is None
            assert source.answer({"kind": "what_if"}) is None

    asyncio.run(look())


def test_of_a_dataset_that_is_gone_through_only_the_progress_comes(cluster: wb.Cluster) -> None:
    strategy = wb.MirroredStrategy()
    data = strategy.distribute_dataset(wb.data.Dataset.range(40).batch(4))
    wb.explain_sharding(data)

    async def look() -> None:
        async with Page() as page:
            link = await page.only()
            source = JobSource(link, "dataset_sharding")
            page.watch(link.entry.id, "dataset_sharding")
            await page.until(lambda: not source.missing)
            model = source.model()
            kinds = []
            elements = iter(data)
            for given in range(1, 4):
                await asyncio.to_thread(next, elements)
                await page.until(lambda given=given: begun(link) == given)
                message = source.change()
                assert message is not None
                kinds.append(message["kind"])
                model = model | message[message["kind"]]
                assert model == link.models["dataset_sharding"]
            assert kinds == ["model", "part", "part"]
            assert source.change() is None

    def begun(link: Any) -> int:
        progress = link.models["dataset_sharding"]["progress"]
        return 0 if progress is None else int(progress["given"])

    asyncio.run(look())


def test_a_job_that_ends_keeps_its_last_state(cluster: wb.Cluster) -> None:
    async def look() -> None:
        async with Page() as page:
            link = await page.only()
            source = JobSource(link, "topology")
            page.watch(link.entry.id, "topology")
            await page.until(lambda: not source.missing)
            source.model()
            await asyncio.to_thread(cluster.close)
            await page.until(lambda: source.ended)
            change = source.change()
            assert change is not None
            assert change["model"]["status"] == "stopped"

    asyncio.run(look())


def test_the_lines_that_fill_views_name_what_there_is_and_are_those_of_the_panes() -> None:
    panes = (ROOT / "extension" / "src" / "lab" / "panes" / "no_run.tsx").read_text(encoding="utf-8")
    for asking in ASKED_FOR.values():
        name = asking.line.partition("(")[0].replace("dataset.", "wb.data.Dataset.")
        assert callable(operator.attrgetter(name.removeprefix("wb."))(wb))
        assert f'"{asking.line}"' in panes
