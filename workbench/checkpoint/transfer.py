"""Transfer: a running save or restore, for views; when it ends, it becomes a line in the clusters' logs."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, Final, Literal

from workbench.checkpoint.listeners import listeners
from workbench.data.sources.urls import shown
from workbench.runtime.connect_cluster import current_cluster
from workbench.telemetry.events import Event
from workbench.telemetry.formatting import rate_text, significant, size_text

if TYPE_CHECKING:
    from workbench.distribute.described_strategy import DescribedStrategy
    from workbench.runtime.cluster import Cluster
    from workbench.runtime.driver.gang.gang import Gang
    from workbench.runtime.driver.group import Group

log = logging.getLogger(__name__)
_WORDS: Final = {
    ("save", "running"): "saving",
    ("save", "done"): "saved",
    ("save", "failed"): "could not save",
    ("restore", "running"): "restoring",
    ("restore", "done"): "restored",
    ("restore", "failed"): "could not restore",
}
_MOST_LISTED: Final = 4


class Transfer:
    """A save or a restore.

    Attributes:
      kind: "save" or "restore".
      path: The checkpoint, as it may be shown.
      background: Whether training continues meanwhile.
      state: "running", "done" or "failed".
      total_bytes: The bytes of all arrays; 0 until `begin`.
      done_bytes: How many of these bytes are written or read.
      shards: Number of files.
      under_way: The numbers of the files that are being written or read.
      error: Why it failed, else None.
    """

    def __init__(
        self,
        kind: Literal["save", "restore"],
        path: str,
        strategies: Iterable[DescribedStrategy],
        *,
        background: bool = False,
    ) -> None:
        """Starts to measure the time.

        Args:
          kind: "save" or "restore".
          path: The checkpoint.
          strategies: The strategies of its variables; their clusters get its line in their logs. Without any, the
            current cluster gets it.
          background: Whether training continues meanwhile.
        """
        self.kind: Final = kind
        self.path: Final = shown(path)
        self.background: Final = background
        self.state: Literal["running", "done", "failed"] = "running"
        self.total_bytes = self.done_bytes = self.shards = 0
        self.under_way: tuple[int, ...] = ()
        self.error: BaseException | None = None
        self._start = time.monotonic()
        self._end: float | None = None
        self._detour = ""
        strategies = list(strategies)
        groups = [group for one in strategies if (group := _group_of(one)) is not None]
        self._step = max((group.number - 1 for group in groups), default=-1)
        self._gangs: list[Gang[Any]] = list({id(one.gang): one.gang for one in strategies}.values())
        cluster = current_cluster()
        if not strategies and cluster is not None and not cluster.closed:
            self._gangs = [cluster.gang]

    @property
    def seconds(self) -> float:
        """Its duration until now, or until its end."""
        return (time.monotonic() if self._end is None else self._end) - self._start

    @property
    def clusters(self) -> list[Cluster]:
        """The clusters of its strategies that still exist."""
        return [gang.cluster for gang in self._gangs if gang.cluster is not None]

    def begin(self, total_bytes: int, shards: int) -> None:
        """Sets how much there is to write or read."""
        self.total_bytes, self.shards = total_bytes, shards
        self._tell_listeners()

    def detour(self, count_bytes: int, why: str) -> None:
        """Notes that some bytes go through the notebook, and why; the line at its end shows all such notes."""
        self._detour += f"; {size_text(count_bytes)} went through the notebook, as {why}"

    def move(self, done_bytes: int, under_way: Collection[int] = ()) -> None:
        """Sets the progress and the files that are being written or read."""
        self.done_bytes = min(done_bytes, self.total_bytes)  # headers count too, so it could exceed the total
        self.under_way = tuple(sorted(under_way))
        self._tell_listeners()

    def end(self, error: BaseException | None = None) -> None:
        """Marks it as complete, or as failed with `error`."""
        if self.state != "running":
            return
        self._end = time.monotonic()
        self.state = "done" if error is None else "failed"
        self.error, self.under_way = error, ()
        if error is None:
            self.done_bytes = self.total_bytes
        self._tell_listeners()
        if error is None:
            self._log("lifecycle", f"checkpoint_{self.kind}d", self.text(), "info")
        else:
            self.alert(self.text())

    def alert(self, text: str) -> None:
        """Adds an alert to the logs, and to Python's logging if nothing waits for the result."""
        self._log("alert", f"checkpoint_{self.kind}_failed", text, "error")
        if self.background:
            log.error("%s", text)

    def text(self) -> str:
        """A readable line, such as "saving 'ckpt-3': 128 MiB of 1 GiB, 512 MB/s, shards 0, 1 (1 of 3 complete)"."""
        what = f"{_WORDS[self.kind, self.state]} {self.path!r}"
        rate = rate_text(self.done_bytes / self.seconds / 1e9) if self.done_bytes and self.seconds else ""
        if self.state == "running":
            parts = [f"{size_text(self.done_bytes)} of {size_text(self.total_bytes)}", rate, self._files()]
            return f"{what}: {', '.join(part for part in parts if part)}"
        took = f"{significant(self.seconds)} s{', in the background' if self.background else ''}"
        if self.error is not None:
            return f"{what}, after {took}: {type(self.error).__name__}: {self.error}"
        return f"{what}: {size_text(self.total_bytes)} in {took}{f', {rate}' if rate else ''}{self._detour}"

    def _files(self) -> str:
        if not self.under_way:
            return ""
        listed = ", ".join(map(str, self.under_way[:_MOST_LISTED]))
        more = " …" if len(self.under_way) > _MOST_LISTED else ""
        complete = self.shards - len(self.under_way)
        return f"shard{'s' * (len(self.under_way) > 1)} {listed}{more} ({complete} of {self.shards} complete)"

    def _log(self, kind: str, name: str, text: str, severity: str) -> None:
        event = Event(kind, name, text, time.monotonic_ns(), severity=severity, step=self._step)
        for gang in self._gangs:
            with contextlib.suppress(Exception):  # a recording may have ended in the meantime
                gang.notify(event)

    def _tell_listeners(self) -> None:
        for listener in tuple(listeners):
            try:
                listener(self)
            except Exception:  # a view of the save must not make the save fail
                log.debug("could not show %s", self.path, exc_info=True)


def _group_of(strategy: DescribedStrategy) -> Group | None:
    """The replicas of a strategy; None if its variables are on parameter servers."""
    try:
        return strategy.group
    except RuntimeError:
        return None
