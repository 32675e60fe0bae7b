"""Finds out which replicas have reached a collective; a replica asks once, when its deadline has passed.

This needs no announcements. Before a replica waits, it writes down a fingerprint that is different for every
collective, so a replica that finds this fingerprint knows that the other one has arrived:

* a replica of this process has it in its position;
* another process of this host has it in its control page, as have its replicas that wait for others of that process;
* other hosts are asked; a thread of their first process answers, whatever its replicas do (`remote_roll_call`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from workbench.communicators.core.control_page import FINGERPRINT, MOST_SEATS, SEATS
from workbench.communicators.core.failure import Failure
from workbench.communicators.core.position import Position
from workbench.communicators.core.remote_roll_call import OtherHosts
from workbench.telemetry.formatting import MOST_NAMED, replicas_text

_ANSWER_SECONDS = 1.0  # a host that does not answer within this time counts as silent


class RollCall:
    """What one process knows, or can find out, about the replicas of its group. Any thread."""

    def __init__(self, size: int, *, generation: int) -> None:
        """Starts without replicas; `watch`, `look_at` and `ask` add them."""
        self._everybody = range(size)
        self._generation = generation
        self._positions: tuple[Position, ...] = ()
        self._neighbours: list[tuple[Sequence[int], memoryview]] = []
        self._own_words: memoryview | None = None
        self._seats: dict[int, int] = {}
        self._hosts: OtherHosts | None = None

    def watch(self, position: Position) -> None:
        """Adds a replica of this process; call it in rank order."""
        self._seats[position.rank] = len(self._positions)
        self._positions += (position,)

    def look_at(self, index: int, ranks: Sequence[Sequence[int]], words: Sequence[memoryview]) -> None:
        """Adds the processes of this host: their replicas and control words. This process is number `index`."""
        pairs = list(zip(ranks, words, strict=True))
        self._own_words = words[index]
        self._neighbours = pairs[:index] + pairs[index + 1 :]

    def ask(self, hosts: OtherHosts) -> None:
        """Adds other hosts, which can then ask this one, too."""
        self._hosts = hosts
        hosts.answer_with(self.present)

    def sit(self, position: Position) -> None:
        """Lets other processes see that a replica has arrived while others of its process have not."""
        words, seat = self._own_words, self._seats.get(position.rank, MOST_SEATS)
        if words is not None and seat < MOST_SEATS:
            words[SEATS + seat] = position.fingerprint()

    def present(self, fingerprint: int) -> set[int]:
        """The replicas of this host that have reached a collective."""
        here = {position.rank for position in self._positions if position.came_to(fingerprint)}
        for ranks, words in self._neighbours:
            if fingerprint in (words[FINGERPRINT], words[FINGERPRINT + 1]):
                here.update(ranks)
            else:
                seats = zip(ranks, range(SEATS, SEATS + MOST_SEATS), strict=False)
                here.update(rank for rank, seat in seats if words[seat] == fingerprint)
        return here

    def overdue(self, position: Position) -> Failure:
        """The failure when the deadline of a replica's collective has passed; it names the missing replicas."""
        waited = position.waited_seconds()
        fingerprint = position.fingerprint()
        here = self.present(fingerprint) | {position.rank}
        silent: set[int] = set()
        hosts = self._hosts  # `close`, on another thread, removes them
        if hosts is not None:
            found, silent = hosts.present(fingerprint, time.monotonic() + _ANSWER_SECONDS)
            here |= found
        missing = [rank for rank in self._everybody if rank not in here]
        asked = position.asked()
        allowed = (position.deadline_ns - position.entered_ns) * 1e-9
        text = (
            f"{asked} of replica {position.limited_by} exceeded its timeout of {allowed:g} s: "
            f"after {waited:.3g} s {_absence(missing, silent)}"
        )
        replica = next((rank for rank in missing if rank not in silent), (*missing, -1)[0])
        return Failure("deadline", text, replica, self._generation, position.step, asked.collective)

    def close(self) -> None:
        """Stops answering and drops the memory of other processes."""
        hosts, self._hosts = self._hosts, None
        self._own_words = None
        self._neighbours = []
        if hosts is not None:
            hosts.close()


def _absence(missing: Sequence[int], silent: set[int]) -> str:
    """Describes who is missing, and the remedy."""
    late = [rank for rank in missing if rank not in silent]
    unknown = [rank for rank in missing if rank in silent]
    if not missing:
        return (
            "every replica had come to it, but it had not ended. Allow more time for the data "
            "(CommunicationOptions.timeout_seconds)."
        )
    parts = []
    if late:
        parts.append(f"waiting for {replicas_text(late, MOST_NAMED)}, which {_has(late)} not come to it")
    if unknown:
        parts.append(f"waiting for {replicas_text(unknown, MOST_NAMED)}, whose host does not answer")
    return (
        f"{' and '.join(parts)}. Look at what {replicas_text(late or unknown, MOST_NAMED)} did instead: every "
        f"replica must make the same collective calls; or allow more time (CommunicationOptions.timeout_seconds)."
    )


def _has(ranks: Sequence[int]) -> str:
    return "has" if len(ranks) == 1 else "have"
