"""`wb.dashboard`: serves the dashboard from a notebook or a script, on a separate thread."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import threading
import weakref
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final

from workbench import forks
from workbench.arguments import flag
from workbench.dashboards.address import Address
from workbench.dashboards.recordings import Recordings
from workbench.dashboards.target import Jobs, find
from workbench.errors import BackendUnavailable, FailedPreconditionError, LibraryMissing
from workbench.extras import install_command
from workbench.runtime.deploy.registry import Registry
from workbench.ui.render import html
from workbench.ui.widgets.built import is_built

if TYPE_CHECKING:
    from workbench.dashboards.serving import DashboardServer
    from workbench.distribute.strategies.strategy import Strategy
    from workbench.runtime import Cluster

_START_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 10.0


class Dashboard:
    """A dashboard that this process serves, until `close` or the end of the process.

    Attributes:
      url: Its address with the token, which admits everybody on this machine who knows it.
      what: What it shows: jobs, or recorded runs.
    """

    def __init__(self, target: Jobs | Recordings, address: Address) -> None:
        self.what = target
        started: Future[DashboardServer] = Future()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=_serve,
            args=(self._loop, target, address, started),
            name="workbench-dashboard",
            daemon=True,
        )
        self._thread.start()
        try:
            server = started.result(_START_SECONDS)
        except BaseException:
            _stop(self._loop, self._thread)
            raise
        self.url, self._connections = server.url, server.loop
        self._finalizer = weakref.finalize(self, _stop, self._loop, self._thread)
        forks.tell(self)

    def disown(self) -> None:
        """See `forks.tell`: the parent serves it."""
        if self._finalizer.detach() is not None:
            forks.let_go_loop(self._connections)

    @property
    def status(self) -> str:
        """One word: "live" or "stopped"."""
        return "live" if self._finalizer.alive else "stopped"

    def close(self) -> None:
        """Ends the dashboard and its pages. Idempotent."""
        self._finalizer()

    def __enter__(self) -> Dashboard:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Dashboard: {self.url}, {self.status}>"

    def _repr_html_(self) -> str:
        return html.card("Dashboard", word=self.status, parts=[html.link(self.url)])


def dashboard(
    what: str | os.PathLike[str] | Strategy | Cluster | None = None,
    *,
    port: int = 0,
    host: str = "127.0.0.1",
    certificate: str = "",
    key: str = "",
    origins: tuple[str, ...] = (),
    without_tls: bool = False,
) -> Dashboard:
    """Serves the views of a running job or of a recorded run as a web page, and prints its address.

    It works while a cell runs. In JupyterLab, the same views are panes, which need no dashboard.

    Args:
      what: A cluster, or a strategy on it; the name or id of a job, or the address of its scheduler; the file of a
        recorded run, or a folder of runs. By default the current cluster or, without one, all your jobs on this
        machine.
      port: The port to listen on; 0 takes a free one.
      host: The address to listen on; any address other than loopback needs TLS.
      certificate: A file with the TLS certificate and its chain.
      key: A file with the certificate's key, without a passphrase.
      origins: The names by which browsers reach the dashboard, as "name:port", if not `host` and `port`; behind a proxy
        that terminates TLS, "https://name".
      without_tls: Listen on other addresses without TLS, behind a proxy that terminates it: the token and the data
        reach that proxy as plain text.

    Raises:
      LibraryMissing: if Panel is not installed.
      TypeError: if `what` is anything else.
      NotFoundError: if nothing has the name `what`.
      DataCorruption: if the file is damaged or not a recorded run.
      UnsafeBind: if it would listen on an address other than loopback, without TLS and without `without_tls`.
      InvalidArgumentError: if the address, the certificate or an origin is unusable.
      UnavailableError: if the port is in use.
      FailedPreconditionError: if the cluster is closed, or cannot be found by other processes.

    >>> wb.dashboard()  # doctest: +SKIP
    <Dashboard: http://127.0.0.1:40689/?token=…, live>
    """
    check_installed()
    address = Address(host, port, certificate, key, origins, flag(without_tls, "dashboard: without_tls"))
    address.check()
    return Dashboard(_target(what), address)


def check_installed() -> None:
    """Checks that everything that a dashboard needs is installed.

    Raises:
      BackendUnavailable: if Panel is not installed, or the views were never built.
    """
    if importlib.util.find_spec("panel") is None:
        raise LibraryMissing(f"the dashboard needs Panel: {install_command('dashboard')}")
    if not is_built():
        raise BackendUnavailable(
            "the views are not built: `python extension/hatch_build.py`, or install workbench"
        )


def _target(what: str | os.PathLike[str] | Strategy | Cluster | None) -> Jobs | Recordings:
    if isinstance(what, str | os.PathLike):
        return find(what, Registry())
    from workbench.distribute.strategies.strategy import Strategy
    from workbench.runtime import Cluster, current_cluster  # Dask, which a recorded run does not need
    from workbench.server.announcing import announced_id
    from workbench.ui.cluster.asked_cluster import cluster_of

    if what is None:
        current = current_cluster()
        return Jobs("" if current is None else announced_id(current))
    if not isinstance(what, Strategy | Cluster):
        raise TypeError(
            f"a dashboard shows a cluster or that of a strategy, a job by its name, or a file, not a "
            f"{type(what).__name__}"
        )
    cluster = cluster_of(what, "wb.dashboard({})")
    id = announced_id(cluster)
    if not id:
        raise FailedPreconditionError(
            f"{cluster!r} is closed, or could not announce itself: a dashboard cannot find it"
        )
    return Jobs(id)


def _serve(
    loop: asyncio.AbstractEventLoop,
    target: Jobs | Recordings,
    address: Address,
    started: Future[DashboardServer],
) -> None:
    """Runs the loop on this thread until it is stopped."""
    server: DashboardServer | None = None

    async def start() -> Any:
        # Takes a second, so not on the caller's thread.
        from workbench.dashboards.serving import DashboardServer

        return DashboardServer(target, address)

    asyncio.set_event_loop(loop)
    try:
        server = loop.run_until_complete(start())
        started.set_result(server)
        loop.run_forever()
    except BaseException as error:
        if not started.done():
            started.set_exception(error)
    finally:
        if server is not None:
            loop.run_until_complete(server.stop())
        loop.run_until_complete(_end_tasks())
        loop.run_until_complete(loop.shutdown_default_executor())
        asyncio.set_event_loop(None)
        loop.close()


async def _end_tasks() -> None:
    """Ends tasks that pages have left, such as Panel's periodic callbacks."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    try:
        loop.call_soon_threadsafe(loop.stop)
    except RuntimeError:
        pass  # it has already ended
    thread.join(_STOP_SECONDS)
