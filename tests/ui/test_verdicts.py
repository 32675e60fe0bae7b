"""Real clusters with a known fault: the sentence names it, while they run and when a recording is opened."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.ui.healthy_runs import healthy_run
from workbench.errors import ReplicaLost
from workbench.runtime.metrics import WorkerMetrics
from workbench.telemetry.verdicts import Verdict, verdicts
from workbench.ui.cluster import cluster_model

PATIENCE_SECONDS = 60
STEPS = 40


def words(verdict: Verdict) -> str:
    """The sentence with plain spaces."""
    return verdict.sentence.replace("\N{NARROW NO-BREAK SPACE}", " ")


def judged(cluster: wb.Cluster) -> tuple[Verdict, ...]:
    cluster.flush_telemetry()
    return verdicts(cluster.feed.snapshot())


def recorded(path: Path) -> tuple[Verdict, ...]:
    return verdicts(wb.open_run(path).snapshot)


def eventually(find: Callable[[], tuple[Verdict, ...]], code: str) -> Verdict:
    end = time.monotonic() + PATIENCE_SECONDS
    while (found := find()[0]).code != code:
        assert time.monotonic() < end, found
        time.sleep(0.05)
    return found


@pytest.fixture
def cluster() -> Iterator[wb.Cluster]:
    with wb.connect(replicas=2) as own:
        yield own


@pytest.fixture
def threads() -> Iterator[wb.Cluster]:
    with wb.connect(replicas=2, processes=False) as own:
        yield own


def train(strategy: Any, fault: Callable[[int, int], float], *, steps: int = STEPS) -> None:
    """Steps that combine a gradient; `fault` gives what a replica's own is in a step."""

    def step(k: int) -> None:
        context: Any = wb.distribute.get_replica_context()
        gradient = np.full(8, fault(context.replica_id_in_sync_group, k))
        context.all_reduce("mean", gradient)

    for k in range(steps):
        strategy.run(step, args=(k,))


def test_a_late_replica_is_named_live_and_in_a_recording(threads: wb.Cluster, tmp_path: Path) -> None:
    def fault(replica: int, k: int) -> float:
        time.sleep(0.02 if replica == 1 else 0.0)
        return 1.0

    with wb.record(tmp_path / "late.parquet"):
        train(wb.MirroredStrategy(), fault)
        live = judged(threads)

    for found in (live, recorded(tmp_path / "late.parquet")):
        assert (found[0].code, found[0].replica) == ("late", 1)
        told = re.fullmatch(
            r"Replica 1 makes everyone wait: late in (\d+) of (\d+) steps, >?(\d+) % of each step",
            words(found[0]),
        )
        assert told is not None
        assert int(told[1]) > 0.9 * int(told[2])
    assert repr(wb.diagnose()).startswith("▲ Replica 1 makes everyone wait: ")
    title, first, *_ = repr(wb.log()).splitlines()
    assert title.startswith("Log: ")
    assert first.startswith("▲ Replica 1 makes everyone wait: ")
    assert repr(wb.collectives()).startswith("▲ Replica 1 makes everyone wait: ")


def test_nan_on_one_replica_is_named_with_step_and_line(threads: wb.Cluster, tmp_path: Path) -> None:
    with wb.record(tmp_path / "nan.parquet"):
        train(
            wb.MirroredStrategy(), lambda replica, k: float("nan") if (replica, k >= 30) == (1, True) else 1.0
        )
        live = judged(threads)

    for found in (live, recorded(tmp_path / "nan.parquet")):
        assert (found[0].code, found[0].replica, found[0].step) == ("nan", 1, 30)
        assert re.match(r"NaN or infinity since step 30, first on replica 1 in all_reduce", found[0].sentence)
        assert "test_verdicts.py:" in found[0].evidence


def test_a_killed_worker_is_gone_until_others_have_taken_over(cluster: wb.Cluster, tmp_path: Path) -> None:
    def fault(replica: int, k: int) -> float:
        if (replica, k) == (1, 20):
            os.kill(os.getpid(), signal.SIGKILL)
        return 1.0

    strategy = wb.MirroredStrategy()
    with wb.record(tmp_path / "killed.parquet"):
        with pytest.raises(ReplicaLost):
            train(strategy, fault)
        live = eventually(lambda: judged(cluster), "gone")

    for found in (live, recorded(tmp_path / "killed.parquet")[0]):
        assert (found.severity, found.code, found.replica) == ("error", "gone", 1)
        assert re.fullmatch(r"Replica 1 is gone: \S+ stopped answering at step 20", found.sentence)
        assert "SIGKILL" in found.evidence
    train(strategy, lambda replica, k: 1.0, steps=20)
    assert judged(cluster)[0].code not in ("gone", "stuck", "failed")


def test_a_hang_names_who_is_waited_for_and_where_it_is(threads: wb.Cluster) -> None:
    go_on = threading.Event()

    def fault(replica: int, k: int) -> float:
        if (replica, k) == (1, 25):
            go_on.wait(PATIENCE_SECONDS)
        return 1.0

    strategy = wb.MirroredStrategy()
    thread = threading.Thread(target=train, args=(strategy, fault))
    thread.start()
    try:
        found = eventually(lambda: judged(threads), "stuck")
        assert re.fullmatch(r"Stuck for \d+ s: all_reduce waits for replica 1", found.sentence)
        assert (found.replica, found.step, found.link) == (1, 25, "lanes")
        assert repr(wb.diagnose()).startswith("✖ Stuck for ")
    finally:
        go_on.set()
        thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()
    assert judged(threads)[0].code not in ("stuck", "failed", "gone")


def test_an_exception_is_a_failed_step_and_not_stuck(threads: wb.Cluster) -> None:
    def fault(replica: int, k: int) -> float:
        if (replica, k) == (1, 25):
            raise KeyError("no such column")
        return 1.0

    with pytest.raises(KeyError):
        train(wb.MirroredStrategy(), fault)
    found = judged(threads)[0]

    assert re.fullmatch(r"Step 25 failed on replica 1: KeyError at test_verdicts\.py:\d+", found.sentence)


def test_copies_that_drift_apart_are_named_and_agree_again(threads: wb.Cluster, tmp_path: Path) -> None:
    strategy = wb.MirroredStrategy()
    with strategy.scope():
        weights = wb.Variable(np.zeros(4), name="weights")

    def drift() -> None:
        context: Any = wb.distribute.get_replica_context()
        if context.replica_id_in_sync_group == 1:
            weights.values[1].assign_add(np.array([0.0, 0.5, 0.0, 0.0]))

    with wb.record(tmp_path / "drift.parquet"):
        train(strategy, lambda replica, k: 1.0)
        wb.inspect(weights)
        assert words(judged(threads)[0]).startswith("All copies agree, no NaN, ")
        strategy.run(drift)
        wb.inspect(weights)
        live = judged(threads)

    for found in (live, recorded(tmp_path / "drift.parquet")):
        assert (found[0].code, found[0].replica) == ("copies", 1)
        assert found[0].sentence.startswith("Copies of weights:0 differ: replica 1")
        assert found[0].evidence == "largest difference 0.500"
    weights.assign(np.zeros(4))
    wb.inspect(weights)
    assert judged(threads)[0].code not in ("copies", "nan")


def test_input_that_is_too_slow_is_the_cause(threads: wb.Cluster, tmp_path: Path) -> None:
    def slow(x: np.ndarray) -> np.ndarray:
        time.sleep(0.01)
        return x

    strategy = wb.MirroredStrategy()
    dataset = wb.data.Dataset.range(2 * 80).map(slow).batch(2)
    with wb.record(tmp_path / "input.parquet"):
        for batch in strategy.experimental_distribute_dataset(dataset):
            strategy.run(lambda x: wb.distribute.get_replica_context().all_reduce("sum", x), args=(batch,))
        live = judged(threads)

    for found in (live, recorded(tmp_path / "input.parquet")):
        assert found[0].code == "input"
        assert re.fullmatch(r"Everyone waits for data: >?\d+ % of each step", words(found[0]))


def test_a_replica_without_rows_is_told_why(threads: wb.Cluster) -> None:
    strategy = wb.MirroredStrategy()
    dataset = wb.data.Dataset.range(40).batch(1)
    for batch in strategy.experimental_distribute_dataset(dataset):
        strategy.run(lambda x: wb.distribute.get_replica_context().all_reduce("sum", len(x)), args=(batch,))
    found = judged(threads)[0]

    assert found.sentence == "Replica 1 gets no data: batches of 1 for 2 replicas"


def test_replicas_that_share_a_core_are_told_what_to_expect(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("workbench.allowance.cores", lambda: 1)

    def computes(replica: int, k: int) -> float:
        # Far longer than a thread keeps the interpreter (5 ms), so that the notebook's thread waits before the end.
        end = time.perf_counter() + 0.02
        while time.perf_counter() < end:  # real work would take one replica longer on a busy machine
            pass
        return 1.0

    with wb.connect(replicas=2, processes=False) as own, wb.record(tmp_path / "shared.parquet"):
        train(wb.MirroredStrategy(), computes)
        live = judged(own)

    for found in (live, recorded(tmp_path / "shared.parquet")):
        assert "Two replicas share a core: expect half the speed" in [each.sentence for each in found]


def test_a_replica_that_sleeps_is_named_also_where_replicas_share_a_core(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("workbench.allowance.cores", lambda: 1)

    def sleeps(replica: int, k: int) -> float:
        time.sleep(0.06 if replica == 1 else 0.04)
        return 1.0

    with wb.connect(replicas=2, processes=False) as own, wb.record(tmp_path / "sleeps.parquet"):
        train(wb.MirroredStrategy(), sleeps)
        live = judged(own)

    for found in (live, recorded(tmp_path / "sleeps.parquet")):
        assert found[0].sentence.startswith("Replica 1 makes everyone wait: late in ")
        assert "sharing" not in [each.code for each in found]


def test_a_memory_that_is_nearly_full_is_told(threads: wb.Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    strategy = wb.MirroredStrategy()
    train(strategy, lambda replica, k: 1.0)
    (worker,) = threads.gang.workers.values()
    use = WorkerMetrics(cpu_percent=10.0, memory_bytes=95 << 20, memory_limit_bytes=100 << 20)
    monkeypatch.setattr(cluster_model, "worker_metrics", lambda cluster: {worker.address: use})

    assert "Memory of replica 0 is nearly full: 95 MiB of 100 MiB" in str(wb.overview(threads))
    assert "Memory of replica 0 is nearly full: 95 MiB of 100 MiB" in [
        each.sentence for each in judged(threads)
    ]


@pytest.mark.parametrize("number", range(6))
def test_a_healthy_run_names_nobody(number: int) -> None:
    assert healthy_run(number) == []
