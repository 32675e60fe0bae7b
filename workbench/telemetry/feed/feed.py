"""Folds batches of all replicas into one snapshot, once, for every view."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from workbench import forks
from workbench.telemetry.dataframe import to_pandas
from workbench.telemetry.delta import delta
from workbench.telemetry.events import Event
from workbench.telemetry.feed.batch_sources import Source
from workbench.telemetry.feed.group_view import busy_shares, group_view
from workbench.telemetry.feed.history import (
    COLLECTIVE,
    KEY,
    RECORD,
    Newest,
    Texts,
    to_columns,
    to_rows,
    together,
)
from workbench.telemetry.feed.join import join
from workbench.telemetry.feed.lane_choice import GroupKey, LaneChoice
from workbench.telemetry.feed.members import Members
from workbench.telemetry.feed.nan_onsets import Onsets
from workbench.telemetry.feed.stuck import Ends
from workbench.telemetry.feed.timing_table import rolling_table
from workbench.telemetry.feed.told_of_groups import ToldOfGroups
from workbench.telemetry.limits import Limit
from workbench.telemetry.recording import batches
from workbench.telemetry.recording.batches import with_named_sites
from workbench.telemetry.snapshot import Counters, EventItem, LastSeen, Onset, Snapshot, TableRow
from workbench.telemetry.told import EpochFacts, MemoryFacts, ResultCourse, SentSteps, Told

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_FOLD_AT: Final = 2048
"""Small, so that a fold needs little temporary memory: a process keeps most of the memory it has ever used."""
_MAX_EVENTS: Final = 512
_MAX_EVENT_CHARACTERS: Final = 256 << 10
"""The limit for all messages together, because each page gets all of them when it opens."""
_MAX_GROUPS: Final = 8
_MAX_SOURCES: Final = 4096


class Feed:
    """The newest part of a run's telemetry, joined over replicas. Any thread may call any method.

    Batches are decoded when they arrive, but folded only when a view reads them, or when many have accumulated: folding
    costs time once per repaint instead of once per batch.
    """

    def __init__(
        self,
        *,
        max_records: int = 65_536,
        max_collectives: int = 8192,
        max_pending: int = 8192,
        now_ns: Callable[[], int] = time.monotonic_ns,
        name_sites: Callable[[str], str] = str,
    ) -> None:
        """Makes an empty feed.

        Args:
          max_records: Newest records kept, for lanes, lateness, `to_arrow` and exports.
          max_collectives: Newest collectives kept, for the table.
          max_pending: Records kept while they wait for those of other replicas; the oldest are given up first.
          now_ns: The driver's monotonic clock; decides when a collective counts as stuck.
          name_sites: Replaces call sites in a text by the names that users know, such as "In[5]:3".
        """
        # Guards everything below. Held for one fold at most, never while waiting.
        self._lock = forks.lock(threading.Lock())
        self._texts = Texts()
        self._ok = self._texts.number("ok")
        self._entered = self._texts.number("entered")
        self._now_ns = now_ns
        self._max_pending = max_pending
        self._incoming: list[np.ndarray] = []
        self._pending = np.zeros(0, RECORD)
        self._records = Newest(RECORD, "ready_ns", max_records)
        self._collectives = Newest(COLLECTIVE, "ready_ns", max_collectives)
        self._members = Members()
        self._onsets = Onsets(self._texts)
        self._choice = LaneChoice()
        self._events: deque[EventItem] = deque()
        self._event_characters = 0
        self._event_count = 0
        self._sources: dict[str, Source] = {}
        self._limits: dict[str, tuple[Limit, int]] = {}
        self._lost: dict[tuple[str, str, int, int], tuple[int, int, bool]] = {}
        self._told = ToldOfGroups()
        self._places: dict[tuple[str, str], dict[int, str]] = {}
        self._name_sites = name_sites
        self._counts = dict.fromkeys(Counters.__dataclass_fields__, 0)
        self._version = 0
        self._changed = False
        self._cached: Snapshot | None = None

    def ingest(self, data: bytes) -> bool:
        """Adds a batch from `Drain.take`; ignores a repeated one.

        Returns:
          Whether the batch was new.

        Raises:
          DataCorruption: if `data` is not a batch; the feed is unchanged.
        """
        if not data:
            return False
        header, columns = batches.decode(data)
        return self.ingest_columns(header, columns)

    def ingest_columns(self, header: batches.Header, columns: batches.Columns) -> bool:
        """As `ingest`, for a batch that is already decoded."""
        with self._lock:
            source = self._source(header.drain)
            if not source.is_new(header.batch):
                self._counts["duplicates"] += 1
                return False
            # A drain counts from its beginning, so only its newest batch adds to the sums.
            self._counts["dropped"] += max(0, header.dropped - source.dropped)
            self._counts["dropped_events"] += max(0, header.dropped_events - source.dropped_events)
            source.dropped = max(source.dropped, header.dropped)
            source.dropped_events = max(source.dropped_events, header.dropped_events)
            rows = to_rows(with_named_sites(columns, self._name_sites), self._texts)
            if len(rows):
                self._incoming.append(rows)
                self._counts["records"] += len(rows)
            for event in header.events:
                self._add_event(event)
            self._changed = True
            if sum(map(len, self._incoming)) >= _FOLD_AT:
                self._fold()
            return True

    def end_source(self, drain: str) -> None:
        """Ignores later batches of a drain whose process has ended, because its records are already known."""
        with self._lock:
            self._source(drain).ended = True

    def newest(self, run_id: str, group: str, generation: int, replica: int) -> tuple[int, int]:
        """Step and number of a replica's newest recorded collective; (-1, -1) if there is none.

        Args:
          run_id: Id of the cluster.
          group: Name of the group.
          generation: Generation of the group.
          replica: Rank of the replica.
        """
        with self._lock:
            self._fold()
            key = self._texts.number(run_id), self._texts.number(group), generation
            return self._members.newest_of(key, replica)

    def set_lost(
        self, run_id: str, group: str, generation: int, replica: int, *, position: tuple[int, int, bool]
    ) -> None:
        """Sets where a replica was when its process ended.

        Args:
          run_id: The run.
          group: Label of its group.
          generation: The group's generation.
          replica: The replica.
          position: Its step, the number of its last collective there, and whether it was in it.
        """
        with self._lock:
            self._lost[run_id, group, generation, replica] = position
            self._changed = True

    def add_event(self, event: Event) -> None:
        """Adds an event of the driver itself, such as a lost replica; `t_ns` by the driver's clock."""
        with self._lock:
            self._add_event(event)
            self._changed = True

    def set_limit(self, group: str, limit: Limit) -> None:
        """Sets the measured limit of a group's bus bandwidth; the table shows percentages of it."""
        with self._lock:
            self._limits[group] = limit, self._version + 1
            self._changed = True

    def set_cores(self, group: str, cores: int) -> None:
        """Sets how many cores the replicas of a group share: if there are more replicas, some are always late."""
        with self._lock:
            self._told.set_cores(group, cores)
            self._changed = True

    def set_cores_used(self, group: str, used: float | None) -> None:
        """Sets how many of its cores the newest steps of a group used; None if there were too few."""
        with self._lock:
            if self._told.set_cores_used(group, used):
                self._changed = True

    def set_epoch(self, group: str, epoch: EpochFacts) -> None:
        """Sets how far a group's newest loop over a distributed dataset is."""
        with self._lock:
            if self._told.set_epoch(group, epoch):
                self._changed = True

    def set_sent(self, group: str, sent: SentSteps) -> None:
        """Sets when the newest steps of a group were sent to its replicas."""
        with self._lock:
            if self._told.set_sent(group, sent):
                self._changed = True

    def add_input(self, group: str, *, waited_ns: Sequence[int], elements: int, rows: Sequence[int]) -> None:
        """Reports that the replicas of a group received elements of a distributed dataset.

        Args:
          group: Label of the group.
          waited_ns: How long each replica waited for them.
          elements: The number of elements.
          rows: How many rows of the last element each replica received.
        """
        with self._lock:
            self._told.add_input(group, self._now_ns(), waited_ns=waited_ns, elements=elements, rows=rows)
            self._changed = True

    def set_memory(self, group: str, memory: MemoryFacts | None, *, step: int) -> None:
        """Sets the fullest memory of a group's replicas.

        Args:
          group: Label of the group.
          memory: The memory now; this computes its growth. None if there are no limits.
          step: The group's newest step.
        """
        with self._lock:
            if self._told.set_memory(group, memory, step):
                self._changed = True

    def set_result(self, group: str, course: ResultCourse) -> None:
        """Sets a number that the steps of a group return."""
        with self._lock:
            if self._told.set_result(group, course):
                self._changed = True

    def set_told(self, group: str, told: Told) -> None:
        """Sets all of these at once, from `told`."""
        with self._lock:
            self._told.set(group, told)
            self._changed = True

    def told(self, group: str) -> Told:
        """What was set for a group."""
        with self._lock:
            return self._told.of(group)

    def all_told(self) -> dict[str, Told]:
        """What was set for each group, by its label."""
        with self._lock:
            return self._told.all()

    def set_place(self, run_id: str, group: str, replica: int, place: str) -> None:
        """Sets where in the user's code a replica has been for long, such as "train.py:84 in step, for 12 s".

        Args:
          run_id: The run.
          group: Label of its group.
          replica: The replica.
          place: Where it is; "" if it continues.
        """
        with self._lock:
            known = self._places.setdefault((run_id, group), {})
            if place != known.get(replica, ""):
                known[replica] = place
                self._changed = True

    def limit(self, group: str) -> Limit | None:
        """The limit that `set_limit` set for a group."""
        with self._lock:
            return self._limits[group][0] if group in self._limits else None

    def snapshot(self) -> Snapshot:
        """What views draw, now. The same object as before if nothing changed."""
        with self._lock:
            shown = self._cached
            settled = not self._changed and not len(self._pending)
            # Another caller caused a fold, and got another version.
            if shown is not None and shown.version == self._version and settled:
                return shown
            self._fold()
            fresh = self._build()
            if fresh == self._cached:
                return self._cached
            if self._cached is not None and self._cached.version == fresh.version:
                # Nothing new came, but a pending collective has become old enough to count as stuck.
                self._version += 1
                fresh = replace(fresh, version=self._version)
            self._cached = fresh
            return fresh

    def delta(self, since: int) -> dict[str, Any]:
        """What changed after version `since` (0: everything), JSON-able; see `delta.merge`."""
        return delta(self.snapshot(), since)

    def first_not_finite(self, run_id: str, group: str, *, since: int, until: int) -> Onset | None:
        """The first NaN or infinity that went into a collective of a group and was present in some steps.

        Args:
          run_id: The run.
          group: The group's label.
          since: The first of the steps.
          until: The last of them.
        """
        with self._lock:
            self._fold()
            key = self._texts.number(run_id), self._texts.number(group)
            return self._onsets.of(key, complete=self._is_complete(), since=since, until=until)

    def busy_shares(self, run_id: str, group: str, generation: int) -> dict[int, float]:
        """For each replica of a group, the share of its newest steps, 0 to 1, in which it did not wait for others.

        Args:
          run_id: The run.
          group: The group's label.
          generation: How often the group was connected.
        """
        with self._lock:
            self._fold()
            key = self._texts.number(run_id), self._texts.number(group), generation
            return busy_shares(key, self._records.rows(), self._told.of(group).sent)

    def _last(self, key: GroupKey) -> dict[int, LastSeen]:
        """The newest collective of each replica of a group, and where the replica has been since."""
        last = self._members.last(key, self._texts)
        for replica, place in self._places.get((self._texts[key[0]], self._texts[key[1]]), {}).items():
            if place:  # a replica that cannot send records still has a place
                seen = last.get(replica, LastSeen(replica, -1, -1, "", ""))
                last[replica] = replace(seen, now=self._name_sites(place))
        return last

    def _ends(self, key: GroupKey) -> Ends:
        run_id, group, generation = self._texts[key[0]], self._texts[key[1]], key[2]
        told = [event for event in self._events if event.is_of(group, generation)]
        return Ends(
            positions={
                where[3]: position
                for where, position in self._lost.items()
                if where[:3] == (run_id, group, generation)
            },
            lost=frozenset(event.replica for event in told if event.name == "replica_lost"),
            failed=frozenset(event.step for event in told if event.name == "step_failed"),
        )

    def _not_finite(self, key: GroupKey) -> tuple[Onset | None, Onset | None]:
        """The first onset of a group, and the first of the lasting ones."""
        complete, newest = self._is_complete(), self._members.newest_step(key)
        return (
            self._onsets.of(key[:2], complete=complete),
            self._onsets.of(key[:2], complete=complete, since=max(0, newest - 1)),
        )

    def _is_complete(self) -> bool:
        return not self._counts["dropped"] and not self._counts["incomplete"]

    def table(self) -> tuple[TableRow, ...]:
        """The timing table of `snapshot()`."""
        return self.snapshot().table

    def to_arrow(self) -> pa.Table:
        """The records kept, in order of time, with the schema of `records.schema()`."""
        with self._lock:
            self._fold()
            rows = together([self._records.rows(), self._pending])
            return batches.to_table(to_columns(rows, self._texts))

    def to_pandas(self) -> pd.DataFrame:
        """`to_arrow` as a data frame.

        Raises:
          BackendUnavailable: if pandas is not installed.
        """
        return to_pandas(self.to_arrow())

    def _add_event(self, event: Event) -> None:
        self._event_count += 1
        key = str(self._event_count)
        fields = event.as_dict() | {"site": self._name_sites(event.site)}
        self._events.append(EventItem(key=key, version=self._version + 1, **fields))
        self._event_characters += len(event.message)
        while len(self._events) > _MAX_EVENTS or self._event_characters > _MAX_EVENT_CHARACTERS:
            self._event_characters -= len(self._events.popleft().message)
            self._counts["dropped_events"] += 1

    def _source(self, drain: str) -> Source:
        if drain not in self._sources and len(self._sources) >= _MAX_SOURCES:
            del self._sources[next(iter(self._sources))]  # from a worker that ended long ago
        return self._sources.setdefault(drain, Source())

    def _fold(self) -> None:
        if not self._changed:
            return
        self._changed = False
        self._version += 1
        if not self._incoming:
            return
        incoming = together(self._incoming)
        self._incoming = []
        self._members.update(incoming)
        self._onsets.update(incoming)
        joined = join(
            together([self._pending, incoming]),
            entered=self._entered,
            ok=self._ok,
            version=self._version,
        )
        users = int((joined.collectives["purpose"] == 0).sum())
        self._counts["collectives"] += users
        self._counts["internal"] += len(joined.collectives) - users
        self._counts["failed"] += int((joined.collectives["state"] != self._ok).sum())
        self._collectives.add(joined.collectives)
        self._records.add(joined.records)
        self._pending = self._bounded(joined.pending)
        self._counts["pending"] = len(self._pending)

    def _bounded(self, pending: np.ndarray) -> np.ndarray:
        """Gives up the oldest pending collectives when they hold too many records."""
        if len(pending) <= self._max_pending:
            return pending
        enter = pending["t_enter_ns"] + pending["clock_offset_ns"]
        oldest = np.sort(enter)[len(pending) - self._max_pending // 2]
        keep = enter >= oldest
        given_up = pending[~keep]
        self._counts["incomplete"] += len(np.unique(given_up[list(KEY)]))
        kept: np.ndarray = pending[keep]
        return kept

    def _build(self) -> Snapshot:
        collectives, records = self._collectives.rows(), self._records.rows()
        keys = self._members.newest(_MAX_GROUPS)
        self._choice.keep(keys)
        groups = tuple(
            group_view(
                key,
                collectives=collectives,
                records=records,
                pending=self._pending,
                last=self._last(key),
                texts=self._texts,
                choice=self._choice,
                version=self._version,
                now_ns=self._now_ns(),
                ends=self._ends(key),
                told=self._told.of(self._texts[key[1]]),
                not_finite=self._not_finite(key),
            )
            for key in keys
        )
        table = rolling_table(collectives, self._texts, ok=self._ok, limits=self._limits)
        return Snapshot(
            version=self._version,
            counters=Counters(**self._counts),
            table=tuple(row for row in table if not row.purpose),
            internal=tuple(row for row in table if row.purpose),
            groups=groups,
            events=tuple(self._events),
        )
