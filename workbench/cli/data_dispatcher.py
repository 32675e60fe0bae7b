"""`workbench data-dispatcher`: a dispatcher of the data service in its own process."""

from __future__ import annotations

import argparse
import os
import sys

from workbench.data.service.address import Tls
from workbench.data.service.dispatcher import DispatcherConfig, DispatchServer
from workbench.errors import WorkbenchError


def run(options: argparse.Namespace) -> int:
    """Serves until Ctrl-C; returns 1 if that is not possible."""
    try:
        config = DispatcherConfig(
            port=options.port,
            work_dir=options.work_dir,
            fault_tolerant_mode=options.work_dir is not None,
            worker_timeout_ms=1000 * options.worker_timeout,
            host=options.host,
            tls=tls_of(options),
        )
        with DispatchServer(config) as server:
            if options.address_file:
                _write_private(options.address_file, server.target)
            print(
                f"{server.target}\nCtrl-C stops it. Anyone with this address can use the service.", flush=True
            )
            server.join()
    except (WorkbenchError, OSError) as error:
        print(f"workbench data-dispatcher: {error}", file=sys.stderr)
        return 1
    return 0


def tls_of(options: argparse.Namespace) -> Tls | None:
    """The files for TLS that the command line names, if any."""
    if not (options.authority or options.certificate or options.key):
        return None
    return Tls(options.authority, options.certificate, options.key)


def _write_private(path: str, text: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, flags, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(descriptor, 0o600)
        file.write(text + "\n")
