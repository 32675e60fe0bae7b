"""Tracks what one client has open, and what to send it next: the newest state, skipping earlier ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from workbench.runtime.deploy.registry import ID
from workbench.server.channels import CHANNELS, FEED, RUNS
from workbench.server.clusters import Clusters
from workbench.server.job_link import JobLink
from workbench.server.watched_runs import WatchedRuns

MAX_WATCHED: Final = 64


@dataclass(slots=True)
class _Sent:
    """What the client has of a channel."""

    link: JobLink
    count: int  # of the link's changes
    version: int  # of the feed


class Session:
    """The state of one WebSocket. A slow client gets fewer messages, each with the newest state.

    Each message leads to the complete newest state, so a client that skips states misses nothing.

    Attributes:
      watches_runs: Whether the list of recorded runs is open.
    """

    def __init__(self, clusters: Clusters, runs: WatchedRuns) -> None:
        self.watches_runs = False
        self._clusters = clusters
        self._runs = runs
        self._runs_version = 0  # that the client has
        self._watched: dict[tuple[str, str], _Sent | None] = {}
        self._told: list[dict[str, Any]] | None = None

    def take(self, text: str | bytes) -> None:
        """Handles a message of the client: `{"watch": [[cluster id, channel], …]}`, everything that it has open.

        Raises:
          ValueError: if it is anything else.
        """
        message = json.loads(text)
        match message:
            case {"watch": list(pairs)} if len(message) == 1 and len(pairs) <= MAX_WATCHED:
                wanted = dict.fromkeys(map(_pair, pairs))
            case _:
                raise ValueError('a message reads {"watch": [[cluster id, channel], …]}')
        self.watches_runs = RUNS in wanted
        if not self.watches_runs:
            self._runs_version = 0
        self._watched = {pair: self._watched.get(pair) for pair in wanted if pair != RUNS}
        self._clusters.update_wanted()

    def wanted(self) -> dict[str, frozenset[str]]:
        """The open channels, by cluster id."""
        wanted: dict[str, frozenset[str]] = {}
        for id, channel in self._watched:
            wanted[id] = wanted.get(id, frozenset()) | {channel}
        return wanted

    def due(self) -> Iterator[str]:
        """The messages that are due, as JSON. Each is computed on request, so send one before the next."""
        told = self._clusters.describe()
        if told != self._told:
            self._told = told
            yield _json({"type": "clusters", "clusters": told})
        for id, channel in list(self._watched):
            link = self._clusters.links.get(id)
            message = self._news(link, id, channel) if link is not None else None
            if message is not None:
                yield _of(message, id, channel)
        if self.watches_runs and self._runs_version != self._runs.version:
            self._runs_version = self._runs.version
            yield _of({"type": "model", "model": self._runs.model}, *RUNS)

    def _news(self, link: JobLink, id: str, channel: str) -> dict[str, Any] | None:
        if (id, channel) not in self._watched:  # closed while an earlier message was being sent
            return None
        count = link.versions.get(channel, 0)
        sent = self._watched[id, channel]
        if sent is not None and sent.link is not link:
            sent = None
        if count == (0 if sent is None else sent.count):
            return None
        since = 0 if sent is None else sent.version
        self._watched[id, channel] = _Sent(link, count, link.mirror.version)
        if channel == FEED:
            return {"type": "feed", "frame": link.feed_frame, "change": link.mirror.change(since)}
        kind, news = link.news(channel, 0 if sent is None else sent.count)
        return {"type": kind, kind: news}


def _pair(pair: Any) -> tuple[str, str]:
    match pair:
        case [str(id), str(channel)] if ID.fullmatch(id) and channel in CHANNELS:
            return id, channel
        case [str(id), str(channel)] if (id, channel) == RUNS:
            return RUNS
    raise ValueError(f"no cluster id and channel: {str(pair)[:80]}")


def _of(message: dict[str, Any], id: str, channel: str) -> str:
    return _json(message | {"cluster": id, "channel": channel})


def _json(message: dict[str, Any]) -> str:
    return json.dumps(message, allow_nan=False, separators=(",", ":"))
