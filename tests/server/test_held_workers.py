"""Workers that wait for a notebook: they grow while one uses them, and a change can be cancelled."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import workbench as wb
from workbench.errors import BackendUnavailable
from workbench.runtime.process import gpus
from workbench.server import workers
from workbench.server.frames import Requests
from workbench.server.worker_options import WorkerOptions
from workbench.server.workers import HeldWorkers

pytestmark = pytest.mark.slow

PATIENCE_SECONDS = 60.0


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_RUNTIME_DIR", str(tmp_path))


@contextmanager
def held(options: WorkerOptions) -> Iterator[HeldWorkers]:
    one = HeldWorkers(options)
    serving = threading.Thread(target=one.serve, name="test-held")
    serving.start()
    try:
        yield one
    finally:
        one.stop()
        serving.join(PATIENCE_SECONDS)
        assert not serving.is_alive()


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def ids() -> list[int]:
    context = wb.distribute.get_replica_context()
    return [int(context.replica_id_in_sync_group)]


def test_they_are_more_while_a_notebook_uses_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_UNUSED_SECONDS", 0.2)
    with held(WorkerOptions(1, maximum=2)) as pool:
        assert pool.summary()["replicas"] == 1
        with wb.connect(f"workbench://{pool.entry.id}") as cluster:
            assert len(cluster.devices) == 2
            assert "connected" in pool.stop_unused()
            wait_until(lambda: pool.summary()["pool"]["settled"] == 2)
            assert pool.summary()["pool"] | {"scaling": False} == {
                "kind": "cpu", "threads": False, "scaling": False, "settled": 2, "minimum": 1, "maximum": 2,
            }  # fmt: skip
        wait_until(lambda: pool.summary()["replicas_live"] == 1)


def test_how_many_there_are_is_told_whenever_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask tells late which workers have come, and one may be lost at any time."""
    with held(WorkerOptions(1)) as pool, socket.socket(socket.AF_UNIX) as sock:
        monkeypatch.setattr(pool, "_count", lambda: 0)
        sock.settimeout(PATIENCE_SECONDS)
        sock.connect(pool.entry.socket)
        told = Requests(sock)
        live: list[int] = []
        while 0 not in live:
            live += [message["summary"]["replicas_live"] for message in told.receive()]
        monkeypatch.undo()
        while 1 not in live[live.index(0) :]:
            live += [message["summary"]["replicas_live"] for message in told.receive()]


def test_a_change_that_is_under_way_is_cancelled_by_the_next() -> None:
    with held(WorkerOptions(1)) as pool:
        answers: list[tuple[int, str]] = []
        pool.ask(lambda problem: answers.append((4, problem)), 4)
        wait_until(lambda: pool.summary()["replicas"] == 4)
        pool.ask(lambda problem: answers.append((1, problem)), 1)
        wait_until(lambda: len(answers) == 2)

        assert answers == [(4, ""), (1, "")]
        summary = pool.summary()
        assert (summary["replicas"], summary["replicas_live"], summary["pool"]["scaling"]) == (1, 1, False)


@pytest.mark.parametrize("options", [WorkerOptions(2, threads=True), WorkerOptions(2, kind="tpu")])
def test_replicas_of_one_process_are_used_as_they_were_started(options: WorkerOptions) -> None:
    if options.kind == "tpu":
        pytest.importorskip("jax", reason="JAX is not installed: pip install -e '.[jax]'")
    with held(options) as pool:
        with wb.connect(f"workbench://{pool.entry.id}") as cluster:
            assert [device.kind for device in cluster.devices] == [options.kind.upper()] * 2
            assert len({device.worker for device in cluster.devices}) == 1
        answers: list[str] = []
        pool.ask(answers.append, 1)
        wait_until(lambda: bool(answers))
        assert "all replicas are in one process" in answers[0]


def test_gpus_that_are_not_there_are_said_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "visible", lambda: ("0",))
    with pytest.raises(BackendUnavailable, match="2 NVIDIA GPUs were asked for, this process sees 1"):
        HeldWorkers(WorkerOptions(2, kind="gpu"))
