"""The view of a data service: in outputs, for listeners, when it waits, and in recorded runs."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from tests.data.service.servers import worker_of
from tests.until import until
from workbench.telemetry.runs.recorded_run import open_run
from workbench.ui.formatters import bundle_of
from workbench.ui.models.messages import MODELS
from workbench.ui.models.model_check import misfits
from workbench.ui.runs.runs_model import replay_of
from workbench.ui.widgets import shown
from workbench.ui.widgets.bundle import MIME
from workbench.ui.widgets.live_sources import data_service_source

Dataset = wb.data.Dataset


def distribute(target: str, **options: Any) -> Any:
    return wb.data.service.distribute("distributed_epoch", target, "<b>", **options)


def test_a_dispatcher_a_service_and_a_status_give_text_html_and_the_model() -> None:
    with (
        wb.connect(replicas=1, processes=False, replace=True) as cluster,
        wb.data.service.start(cluster) as service,
    ):
        list(Dataset.range(1000).apply(distribute(service.address)))
        with wb.data.service.DispatchServer() as server:
            for value in (service, service.status(), server):
                bundle = bundle_of(value, {MIME})

                assert bundle[MIME]["view"] == "data_service"
                assert misfits(bundle[MIME]["model"], MODELS["data_service"]) == []
                assert "<b>" not in bundle["text/html"]
        model = bundle_of(service, {MIME})[MIME]["model"]
        (job,) = model["jobs"]

    assert (job["name"], job["elements"], job["splits_done"], job["complete"]) == ("<b>", 1000, 143, True)
    assert model["sentence"] == "Complete: 1 job."
    assert bundle_of(service, {MIME})[MIME]["model"]["status"] == "stopped"
    assert bundle_of(wb.data.service.DispatchServer(start=False), {MIME}) is None


def test_those_who_listen_are_told_of_a_dispatcher_that_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(shown, "listeners", [lambda view, make: told.append((view, make))])

    server = wb.data.service.DispatchServer()
    ((view, make),) = told
    source = make()

    assert view == "data_service"
    assert not source.ended
    server.stop()
    assert source.ended
    assert source.model()["sentence"] == "This data service has ended; 0 of its 0 jobs were complete."


def test_a_live_source_follows_jobs_and_says_what_is_missing() -> None:
    with wb.data.service.DispatchServer() as server:
        source = data_service_source(server.watched)
        assert source.model()["sentence"] == "There is no worker."
        assert "start one" in source.model()["advice"]
        with worker_of(server.target):
            assert source.model()["sentence"] == "Ready; no job has begun."
            iterator = iter(Dataset.range(5000).apply(distribute(server.target, max_outstanding_requests=1)))
            for _ in range(100):
                next(iterator)
            change = source.change()
            assert change is not None
            (job,) = change["model"]["jobs"]
            assert job["consumers"] == 1
            assert job["elements"] == 100
            assert job["splits_done"] + job["splits_leased"] + job["splits_left"] == 129
            del iterator
            rounds = iter(Dataset.counter().apply(distribute_in_rounds(server.target, timeout_seconds=0.2)))
            with pytest.raises(wb.errors.UnavailableError):
                next(rounds)


def distribute_in_rounds(target: str, **options: Any) -> Any:
    return wb.data.service.distribute(
        "parallel_epochs", target, "aligned", consumer_index=1, num_consumers=2, **options
    )


def test_a_job_whose_consumers_are_not_all_there_is_named() -> None:
    with wb.data.service.DispatchServer() as server, worker_of(server.target):
        other = wb.data.service.distribute(
            "parallel_epochs", server.target, "aligned", consumer_index=0, num_consumers=2
        )
        both = [iter(Dataset.counter().apply(each)) for each in (other, distribute_in_rounds(server.target))]
        first = next_in_thread(both)
        assert first == [0, 1]
        del both[1]
        until(lambda: server.watched.now().jobs[0].missing == (1,), "leaving")

        now = server.watched.now()
        assert now.sentence == "Job 'aligned' waits for consumer 1 of 2."
        assert "one that is started again continues in its round" in str(now)
        del both


def next_in_thread(iterators: list[Any]) -> list[int]:
    found = [-1] * len(iterators)

    def take(index: int) -> None:
        found[index] = int(next(iterators[index]))

    threads = [threading.Thread(target=take, args=(index,)) for index in range(len(iterators))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return found


def test_rates_are_those_of_the_last_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.data.service.dispatch.census._RATE_SECONDS", 0.01)
    with wb.data.service.DispatchServer() as server, worker_of(server.target, heartbeat_interval_ms=50):
        endless = distribute(server.target)
        reading = [iter(Dataset.counter().apply(endless))]

        def reads() -> bool:
            next(reading[0])
            return server.watched.now().jobs[0].elements_per_second > 0

        until(reads, "a rate")
        assert "elements/s" in server.watched.now().sentence
        reading.clear()


def test_a_recorded_run_keeps_what_its_data_service_did(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    with (
        wb.connect(replicas=1, processes=False, replace=True) as cluster,
        wb.record(path),
        wb.data.service.start(cluster) as service,
    ):
        list(Dataset.range(10).apply(distribute(service.address)))

    found = replay_of(open_run(path))["data_service"]
    assert found["status"] == "replay"
    assert misfits(found, MODELS["data_service"]) == []
