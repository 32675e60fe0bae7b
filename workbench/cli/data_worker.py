"""`workbench data-worker`: a worker of the data service in its own process."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from workbench.cli.data_dispatcher import tls_of
from workbench.data.service.worker import WorkerConfig, WorkerServer
from workbench.errors import WorkbenchError


def run(options: argparse.Namespace) -> int:
    """Works until Ctrl-C; returns 1 if the dispatcher cannot be reached, or is unreachable for too long."""
    try:
        config = WorkerConfig(
            dispatcher_address=_address(options.dispatcher),
            worker_address=options.worker_address,
            port=options.port,
            dispatcher_timeout_ms=1000 * options.dispatcher_timeout,
            host=options.host,
            tls=tls_of(options),
        )
        with WorkerServer(config) as server:
            print(f"{server!r} is running. Ctrl-C stops it.", flush=True)
            server.join()
    except (WorkbenchError, OSError) as error:
        print(f"workbench data-worker: {error}", file=sys.stderr)
        return 1
    return 0


def _address(text: str) -> str:
    """The given address, or the one in the given file."""
    file = Path(text)
    return file.read_text(encoding="utf-8").strip() if "://" not in text and file.is_file() else text
