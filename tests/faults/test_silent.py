"""A replica that nobody can ask: in C code that holds the interpreter's lock, or in a process that is stopped."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from tests.faults.conftest import PATIENCE_SECONDS, until
from workbench.runtime.driver.gang import silence
from workbench.telemetry.feed.stuck import stuck_text
from workbench.ui.cluster import diagnosis

HELD = r"it is at test_silent\.py:\d+ in hold, silent for \d+ s: inside C code that holds Python's lock"


@pytest.fixture
def strategy(monkeypatch: pytest.MonkeyPatch) -> Iterator[wb.MirroredStrategy]:
    """Two replicas that are given up only after the test."""
    monkeypatch.setattr(diagnosis, "DEADLINE_SECONDS", 0.2)
    with wb.connect(replicas=2, replace=True, stall_seconds=10 * PATIENCE_SECONDS):
        yield wb.MirroredStrategy()


@pytest.fixture
def held(strategy: wb.MirroredStrategy, tmp_path: Path) -> Iterator[threading.Event]:
    """A step in another thread whose replica 1 holds the lock in C code until the test ends, or lets it go on."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    def hold() -> None:
        opened = os.open(gate, os.O_RDONLY)
        ctypes.PyDLL(None).read(opened, ctypes.create_string_buffer(1), 1)
        os.close(opened)

    def step() -> None:
        context = wb.distribute.get_replica_context()
        context.all_reduce("sum", np.ones(3))
        if context.replica_id_in_sync_group == 1:
            hold()
        context.all_reduce("sum", np.ones(3))

    ended = threading.Event()

    def run() -> None:
        strategy.run(step)
        ended.set()

    thread = threading.Thread(target=run)
    thread.start()
    end = os.open(gate, os.O_WRONLY)
    try:
        yield ended
    finally:
        os.close(end)  # the read returns
        thread.join(PATIENCE_SECONDS)
    assert ended.is_set()


def banner() -> str:
    """What the pane says of the collective that does not get on; "" if it says nothing."""
    cluster = wb.runtime.current_cluster()
    assert cluster is not None
    stuck = next((group.stuck for group in cluster.feed.snapshot().groups if group.stuck), None)
    return stuck_text(stuck) if stuck else ""


@pytest.mark.usefixtures("held")
def test_the_banner_says_where_a_replica_holds_the_interpreters_lock() -> None:
    until(lambda: re.search(HELD, banner()), "the place in the banner")

    assert "all_reduce #2: waiting for replicas {1}; " in banner()


@pytest.mark.usefixtures("held")
def test_a_diagnosis_says_where_a_replica_holds_the_interpreters_lock() -> None:
    until(lambda: re.search(HELD, repr(wb.diagnose())), "the place in the diagnosis")

    replica = wb.diagnose().groups[-1].replicas[1]
    assert re.match(r"test_silent\.py:\d+ in hold, silent for", replica.place)


def test_the_place_is_forgotten_when_the_replica_goes_on(
    strategy: wb.MirroredStrategy, tmp_path: Path
) -> None:
    gate, second = tmp_path / "gate", tmp_path / "second"
    os.mkfifo(gate)

    def step() -> None:
        context = wb.distribute.get_replica_context()
        if context.replica_id_in_sync_group == 1:
            opened = os.open(gate, os.O_RDONLY)
            ctypes.PyDLL(None).read(opened, ctypes.create_string_buffer(1), 1)
            until(second.exists, "the second part of the step")
        context.all_reduce("sum", np.ones(3))

    thread = threading.Thread(target=strategy.run, args=(step,))
    thread.start()
    end = os.open(gate, os.O_WRONLY)
    try:
        until(lambda: "holds Python's lock" in banner(), "the place in the banner")
        os.close(end)
        until(lambda: "in until, for" in banner(), "the new place in the banner")
        assert "silent" not in banner()
    finally:
        second.touch()
        thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()


def test_of_a_stopped_process_the_line_is_said_to_be_unknown(
    strategy: wb.MirroredStrategy, tmp_path: Path
) -> None:
    go_on = tmp_path / "go_on"

    def step() -> None:
        context = wb.distribute.get_replica_context()
        if context.replica_id_in_sync_group == 1:
            until(go_on.exists, "the end of the pause")
        context.all_reduce("sum", np.ones(3))

    cluster = wb.runtime.current_cluster()
    assert cluster is not None
    pid = cluster.gang.workers["1"].pid
    thread = threading.Thread(target=strategy.run, args=(step,))
    thread.start()
    try:
        until(lambda: "in until, for" in banner(), "the place of a replica that answers")
        os.kill(pid, signal.SIGSTOP)
        text = r"it is at an unknown line, silent for \d+ s: its process is stopped \(state T\)"
        until(lambda: re.search(text, banner()), "the silence in the banner")
        assert re.search(text, repr(wb.diagnose()))
    finally:
        os.kill(pid, signal.SIGCONT)
        go_on.touch()
        thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()


def test_a_worker_of_another_machine_is_asked_for_nothing(strategy: wb.MirroredStrategy) -> None:
    cluster = wb.runtime.current_cluster()
    assert cluster is not None
    worker = cluster.gang.workers["1"]
    worker.local = False

    assert silence.whereabouts(worker) == "an unknown line (its process is not on this machine)"
    assert re.fullmatch(r"x\.py:1 in f, silent for \d+ s", silence.silence_text(worker, "x.py:1 in f"))
