"""`workbench dashboard`: the views of a job that runs, or of a recorded run, as a web page."""

from __future__ import annotations

import argparse
import asyncio
import sys
import webbrowser

from workbench.dashboards.address import Address
from workbench.dashboards.dashboard import check_installed
from workbench.dashboards.recordings import Recordings
from workbench.dashboards.target import Jobs, find
from workbench.errors import WorkbenchError
from workbench.runtime.registry import Registry


def run(options: argparse.Namespace) -> int:
    """Serves until Ctrl-C; returns 1 if that is not possible, before anything has started."""
    address = Address(options.address, options.port, options.certificate, options.key, tuple(options.origin))
    try:
        check_installed()
        address.check()
        target = find(options.what, Registry())
        asyncio.run(_serve(target, address, browser=not options.no_browser))
    except (WorkbenchError, OSError) as error:
        print(f"workbench dashboard: {error}", file=sys.stderr)
        return 1
    return 0


async def _serve(target: Jobs | Recordings, address: Address, *, browser: bool) -> None:
    from workbench.dashboards.serving import DashboardServer, serve_until_cancelled

    server = DashboardServer(target, address)
    print(f"{server.url}\nCtrl-C ends it. Whoever has this address can look.", flush=True)
    if browser:
        await asyncio.to_thread(webbrowser.open, server.url)
    await serve_until_cancelled(server)
