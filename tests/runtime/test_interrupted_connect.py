"""Ctrl-C at any moment of `wb.connect`: no process, thread, descriptor or folder is left; connecting again works."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import workbench as wb
from workbench import cluster_listeners
from workbench.runtime.deploy.delayed_interrupt import delayed_interrupt
from workbench.server.announcing import announced_id


def test_an_interrupt_is_delivered_on_leaving() -> None:
    reached = False
    with pytest.raises(KeyboardInterrupt), delayed_interrupt():  # noqa: PT012
        signal.raise_signal(signal.SIGINT)
        reached = True
    assert reached
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_interrupt_is_delivered_at_once() -> None:
    reached = False
    with pytest.raises(KeyboardInterrupt), delayed_interrupt():  # noqa: PT012
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        reached = True
    assert not reached
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_while_a_cluster_is_announced_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[wb.Cluster] = []
    listeners = [
        lambda cluster: signal.raise_signal(signal.SIGINT),
        *cluster_listeners.listeners,
        told.append,
    ]
    monkeypatch.setattr(cluster_listeners, "listeners", listeners)
    with pytest.raises(KeyboardInterrupt):
        wb.connect(replicas=1)

    assert [cluster.closed for cluster in told] == [True]
    assert wb.current_cluster() is None
    assert announced_id(told[0]) == ""


PROGRAM = """
import os, random, signal, sys, threading, time
from pathlib import Path
import workbench as wb
from tests.leaks import Resources, leaked_since

wb.connect(replicas=2).close()  # what stays, such as the fork server, is there from now on
begun = time.monotonic()
wb.connect(replicas=2).close()
span = time.monotonic() - begun
moments = random.Random(int(sys.argv[1]))
interrupted = 0
before = Resources.now()
for _ in range(int(sys.argv[2])):
    timer = threading.Timer(moments.uniform(0, span), os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        wb.connect(replicas=2).close()
        timer.join()
        time.sleep(0.01)  # for a signal that came in the last line
    except KeyboardInterrupt:
        interrupted += 1
    assert wb.current_cluster() is None or wb.current_cluster().closed or wb.current_cluster().close() is None
    timer.join()
left = [what for what in leaked_since(before) if "/dev/shm/sem." not in what]  # those are other programs'
assert not left, left
with wb.connect(replicas=2):
    strategy = wb.MirroredStrategy()
    assert strategy.local_results(strategy.run(lambda: 1)) == (1, 1)
print(interrupted)
"""


@pytest.mark.parametrize(
    ("seeds", "moments"),
    [([1], 6), pytest.param([2, 3], 50, marks=[pytest.mark.thorough, pytest.mark.timeout(900)])],
)
def test_nothing_is_left_whenever_connecting_is_interrupted(
    tmp_path: Path, seeds: list[int], moments: int
) -> None:
    with contextlib.ExitStack() as running:  # all at the same time
        programs = [running.enter_context(_interrupted(tmp_path, seed, moments)) for seed in seeds]
        for program in programs:
            output, errors = program.communicate(timeout=800)
            assert program.returncode == 0, errors
            assert int(output) > moments // 2
            assert errors == ""
    assert not list(tmp_path.glob("*/workbench-*"))


@contextlib.contextmanager
def _interrupted(folder: Path, seed: int, moments: int) -> Iterator[subprocess.Popen[str]]:
    """A program that connects and is interrupted again and again, with its own folder for temporary files."""
    temporary = folder / str(seed)
    temporary.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(seed), str(moments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "TMPDIR": str(temporary)},
    ) as program:
        try:
            yield program
        finally:
            program.kill()
