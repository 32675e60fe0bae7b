"""A Dask cluster as users start one by hand: `dask scheduler` and `dask worker`, also in namespaces of their own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
from distributed import Client

ROOT = Path(__file__).parents[1]
PATIENCE_SECONDS = 60.0
# Any rule makes the fault points live.
ARMED = {"WB_FAULTS": '[{"point": "never", "action": "raise"}]'}
# A container on this machine's network: it has its own files in /tmp, and the machine's name.
OTHER_FILES = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs tmpfs /tmp && exec "$@"', "sh")


def refusal(command: Sequence[str]) -> str:
    """Why a worker cannot be run behind `command`, a prefix such as `OTHER_FILES`; "" if it can.

    It cannot where the prefix needs rights, nor where a clone or its Python is among the files that the prefix hides.
    """
    worker = [sys.executable, "-c", "import workbench"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    try:
        tried = subprocess.run(
            [*command, *worker], env=environment, cwd="/", capture_output=True, text=True, timeout=20
        )
    except OSError as error:
        return str(error)
    return tried.stderr.strip().rpartition("\n")[2] if tried.returncode else ""


def wait_for_workers(scheduler: Any, count: int) -> None:
    """Returns once so many workers have arrived.

    Args:
      scheduler: Its address, or a Dask cluster.
      count: How many workers, whatever their number of threads.
    """
    with Client(scheduler, set_as_default=False) as client:
        client.wait_for_workers(count, timeout=PATIENCE_SECONDS)


class OwnCluster:
    """A scheduler and workers without nannies, in processes of the test.

    Attributes:
      processes: The scheduler, then the workers.
      address: The address of the scheduler, once `wait` has returned.
    """

    def __init__(
        self,
        directory: Path,
        *,
        host: str = "127.0.0.1",
        port: str = "0",
        inside: Sequence[str] = (),
        options: Sequence[str] = (),
    ) -> None:
        """Starts the scheduler.

        Args:
          directory: For its scheduler file.
          host: Where it listens.
          port: At which port; one that is free by default.
          inside: What to put before its command, such as ("ip", "netns", "exec", "a").
          options: Further options of all processes, such as those for TLS.
        """
        self.file = directory / "scheduler.json"
        self.address = ""
        self.processes: list[subprocess.Popen[bytes]] = []
        self._options = tuple(options)
        self._start(inside, "dask_scheduler", host, "--port", port, "--scheduler-file", str(self.file))

    def add(
        self, name: str, *, host: str = "127.0.0.1", inside: Sequence[str] = (), nanny: bool = False
    ) -> subprocess.Popen[bytes]:
        """Starts a worker; `nanny`: with one that restarts it. The other arguments are those of the scheduler."""
        how = "--nanny" if nanny else "--no-nanny"
        return self._start(inside, "dask_worker", host, self.address, how, "--name", name, "--nthreads", "1")

    def _start(self, inside: Sequence[str], what: str, host: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{what}", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **ARMED}
        if inside:
            environment["TMPDIR"] = "/tmp"
        process = subprocess.Popen(
            [*inside, *command, "--host", host, "--no-dashboard", *self._options],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
        )
        self.processes.append(process)
        return process

    def wait(self) -> None:
        """Returns once the scheduler listens."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.address:
            assert time.monotonic() < deadline, "the scheduler did not start"
            # It may be written at this moment.
            with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
                self.address = json.loads(self.file.read_text())["address"]
            time.sleep(0.01)

    def close(self) -> None:
        """Ends all processes; nannies in peace, as they have semaphores to remove, at the same time, and first."""
        scheduler, *workers = self.processes
        below = {worker.pid: end(worker) for worker in workers}
        for worker in workers:
            await_end(worker, below[worker.pid])
        await_end(scheduler, end(scheduler))


def end(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Asks a process with children to end, and kills any other; returns the children."""
    if process.poll() is not None:
        return []
    process.send_signal(signal.SIGCONT)
    try:
        below = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:  # it has just ended by itself
        return []
    process.terminate() if below else process.kill()
    return below


def await_end(
    process: subprocess.Popen[bytes], below: list[psutil.Process], patience_seconds: float = 10.0
) -> None:
    """Waits for the end of a process, and sees to it.

    Args:
      process: One that `end` has asked to end.
      below: Its children. The one that tracks what a nanny has in /dev/shm ends by itself, once it has removed that.
      patience_seconds: How long the process may take.
    """
    try:
        process.wait(patience_seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)
    for child in below:
        with contextlib.suppress(psutil.NoSuchProcess):
            if not any("resource_tracker" in word for word in child.cmdline()):
                child.kill()
    psutil.wait_procs(below, timeout=10)
