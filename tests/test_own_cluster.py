"""The ends of the processes of `OwnCluster`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.own_cluster import await_end, end

SEMAPHORES = Path("/dev/shm")
STUBBORN = """
import multiprocessing, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
queue = multiprocessing.get_context("spawn").Queue()  # as a nanny has them
print(queue._rlock._semlock.name, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(
    not SEMAPHORES.is_dir(), reason="named semaphores are no files here: they are on Linux only"
)
def test_a_nanny_that_does_not_end_in_time_leaves_no_semaphores() -> None:
    nanny = subprocess.Popen([sys.executable, "-c", STUBBORN], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert nanny.stdin is not None
    assert nanny.stdout is not None
    with nanny, nanny.stdin, nanny.stdout:
        name = nanny.stdout.readline().decode().strip().lstrip("/")
        semaphore = SEMAPHORES / f"sem.{name}"
        assert semaphore.exists()

        await_end(nanny, end(nanny), patience_seconds=0.01)

        assert nanny.returncode == -9
        assert not semaphore.exists()
