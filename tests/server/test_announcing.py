"""A cluster announces itself, tells what somebody watches, and says good-bye."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import pickle
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.errors import FailedPreconditionError
from workbench.runtime.deploy.registry import Registry
from workbench.server.channels import FEED
from workbench.server.clusters import Clusters
from workbench.server.job_link import JobLink
from workbench.server.publisher import Publisher
from workbench.server.session import Session
from workbench.server.watched_runs import WatchedRuns
from workbench.ui.runs.recorded_runs import Folder, RecordedRuns
from workbench.ui.widgets import shown
from workbench.ui.widgets.sources import Given

PATIENCE_SECONDS = 30.0


@pytest.fixture
def cluster() -> Iterator[wb.Cluster]:
    with wb.connect(replicas=2, processes=False) as cluster:
        yield cluster


def all_reduce(value: float) -> float:
    return float(wb.distribute.get_replica_context().all_reduce("sum", value))


def look_at(model: dict[str, Any]) -> None:
    """As if the user had looked at values."""
    shown.tell("values", lambda: Given("values", lambda: model))


class Page:
    """Listens to the clusters of this user as a page does."""

    def __init__(self) -> None:
        self.clusters = Clusters(Registry())
        self.wanted: dict[str, frozenset[str]] = {}
        self.news = asyncio.Event()

    async def __aenter__(self) -> Page:
        self.clusters.listen(self.news.set, lambda: self.wanted)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.clusters.close()

    async def until(self, fits: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while not fits():
            await asyncio.wait_for(self.news.wait(), end - time.monotonic())
            self.news.clear()

    async def only(self) -> Any:
        await self.until(lambda: any(link.summary for link in self.clusters.links.values()))
        (link,) = self.clusters.links.values()
        return link

    def watch(self, id: str, *channels: str) -> None:
        self.wanted = {id: frozenset(channels)}
        self.clusters.update_wanted()


def test_a_cluster_appears_by_itself_and_says_what_it_is(cluster: wb.Cluster) -> None:
    strategy = wb.MirroredStrategy()

    async def look() -> dict[str, Any]:
        async with Page() as page:
            await page.only()
            return page.clusters.describe()[0]

    seen = asyncio.run(look())
    assert seen["pid"] == os.getpid()
    assert seen["kind"] == "driver"
    assert seen["connect_code"] == "cluster = wb.connect(replicas=2)"
    assert seen["summary"]["status"] == "live"
    assert seen["summary"]["replicas_live"] == 2
    assert (seen["summary"]["severity"], seen["summary"]["sentence"]) == (
        "watching",
        "Watching: 0 of 20 steps",
    )
    assert [one["replicas"] for one in seen["summary"]["strategies"]] == [2]
    del strategy


def test_what_is_watched_follows_what_happens(cluster: wb.Cluster) -> None:
    strategy = wb.MirroredStrategy()

    async def look() -> None:
        async with Page() as page:
            link = await page.only()
            page.watch(link.entry.id, FEED)
            await page.until(lambda: bool(link.feed_frame))
            for _ in range(3):
                before = link.mirror.version
                await asyncio.to_thread(strategy.run, all_reduce, (1.0,))
                await asyncio.to_thread(cluster.flush_telemetry)
                await page.until(lambda before=before: link.mirror.version > before)
            await page.until(lambda: link.mirror.state["counters"]["collectives"] >= 3)
            assert link.mirror.state["table"][0]["op"] == "all_reduce"

    asyncio.run(look())


def test_what_the_user_has_shown_is_shown_in_the_panes(cluster: wb.Cluster) -> None:
    look_at({"values": []})

    async def look() -> None:
        async with Page() as page:
            link = await page.only()
            page.watch(link.entry.id, "values")
            await page.until(lambda: link.models.get("values") == {"values": []})
            look_at({"values": [1]})
            await page.until(lambda: link.models["values"] == {"values": [1]})

    asyncio.run(look())


def test_a_dataset_that_was_explained_is_followed_by_sending_only_where_replicas_are(
    cluster: wb.Cluster,
) -> None:
    strategy = wb.MirroredStrategy()
    data = strategy.distribute_dataset(wb.data.Dataset.range(400).batch(4))
    wb.explain_sharding(data)
    runs = WatchedRuns(RecordedRuns(Folder(Path())))

    async def look() -> None:
        async with Page() as page:
            link = await page.only()
            session = Session(page.clusters, runs)
            pair = [link.entry.id, "dataset_sharding"]
            page.wanted = {link.entry.id: frozenset({"dataset_sharding"})}
            session.take(json.dumps({"watch": [pair]}))
            await page.until(lambda: "dataset_sharding" in link.models)
            told = [json.loads(text) for text in session.due()][-1]
            assert (told["type"], told["model"]["progress"]) == ("model", None)
            model = told["model"]
            assert len(model["readers"]) == 2

            elements = iter(data)
            kinds = []
            for step in range(4):
                batch = await asyncio.to_thread(next, elements)
                await asyncio.to_thread(strategy.run, np.sum, (batch,))
                await page.until(lambda step=step: at(link) == [step, step])
                told = [json.loads(text) for text in session.due()][-1]
                model = model | told[told["type"]]
                assert model == link.models["dataset_sharding"]
                kinds.append(told["type"])
            # The steps around the current one come first.
            assert kinds == ["model", "part", "part", "part"]
            assert set(told["part"]) == {"progress"}

            late = Session(page.clusters, runs)
            late.take(json.dumps({"watch": [pair]}))
            told = [json.loads(text) for text in late.due()][-1]
            assert told["model"] == model
            await asyncio.to_thread(cluster.close)
            await page.until(lambda: link.ended)
            assert at(link) == [3, 3]

    def at(link: JobLink) -> list[int] | None:
        progress = link.models["dataset_sharding"]["progress"]
        return None if progress is None else progress["steps"]

    asyncio.run(look())


def test_who_closes_leaves_the_last_state(cluster: wb.Cluster) -> None:
    strategy = wb.MirroredStrategy()
    strategy.run(all_reduce, (1.0,))
    cluster.flush_telemetry(60)

    async def look() -> None:
        async with Page() as page:
            link = await page.only()
            await asyncio.to_thread(cluster.close)
            await page.until(lambda: link.ended)

            assert link.summary["status"] == "stopped"
            # Not "live", because that has ended.
            assert link.summary["text"] == "2 devices on 1 host (2×cpu), embedded"
            assert link.mirror.state["counters"]["collectives"] == 1  # even if nobody had watched
            assert link.models["topology"]["strategies"][0]["step"] == 0
            assert_stopped(link)
            await page.clusters.stop(link.entry.id)
            assert page.clusters.describe() == []

    asyncio.run(look())
    assert Registry().entries() == ()


def assert_stopped(link: JobLink) -> None:
    topology = link.models["topology"]
    (worker,) = topology["hosts"][0]["workers"]
    assert {topology["status"], worker["status"], topology["strategies"][0]["status"]} == {"stopped"}
    assert [device["replicas"][0]["doing"] for device in worker["devices"]] == ["stopped"] * 2


def test_of_a_job_that_has_ended_no_device_is_shown_in_use(cluster: wb.Cluster) -> None:
    async def look() -> None:
        async with Page() as page:
            link = await page.only()
            assert cluster.status == "live"

            def used() -> list[tuple[object, ...]]:
                devices = link.models.get("devices", {}).get("devices", [])
                return [
                    (each["status"], each["use_percent"] is None, each["memory_bytes"] is None)
                    for each in devices
                ]

            page.watch(link.entry.id, "devices")
            await page.until(lambda: used() and all(each == ("live", False, False) for each in used()))
            await link.close()  # as at the end of the process
            assert set(used()) == {("stopped", True, True)}

    asyncio.run(look())


def test_of_a_kernel_that_has_no_time_to_close_who_was_there_is_known_nevertheless(
    cluster: wb.Cluster,
) -> None:
    async def look() -> None:
        async with Page() as page:
            link = await page.only()
            strategy = await asyncio.to_thread(wb.MirroredStrategy)
            await page.until(lambda: link.models.get("topology", {}).get("strategies"))  # nobody watches it
            await link.close()  # as at the end of the process
            assert link.ended
            assert_stopped(link)
            assert strategy.num_replicas_in_sync == 2

    asyncio.run(look())


def test_a_worker_that_is_replaced_while_its_process_tells_of_it_ends_nothing() -> None:
    class Worker:
        pid, lost = 1, ""

        @property
        def name(self) -> str:  # read in the middle of what another thread may interrupt
            workers[str(len(workers))] = self
            return "0"

    workers = {"0": Worker(), "1": Worker()}
    told: list[dict[str, Any]] = []
    publisher: Any = SimpleNamespace(
        _cluster=SimpleNamespace(gang=SimpleNamespace(groups={}, workers=workers)),
        _members=None,
        _looks={"topology": dict},
        _send_if_new=lambda channel, message: told.append(message),
    )
    Publisher._send_members(publisher)
    Publisher._send_members(publisher)
    assert told == [{"view": "topology", "model": {}}]


def test_a_cluster_can_be_closed_from_the_panel(cluster: wb.Cluster) -> None:
    async def close() -> None:
        async with Page() as page:
            link = await page.only()
            await page.clusters.stop(link.entry.id)
            await page.until(lambda: link.ended)

    asyncio.run(close())
    for thread in threading.enumerate():
        if thread.name == "workbench-closing":
            thread.join(PATIENCE_SECONDS)
    assert cluster.closed


def test_what_only_the_notebook_can_do_is_refused_with_the_reason(cluster: wb.Cluster) -> None:
    async def scale() -> None:
        async with Page() as page:
            link = await page.only()
            with pytest.raises(FailedPreconditionError, match="notebook that drives"):
                await page.clusters.scale(link.entry.id, 4)

    asyncio.run(scale())


class Bomb:
    """Executes something when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def test_strangers_bytes_end_their_own_connection_only(cluster: wb.Cluster, tmp_path: Path) -> None:
    (entry,) = Registry().entries()
    bomb = pickle.dumps(Bomb(tmp_path / "executed"))
    for data in (b"GET / HTTP/1.1\r\n\r\n", os.urandom(4096), len(bomb).to_bytes(4, "little") + bomb):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(PATIENCE_SECONDS)
            sock.connect(entry.socket)
            sock.sendall(data)
            try:
                while sock.recv(65536):
                    pass  # the summary, then the end
            except ConnectionResetError:
                pass

    test_a_cluster_appears_by_itself_and_says_what_it_is(cluster)
    assert not (tmp_path / "executed").exists()


def test_the_socket_lies_where_only_its_owner_can_go(cluster: wb.Cluster) -> None:
    (entry,) = Registry().entries()

    assert Path(entry.socket).parent.stat().st_mode & 0o077 == 0


def test_a_registry_that_cannot_be_used_hinders_nobody(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said: list[str] = []
    monkeypatch.setattr(logging.getLogger("workbench"), "warning", lambda text, *args: said.append(text))
    (tmp_path / "clusters").touch()
    monkeypatch.setenv("WORKBENCH_RUNTIME_DIR", str(tmp_path))

    with wb.connect(replicas=1, processes=False) as cluster:
        assert wb.MirroredStrategy().num_replicas_in_sync == 1
        assert cluster.status == "live"
    assert "will not show" in said[0]


def test_the_side_of_the_job_needs_no_jupyter() -> None:
    script = (
        "import sys, workbench as wb, workbench.server.announcing; wb.connect\n"
        "import workbench.server.workers\n"
        "assert 'workbench.server.announcing' in sys.modules\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('jupyter_server', 'jupyter_core')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.strip() == "[]"


def test_a_process_with_many_open_files_is_watched_all_the_same(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2000:
        pytest.skip(f"this process may open {hard} files only")
    with contextlib.ExitStack() as opened:
        opened.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2000), hard))
        for _ in range(1100):  # descriptors opened from now on have numbers above 1,023
            opened.callback(os.close, os.open(tmp_path, os.O_RDONLY))
        with wb.connect(replicas=2, processes=False):
            look_at({"values": []})

            async def look() -> None:
                async with Page() as page:
                    link = await page.only()
                    page.watch(link.entry.id, "values")
                    await page.until(lambda: link.models.get("values") == {"values": []})

            asyncio.run(look())
