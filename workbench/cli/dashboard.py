"""`workbench dashboard`: the views of a running job or a recorded run, as a web page."""

from __future__ import annotations

import argparse
import asyncio
import html
import sys
import tempfile
import webbrowser
from pathlib import Path

from workbench.dashboards.address import Address
from workbench.dashboards.dashboard import check_installed
from workbench.dashboards.recordings import Recordings
from workbench.dashboards.target import Jobs, find
from workbench.errors import WorkbenchError
from workbench.runtime.deploy.registry import Registry


def run(options: argparse.Namespace) -> int:
    """Serves until Ctrl-C; returns 1 if that is not possible, before anything has started."""
    address = Address(
        options.address,
        options.port,
        options.certificate,
        options.key,
        tuple(options.origin),
        options.without_tls,
    )
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
    from workbench.dashboards.serving import DashboardServer

    server = DashboardServer(target, address)
    try:
        print(f"{server.url}\nCtrl-C stops it. Anyone with this address can see it.", flush=True)
        with tempfile.TemporaryDirectory(prefix="workbench-") as folder:
            if browser:
                await asyncio.to_thread(webbrowser.open, _leading_to(server.url, Path(folder)))
            await asyncio.Event().wait()  # ended by cancellation, possibly while the browser starts
    finally:
        await server.stop()


def _leading_to(url: str, folder: Path) -> str:
    """The address of a file that redirects to `url`, because everyone on the machine can read command lines."""
    file = folder / "dashboard.html"
    refresh = f'<meta http-equiv="refresh" content="0; url={html.escape(url)}">'
    file.write_text(
        f'<!doctype html><meta name="referrer" content="no-referrer">{refresh}\n', encoding="utf-8"
    )
    return file.as_uri()
