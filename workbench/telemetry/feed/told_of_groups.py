"""ToldOfGroups: what is known about each group besides its records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from workbench.telemetry.feed.input_log import InputLog
from workbench.telemetry.told import EpochFacts, MemoryFacts, ResultCourse, SentSteps, Told

_OTHER: Final = 0.05
"""Smaller changes in the cores used are ignored, so that statements do not come and go."""

_MOST_SENT: Final = 2048
"""How many steps keep their time of sending: as many as the search for slow steps compares."""


class ToldOfGroups:
    """Facts by the label of a group. One thread at a time."""

    def __init__(self) -> None:
        self._told: dict[str, Told] = {}
        self._input: dict[str, InputLog] = {}
        self._memory: dict[tuple[str, int], tuple[int, int]] = {}  # a replica's first reading: bytes, step

    def of(self, group: str) -> Told:
        """All that is known about a group."""
        told = self._told.get(group, Told())
        log = self._input.get(group)
        return told if log is None else replace(told, input=log.facts(told.sent))

    def all(self) -> dict[str, Told]:
        """All that is known about each group, including those whose strategy is gone."""
        return {group: self.of(group) for group in dict.fromkeys((*self._told, *self._input))}

    def set(self, group: str, told: Told) -> None:
        """As `Feed.set_told`."""
        self._told[group] = told

    def set_cores(self, group: str, cores: int) -> None:
        """As `Feed.set_cores`."""
        self._told[group] = replace(self._told.get(group, Told()), cores=cores)

    def set_cores_used(self, group: str, used: float | None) -> bool:
        """As `Feed.set_cores_used`; returns whether this changed anything."""
        before = self._told.get(group, Told())
        known = before.cores_used
        if used == known or (used is not None and known is not None and abs(used - known) < _OTHER):
            return False
        self._told[group] = replace(before, cores_used=None if used is None else round(used, 2))
        return True

    def set_epoch(self, group: str, epoch: EpochFacts) -> bool:
        """As `Feed.set_epoch`; returns whether this changed anything."""
        before = self._told.get(group, Told())
        self._told[group] = replace(before, epoch=epoch)
        return before.epoch != epoch

    def set_sent(self, group: str, sent: SentSteps) -> bool:
        """As `Feed.set_sent`; returns whether this changed anything."""
        before = self._told.get(group, Told())
        if before.sent is not None:
            sent = before.sent.then(sent).newest(_MOST_SENT)
        self._told[group] = replace(before, sent=sent)
        return before.sent != sent

    def add_input(
        self, group: str, now_ns: int, *, waited_ns: Sequence[int], elements: int, rows: Sequence[int]
    ) -> None:
        """As `Feed.add_input`, at a time of the driver's clock."""
        log = self._input.get(group)
        if log is None or log.replicas != len(rows):  # the number of replicas has changed since
            log = self._input[group] = InputLog(len(rows))
        log.add(now_ns, waited_ns=waited_ns, elements=elements, rows=rows)

    def set_result(self, group: str, course: ResultCourse) -> bool:
        """As `Feed.set_result`; returns whether this changed anything."""
        before = self._told.get(group, Told())
        if course == before.result:
            return False
        self._told[group] = replace(before, result=course)
        return True

    def set_memory(self, group: str, memory: MemoryFacts | None, step: int) -> bool:
        """As `Feed.set_memory`; returns whether this changed anything."""
        before = self._told.get(group, Told())
        if memory is not None:
            used, since = self._memory.setdefault((group, memory.replica), (memory.used_bytes, step))
            memory = replace(memory, grown_bytes=memory.used_bytes - used, steps=max(0, step - since))
        self._told[group] = replace(before, memory=memory)
        return memory != before.memory
