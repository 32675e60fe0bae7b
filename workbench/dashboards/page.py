"""One browser page of the dashboard: the bar, and below it the views of the open tab."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import panel as pn
from panel.io.state import set_curdoc

from workbench.dashboards.aside import Aside, Later
from workbench.dashboards.pace import Pace
from workbench.dashboards.pane import Pane
from workbench.dashboards.recordings import Recordings
from workbench.dashboards.shell import ClusterChoice, Shell, ShellState
from workbench.dashboards.sources import ASKED_FOR, JobSource
from workbench.dashboards.target import Jobs
from workbench.errors import WorkbenchError
from workbench.server.channels import CHANNEL_OF
from workbench.server.clusters import Clusters
from workbench.server.job_link import JobLink
from workbench.ui.widgets.sources import Given, Message

_JOB_TABS: Final = {
    "Overview": ("overview",),
    "Timing": ("collective_table", "lanes", "heat_map", "sweep"),
    "Cluster": ("topology", "devices"),
    "Values": ("values", "array_sharding"),
    "Data": ("input", "dataset_sharding", "data_service", "servers"),
    "Log": ("log",),
}
_RUNS_TAB: Final = "Runs"
_RUN_TAB: Final = "Run"
_GRID: Final = {
    "display": "grid",
    "grid-template-columns": "repeat(auto-fit, minmax(min(540px, 100%), 1fr))",
    "gap": "12px",
    "padding": "12px 16px",
    "flex": "1 0 auto",
}
_WIDE: Final = frozenset(
    {
        "overview",
        "collective_table",
        "lanes",
        "log",
        "dataset_sharding",
        "input",
        "data_service",
        "servers",
        "runs",
        "replay",
    }
)
_CARD: Final = {
    "border": "1px solid var(--jp-border-color2)",
    "border-radius": "5px",
    "background": "var(--jp-layout-color1)",
    "min-width": "0",
    "overflow": "hidden",
    "justify-self": "stretch",
}
_ALONE: Final = {"container-type": "size", "overflow": "auto", "min-height": "320px"}
"""Styles of a page's only view: as high as the page, so that its charts can fill it."""


class Body:
    """The open views."""

    def __init__(self) -> None:
        # Panel's scroll button would take a place in the grid.
        own = ".scroll-button { display: none }"
        self.column = pn.Column(styles=_GRID, stylesheets=[own], sizing_mode="stretch_width")
        self.panes: list[Pane] = []

    def show(self, panes: Sequence[Pane]) -> None:
        """Shows only these views."""
        self.panes = list(panes)
        if len(panes) == 1:
            panes[0].styles |= _ALONE
        # On a page that starts with a table, the charts below it get the free height.
        has_table = any(pane.source.view == "collective_table" for pane in panes)
        self.column.styles = _GRID | {"grid-template-rows": "max-content" if has_table else "auto"}
        self.column.objects = list(panes)


class JobPage:
    """Shows a running job, and offers the other jobs.

    Attributes:
      shell: The bar.
      body: The views.
      on_news: Called when a `refresh` is due.
    """

    def __init__(self, jobs: Jobs, clusters: Clusters) -> None:
        """Starts listening; used by the event loop of `clusters` only.

        Args:
          jobs: Which job to show.
          clusters: The existing ones.
        """
        self._clusters = clusters
        self._chosen = jobs.id
        self._picked = bool(jobs.id)  # the user has chosen one
        self._tab = next(iter(_JOB_TABS))
        self._shown: tuple[JobLink | None, str] = (None, "")
        self.on_news: Callable[[], None] = _nothing
        self.shell = Shell(on_cluster=self._choose, on_tab=self._open, sizing_mode="stretch_width")
        self.body = Body()
        clusters.listen(self._changed, self._wanted)
        clusters.refresh()
        self.refresh()

    def refresh(self) -> None:
        """Brings the page up to date."""
        link = self._link()
        self.shell.tell(self._state(link))
        tab = "" if link is None else self._tab
        if (link, tab) != self._shown:
            self._shown = link, tab
            self.body.show([] if link is None else [self._pane(link, view) for view in _JOB_TABS[tab]])
            self._clusters.update_wanted()
        for pane in self.body.panes:
            pane.push()
        if any(pane.watched and pane.waits for pane in self.body.panes):
            self.on_news()  # sends what the browser was not ready for

    def close(self) -> None:
        """The page was closed."""
        self._clusters.unlisten(self._changed)

    def _pane(self, link: JobLink, view: str) -> Pane:
        source = JobSource(link, view)
        asking = ASKED_FOR.get(view)
        return Pane(
            source,
            on_watched=self._on_watched,
            missing=lambda: source.missing,
            answers=False,
            on_open=self._open_view,
            title="" if asking is None else asking.title,
            line="" if asking is None else asking.line,
            **_layout(view),
        )

    def _link(self) -> JobLink | None:
        """The job to show: the chosen one, otherwise the newest, preferably a live one; None if there is none.

        Without a choice, a live job stays, so that a newer one does not replace it before the reader's eyes.
        """
        drivers = self._drivers()
        if self._chosen:
            return next((link for link in drivers if link.entry.id == self._chosen), None)
        shown, _ = self._shown
        if not self._picked and shown in drivers and not shown.ended:
            return shown
        if self._asks():
            return None
        return next((link for link in drivers if not link.ended), next(iter(drivers), None))

    def _drivers(self) -> list[JobLink]:
        links = self._clusters.links.values()
        return [link for link in links if link.entry.kind == "driver" and link.summary is not None]

    def _asks(self) -> bool:
        """Whether there are several jobs.

        Counts those that have not answered yet, because the user may want one of them.
        """
        links = self._clusters.links.values()
        return not self._picked and sum(link.entry.kind == "driver" and not link.ended for link in links) > 1

    def _state(self, link: JobLink | None) -> ShellState:
        choices = tuple(map(_choice, self._drivers()))
        asks = self._asks()
        if link is None or link.summary is None:
            note = (
                "Several of your jobs run on this machine. Pick one."
                if asks
                else (
                    "Waiting for a job: it appears when wb.connect() has run in one of your notebooks or scripts."
                )
            )
            return ShellState("your jobs on this machine", note=note, clusters=choices, choose=asks)
        title = f"{link.entry.name or link.entry.id} · process {link.entry.pid} · {_size(link.summary)}"
        status = link.summary["status"]
        # Earlier versions send no severity.
        wrong = status != "stopped" and link.summary.get("severity") == "error"
        note = f"✖ {link.summary['sentence']}" if wrong else ""
        return ShellState(
            title,
            status=status,
            note=note,
            clusters=choices,
            cluster=self._chosen if self._picked else link.entry.id,
            tabs=tuple(_JOB_TABS),
            tab=self._tab,
        )

    def _choose(self, id: str) -> None:
        self._chosen, self._picked = id, True
        self._changed()

    def _open(self, tab: str) -> None:
        if tab in _JOB_TABS:
            self._tab = tab
            self._changed()

    def _open_view(self, view: str) -> None:
        """Opens the first page that has a view."""
        self._open(next((tab for tab, views in _JOB_TABS.items() if view in views), ""))

    def _wanted(self) -> dict[str, frozenset[str]]:
        link, _ = self._shown
        if link is None:
            return {}
        return {
            link.entry.id: frozenset(CHANNEL_OF[pane.source.view] for pane in self.body.panes if pane.watched)
        }

    def _on_watched(self) -> None:
        self._clusters.update_wanted()
        self._changed()

    def _changed(self) -> None:
        self.on_news()


class RunPage:
    """Shows a recorded run, and offers the other runs of its folder.

    Attributes:
      shell: The bar.
      body: The views.
    """

    def __init__(self, recordings: Recordings, later: Later) -> None:
        """Creates the page.

        Args:
          recordings: The runs that can be opened.
          later: Runs a function in this page's document later.
        """
        self._recordings = recordings
        self._later = later
        self._aside = Aside(later)
        self._path = recordings.first
        self._run = recordings.source(self._path) if self._path else None
        self._compared: tuple[str, ...] = ()
        self.shell = Shell(on_cluster=_ignore, on_tab=self._open, sizing_mode="stretch_width")
        self.body = Body()
        self._open(_RUNS_TAB if self._run is None else _RUN_TAB)

    def close(self) -> None:
        """The page was closed."""
        self._aside.close()

    def _open(self, tab: str) -> None:
        tabs = (_RUN_TAB,) if self._recordings.first else (_RUNS_TAB, _RUN_TAB)
        if tab not in tabs:
            return
        shown = self._run if tab == _RUN_TAB else self._list()
        panes = [] if shown is None else [Pane(shown, work=self._aside, **_layout(shown.view))]
        self.body.show(panes)
        title = (
            f"recorded runs in {self._recordings.runs.name}"
            if tab == _RUNS_TAB or not self._path
            else self._path
        )
        note = "" if shown is not None else "Pick a run first, and open it."
        self.shell.tell(ShellState(title, status="replay", note=note, tabs=tabs, tab=tab))

    def _list(self) -> Given:
        """Lists the jobs again, because runs come and go while a page is open."""
        return Given("runs", self._listed, self._answer)

    def _listed(self) -> Message:
        """Lists the jobs, on a thread."""
        runs = self._recordings.runs
        try:
            return runs.all(self._compared)
        except WorkbenchError:  # one of the compared runs has vanished, or is damaged
            return runs.all()

    def _answer(self, request: Message) -> Message | None:
        """Answers a request, on a thread."""
        match request:
            case {"kind": "open_run", "path": str(path)}:
                run = self._recordings.source(path)
                run.model()  # reports a damaged file where it was picked
                self._later(lambda: self._show(path, run))
            case {"kind": "compare_runs", "first": str(first), "second": str(second)}:
                found = self._recordings.runs.all((first, second))
                self._compared = (first, second)
                return found
        return None

    def _show(self, path: str, run: Given) -> None:
        self._path, self._run = path, run
        self._open(_RUN_TAB)


def make(target: Jobs | Recordings, clusters: Clusters) -> JobPage | RunPage:
    """A page for a browser that has just opened the dashboard, kept up to date until the browser closes it."""
    later = _later_on(pn.state.curdoc)
    if isinstance(target, Recordings):
        return RunPage(target, later)
    page = JobPage(target, clusters)
    # At most ten times a second, and only when there is something new.
    pace = Pace(lambda: later(page.refresh))
    page.on_news = pace.ask
    pn.state.on_session_destroyed(lambda context: pace.stop())
    pace.ask()
    return page


def _later_on(doc: Any) -> Later:
    def later(what: Callable[[], None]) -> None:
        def tick() -> None:
            with set_curdoc(doc):
                what()

        doc.add_next_tick_callback(tick)

    return later


def _layout(view: str) -> dict[str, Any]:
    """A view's place in the grid."""
    wide = {"grid-column": "1 / -1"} if view in _WIDE else {}
    card = {} if view == "overview" else _CARD  # the view has its own cards
    return {"sizing_mode": "stretch_width", "styles": card | wide}


def _choice(link: JobLink) -> ClusterChoice:
    entry, summary = link.entry, link.summary
    if summary is None:
        return ClusterChoice(entry.id, entry.name, entry.pid, "starting", "")
    return ClusterChoice(entry.id, entry.name, entry.pid, summary["status"], _size(summary))


def _size(summary: dict[str, Any]) -> str:
    """A cluster's size."""
    devices, hosts = summary["replicas"], summary["hosts"]
    return f"{devices} device{'s' * (devices != 1)} on {hosts} host{'s' * (hosts != 1)}"


def _ignore(id: str) -> None:
    """Ignores a choice, because there is nothing to choose from."""


def _nothing() -> None:
    """Does nothing, because the page is not shown yet."""
