"""A running job as the source of views."""

from __future__ import annotations

from typing import Final, NamedTuple

from workbench.server.channels import CHANNEL_OF, FEED, SHOWN
from workbench.server.job_link import JobLink
from workbench.ui.widgets.sources import Message


class Asking(NamedTuple):
    """How to get a view that only appears on request.

    Attributes:
      title: The view's name.
      line: The line of code that shows it.
      what: What it then shows.
    """

    title: str
    line: str
    what: str


ASKED_FOR: Final = {
    "values": Asking("Values", "wb.inspect(value)", "what each replica holds"),
    "array_sharding": Asking(
        "Array sharding", "wb.explain_sharding(value)", "which replica holds which part"
    ),
    "dataset_sharding": Asking(
        "Dataset sharding", "wb.explain_sharding(dataset)", "which replica reads which elements"
    ),
    "input": Asking("Input", "dataset.explain()", "how fast each stage is, and which replica waits for data"),
    "data_service": Asking(
        "Data service", "wb.data.service.start(cluster)", "the jobs and workers of the data service"
    ),
    "servers": Asking(
        "Servers",
        "wb.distribute.ParameterServerStrategy(servers=1)",
        "the variables that parameter servers hold",
    ),
}
assert set(ASKED_FOR) == SHOWN


class JobSource:
    """One view of a job, with data from the job's process.

    Attributes:
      view: Name of the view.
      channel: The channel to watch for it.
    """

    interval_seconds = 0.1

    def __init__(self, link: JobLink, view: str) -> None:
        self.view = view
        self.channel = CHANNEL_OF[view]
        self._link = link
        self._count = 0  # of the link's changes
        self._version = 0  # of the feed

    @property
    def missing(self) -> str:
        """Why there is no model yet, or ""."""
        if self._link.versions.get(self.channel, 0):
            return ""
        if self._link.ended:
            return "the job has ended"
        asking = ASKED_FOR.get(self.view)
        if asking is None:
            return "waiting for the job …"
        return f"{asking.what}: {asking.line} in the job shows it here"

    def model(self) -> Message:
        """As `Source.model`; only if nothing is `missing`."""
        self._seen()
        if self.channel == FEED:
            return self._link.feed_frame | {"snapshot": self._link.mirror.state}
        return self._link.models[self.channel]

    def change(self) -> Message | None:
        """As `Source.change`."""
        if self._link.versions.get(self.channel, 0) == self._count:
            return None
        since, count = self._version, self._count
        self._seen()
        if self.channel != FEED:
            kind, news = self._link.news(self.channel, count)
            return {"kind": kind, kind: news}
        change = self._link.mirror.change(since)
        return {"kind": "collectives", "change": change} | self._link.feed_frame

    def answer(self, request: Message) -> Message | None:
        """None: a dashboard is read-only."""
        return None

    @property
    def ended(self) -> bool:
        """As `Source.ended`."""
        return self._link.ended

    def _seen(self) -> None:
        self._count = self._link.versions.get(self.channel, 0)
        self._version = self._link.mirror.version
