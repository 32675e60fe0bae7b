"""Dispatchers and workers for tests: in this process, or as processes that can be killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import workbench as wb

PATIENCE_SECONDS = 60.0
ROOT = Path(__file__).parents[3]


def free_port() -> int:
    """A port that nobody uses right now."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@contextlib.contextmanager
def service(workers: int, **config: Any) -> Iterator[str]:
    """A dispatcher with workers in this process; gives its target."""
    with contextlib.ExitStack() as stack:
        dispatcher = stack.enter_context(
            wb.data.service.DispatchServer(wb.data.service.DispatcherConfig(**config))
        )
        for _ in range(workers):
            stack.enter_context(worker_of(dispatcher.target))
        yield dispatcher.target


def worker_of(target: str, **config: Any) -> wb.data.service.WorkerServer:
    """A worker in this process."""
    return wb.data.service.WorkerServer(wb.data.service.WorkerConfig(target, **config))


class Processes:
    """A dispatcher with a journal, and workers, each a process started by its command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.address_file = folder / "address"
        self.dispatcher: subprocess.Popen[str] | None = None
        self.workers: list[subprocess.Popen[str]] = []

    @property
    def target(self) -> str:
        return self.address_file.read_text().strip()

    def start_dispatcher(self, *, faults: list[dict[str, Any]] | None = None) -> None:
        self.address_file.unlink(missing_ok=True)
        self.dispatcher = self._started(
            "data-dispatcher",
            *("--port", str(self.port), "--work-dir", str(self.folder / "work")),
            *("--address-file", str(self.address_file), "--worker-timeout", "2"),
            faults=faults,
        )

    def start_worker(self, *, faults: list[dict[str, Any]] | None = None) -> None:
        self.workers.append(self._started("data-worker", str(self.address_file), faults=faults))

    def kill(self, process: subprocess.Popen[str] | None) -> None:
        assert process is not None
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE_SECONDS)
        if process.stdout:
            process.stdout.close()

    def close(self) -> None:
        for process in [*self.workers, *([self.dispatcher] if self.dispatcher else [])]:
            self.kill(process)

    def _started(self, *command: str, faults: list[dict[str, Any]] | None) -> subprocess.Popen[str]:
        environment = os.environ | {"PYTHONPATH": str(ROOT), "WB_FAULTS": json.dumps(faults or [])}
        process = subprocess.Popen(
            [sys.executable, "-m", "workbench", *command], stdout=subprocess.PIPE, text=True, env=environment
        )
        assert process.stdout is not None
        assert process.stdout.readline(), f"{command[0]} did not start"  # printed once the server is ready
        return process
