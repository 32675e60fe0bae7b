"""ProgressLog: the replicas' progress in an epoch, from data that they send with their messages anyway.

A Trail has the log of a distributed dataset's newest epoch.
"""

from __future__ import annotations

import itertools
import pickle
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from workbench.data.cost.flow import InputFlow, pipeline_flow, replica_waits
from workbench.data.cost.profile import PipelineProfile, merged
from workbench.data.cost.recent import ReaderHistory
from workbench.data.explanation import input_flow
from workbench.data.sharding.progress import InputProgress, InputWait
from workbench.runtime.user_code.notebook_cells import running_cell
from workbench.telemetry.snapshot import SampledSteps
from workbench.telemetry.told import EpochFacts

if TYPE_CHECKING:
    from workbench.runtime.driver.group import Group

_FETCHES: Final = 64
"""Number of the newest fetches and elements that are placed on the axis of steps."""
_WAITS: Final = 1024
"""Number of replicas' waits that are kept for views: with 512 replicas, those of two fetches."""
_REMEMBERED: Final = 256  # elements; many times more than steps in progress can hold


class ProgressLog:
    """The newest epoch of a distributed dataset. The iterating thread writes it; any thread may read it."""

    def __init__(self, epoch: int, replicas: int, first: int, *, elements: int) -> None:
        """Begins a log.

        Args:
          epoch: Number of the epoch.
          replicas: Number of replicas that read it.
          first: Number of the first element.
          elements: Number of elements in the epoch; negative if unknown or infinite.
        """
        self._epoch = epoch
        self._first = first
        self._elements = elements
        self._began = self._latest = time.monotonic()  # as if the notebook had never paused since
        self._cell = running_cell()  # the cell that asked last
        self._turns: deque[tuple[int, int]] = deque(maxlen=_REMEMBERED)
        self._waited_ns = (0,) * replicas
        self._fetched = self._began
        # Number of the next step, percentage of time waited.
        self._fetches: deque[tuple[int, float]] = deque(maxlen=_FETCHES)
        self._waits: deque[InputWait] = deque(maxlen=max(1, min(_FETCHES, _WAITS // max(1, replicas))))
        self._told: dict[tuple[int, str], ReaderHistory] = {}

    def ask(self, group: Group) -> None:
        """Records that the notebook asks for an element, and leaves out how long it has paused between two cells.

        A pause begins when the elements so far have been given, and the steps of `group` have ended.
        """
        if (cell := running_cell()) == self._cell:
            return
        self._cell = cell
        if (idle_since_ns := group.idle_since_ns) is not None:
            paused = time.monotonic() - max(self._latest, self._fetched, idle_since_ns / 1e9)
            self._began += paused
            self._fetched += paused

    def give(self, element: int, next_step: int) -> None:
        """Records that the notebook gets an element, which the user's next step may use."""
        self._turns.append((element, next_step))
        self._latest = time.monotonic()

    def wait(self, waited_ns: Sequence[int], next_step: int, *, first: int, count: int) -> None:
        """Records how long each replica waited for received input.

        Args:
          waited_ns: The waits, by replica.
          next_step: Number of the next step, which may use the input.
          first: Number of the first received element.
          count: Number of received elements.
        """
        before, self._fetched = self._fetched, time.monotonic()
        passed_ns = 1e9 * max(1e-9, self._fetched - before)
        if count:
            waited_us = tuple(waited // 1000 for waited in waited_ns)
            self._waits.append(InputWait(first, count, int(passed_ns / 1000), waited_us))
        percent = min(100.0, 100 * max(waited_ns, default=0) / passed_ns)
        self._fetches.append((next_step, round(percent, 2)))
        if len(waited_ns) != len(self._waited_ns):  # the number of replicas has changed
            self._waited_ns = (0,) * len(waited_ns)
        self._waited_ns = tuple(
            before + more for before, more in zip(self._waited_ns, waited_ns, strict=True)
        )

    def cost(self, told: Sequence[bytes]) -> None:
        """Records the cost of reading so far, which some replicas report with their input.

        Args:
          told: By replica, the result of `HostInput.cost`.
        """
        for data in told:
            if data:
                host, worker, profiles = pickle.loads(data)
                before = self._told.get((host, worker), ReaderHistory())
                now = before.and_now(pickle.loads(profiles), time.monotonic())
                # Replaced rather than changed, because other threads iterate over it.
                self._told = {**self._told, (host, worker): now}

    @property
    def fetches(self) -> tuple[tuple[int, float], ...]:
        """For each fetch, oldest first: the next step, and the percentage of time of a replica's longest wait."""
        return tuple(self._fetches.copy())

    @property
    def costs(self) -> dict[int, tuple[tuple[PipelineProfile, PipelineProfile | None], ...]]:
        """By host, the cost of each of its datasets in all processes that read it, in total and in the last seconds."""
        hosts: dict[int, list[ReaderHistory]] = {}
        for (host, _), told in sorted(self._told.items()):
            hosts.setdefault(host, []).append(told)
        now = time.monotonic()
        return {host: tuple(_costs(found, now)) for host, found in hosts.items()}

    def facts(self) -> EpochFacts:
        """The notebook's progress."""
        turns = self._turns.copy()
        given = max((element for element, _ in turns), default=self._first - 1) + 1
        return EpochFacts(self._epoch, given, max(-1, self._elements))

    def now(self, group: Group) -> InputProgress:
        """The progress of the replicas of `group`."""
        turns = self._turns.copy()
        oldest = (turns[0][0] if turns else self._first) - 1
        steps = tuple(
            next((element for element, step in reversed(turns) if step <= at), oldest)
            for at in group.at_steps()
        )
        taken = dict(turns)  # for an element that was returned again, the newest step
        given = max(taken, default=self._first - 1) + 1
        newest: list[int] = []
        for element in range(max(min(taken, default=given), given - _FETCHES), given):
            # An element with a failed step counts for the step before it.
            newest.append(taken.get(element, newest[-1] if newest else taken[given - 1]))
        return InputProgress(
            epoch=self._epoch,
            given=given,
            elapsed_seconds=self._latest - self._began,
            steps=steps,
            waited_seconds=tuple(waited / 1e9 for waited in self._waited_ns),
            sampled=SampledSteps(group.gang.run_id, group.name, tuple(newest)),
            waits=tuple(self._waits.copy()),
        )


def _costs(
    readers: Sequence[ReaderHistory], now: float
) -> Iterator[tuple[PipelineProfile, PipelineProfile | None]]:
    recent = [found for told in readers if (found := told.recent(now)) is not None]
    columns = zip(*recent, strict=True) if len(recent) == len(readers) else itertools.repeat(None)
    for column, added in zip(zip(*(told.newest for told in readers), strict=True), columns, strict=False):
        yield merged(column), None if added is None else merged(added)


class Trail:
    """The progress of a distributed dataset's newest epoch. It outlives the dataset, for later readers."""

    def __init__(self) -> None:
        self._newest: tuple[ProgressLog, Group] | None = None

    def begin(self, epoch: int, group: Group, first: int, *, elements: int) -> ProgressLog:
        """Begins the log of an epoch that begins or continues with element number `first`; see `ProgressLog`."""
        log = ProgressLog(epoch, group.size, first, elements=elements)
        self._newest = log, group
        group.epoch = log.facts
        return log

    def now(self) -> InputProgress | None:
        """The replicas' progress; None before the first epoch."""
        if self._newest is None:
            return None
        log, group = self._newest
        return log.now(group)

    def flow(self) -> InputFlow:
        """The cost of the hosts' input pipelines in the newest epoch, and how long replicas waited."""
        if self._newest is None:
            return input_flow([], status="live", elapsed_seconds=0.0)
        log, group = self._newest
        progress = log.now(group)
        hosts = list(dict.fromkeys(device.host for device in group.devices))
        waits = replica_waits(
            progress.waited_seconds,
            [hosts.index(device.host) for device in group.devices][: len(progress.waited_seconds)],
            progress.elapsed_seconds,
        )
        pipelines = [
            pipeline_flow(
                profile, recent, host=host, name=hosts[host] if host < len(hosts) else f"host {host}"
            )
            for host, costs in log.costs.items()
            for profile, recent in costs
        ]
        flow = input_flow(
            pipelines,
            waits,
            status="stopped" if group.gang.closed else "live",
            elapsed_seconds=progress.elapsed_seconds,
            limit=f"epoch {progress.epoch}",
        )
        fetches = log.fetches
        sampled = SampledSteps(group.gang.run_id, group.name, tuple(step for step, _ in fetches))
        return replace(flow, sampled=sampled, waited_percent=tuple(percent for _, percent in fetches))
