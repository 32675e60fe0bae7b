"""Starting threads where replicas are threads of this process."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import workbench as wb
from workbench.runtime.replica import started_threads

ORIGINALS = (threading.Thread.start, ThreadPoolExecutor.submit)


def _now() -> tuple[object, object]:
    return threading.Thread.start, ThreadPoolExecutor.submit


def test_threads_are_started_by_others_while_replicas_live_here_only() -> None:
    with wb.connect(replicas=2, processes=False, replace=True):
        assert set(_now()).isdisjoint(ORIGINALS)
        assert [one.__doc__ for one in _now()] == [one.__doc__ for one in ORIGINALS]
    assert _now() == ORIGINALS


def test_the_last_user_puts_the_originals_back() -> None:
    one, other = object(), object()
    for user in (one, other):
        started_threads.install(user)
    for _ in range(2):
        started_threads.uninstall(one)
        assert set(_now()).isdisjoint(ORIGINALS)
    started_threads.uninstall(other)
    assert _now() == ORIGINALS


def test_what_a_replica_submits_gets_its_arguments_and_gives_its_result_or_error() -> None:
    def step() -> list[object]:
        with ThreadPoolExecutor(1) as pool:
            failed = pool.submit(int, "no number").exception()
            return [pool.submit(sorted, [2, 1], reverse=True).result(), type(failed).__name__]

    with wb.connect(replicas=1, processes=False, replace=True):
        strategy = wb.OneDeviceStrategy("CPU:0")
        assert strategy.local_results(strategy.run(step)) == ([[2, 1], "ValueError"],)


def test_a_thread_that_cannot_be_started_raises_as_ever() -> None:
    thread = threading.Thread(target=int)

    def step() -> None:
        thread.start()
        thread.join(30)
        thread.start()

    with (
        wb.connect(replicas=1, processes=False, replace=True),
        pytest.raises(RuntimeError, match="started once"),
    ):
        wb.OneDeviceStrategy("CPU:0").run(step)
