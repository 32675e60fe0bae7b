"""Runs a script once per rank, as programs without a controller are run."""

from __future__ import annotations

import os
import socket
import subprocess
import sys


def rank() -> int | None:
    """This process's rank, or None in the process that is to start the ranks."""
    return int(os.environ["RANK"]) if "RANK" in os.environ else None


def run_ranks(module: str, replicas: int, *, timeout_seconds: float = 300.0) -> None:
    """Runs `python -m module` with this process's arguments `replicas` times, and waits for all.

    Raises:
      RuntimeError: if one of them fails, or they take too long.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {
        "WORLD_SIZE": str(replicas),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", module, *sys.argv[1:]]
    processes = [
        subprocess.Popen(command, env=os.environ | common | {"RANK": str(r)}) for r in range(replicas)
    ]
    try:
        codes = [process.wait(timeout_seconds) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait(10)
    if any(codes):
        raise RuntimeError(f"{module}: ranks ended with {codes}")
