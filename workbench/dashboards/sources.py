"""A running job as the source of views."""

from __future__ import annotations

from typing import Final

from workbench.server.channels import CHANNEL_OF, FEED, SHOWN
from workbench.server.job_link import JobLink
from workbench.ui.widgets.sources import Message

_ASKED_FOR: Final = {
    "values": "nothing yet: wb.inspect(value) in the job shows it here",
    "array_sharding": "nothing yet: wb.explain_sharding(value) in the job shows it here",
    "dataset_sharding": "nothing yet: wb.explain_sharding(dataset) in the job shows it here",
    "input": "nothing yet: dataset.explain() in the job shows it here, of a distributed dataset while it trains",
    "data_service": "nothing yet: wb.data.service.start(cluster) in the job shows it here",
    "servers": "nothing yet: a strategy with parameter servers in the job shows itself here",
}
assert set(_ASKED_FOR) == SHOWN


class JobSource:
    """One view of a job, as its process tells it.

    Attributes:
      view: Name of the view.
      channel: What has to be watched for it.
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
        return _ASKED_FOR.get(self.view, "waiting for the job …")

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
        """None: a dashboard only looks."""
        return None

    @property
    def ended(self) -> bool:
        """As `Source.ended`."""
        return self._link.ended

    def _seen(self) -> None:
        self._count = self._link.versions.get(self.channel, 0)
        self._version = self._link.mirror.version
