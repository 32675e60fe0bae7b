"""Which replicas have come to a collective: asked once, by the replica whose deadline has passed.

Nobody announces anything for it. The fingerprint that a replica writes down before it waits is different for every
collective, so a replica that finds it knows that the other is there:

* a replica of this process has it in its position;
* another process of this host has it in its control page, or that of single replicas that wait for others of theirs;
* another host is asked; a thread of its first process answers, whatever its replicas do (`remote_roll_call`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from workbench.communicators.core.control_page import FINGERPRINT, MOST_SEATS, SEATS
from workbench.communicators.core.failure import Failure
from workbench.communicators.core.position import Position
from workbench.communicators.core.remote_roll_call import OtherHosts
from workbench.telemetry.formatting import MOST_NAMED, replicas_text

_ANSWER_SECONDS = 1.0  # a host that does not answer within this time is called silent


class RollCall:
    """What one process knows, or finds out, about the replicas of its group. Any thread."""

    def __init__(self, size: int, *, generation: int) -> None:
        """Knows nobody yet: see `watch`, `look_at` and `ask`."""
        self._everybody = range(size)
        self._generation = generation
        self._positions: tuple[Position, ...] = ()
        self._neighbours: list[tuple[Sequence[int], memoryview]] = []
        self._own_words: memoryview | None = None
        self._seats: dict[int, int] = {}
        self._hosts: OtherHosts | None = None

    def watch(self, position: Position) -> None:
        """Adds a replica of this process; in the order of their ranks."""
        self._seats[position.rank] = len(self._positions)
        self._positions += (position,)

    def look_at(self, index: int, ranks: Sequence[Sequence[int]], words: Sequence[memoryview]) -> None:
        """Adds the processes of this host, of which this is number `index`: their replicas and control words."""
        pairs = list(zip(ranks, words, strict=True))
        self._own_words = words[index]
        self._neighbours = pairs[:index] + pairs[index + 1 :]

    def ask(self, hosts: OtherHosts) -> None:
        """Adds other hosts, which from now on can ask this one too."""
        self._hosts = hosts
        hosts.answer_with(self.present)

    def sit(self, position: Position) -> None:
        """Lets other processes see that a replica has come, though the others of its process have not."""
        words, seat = self._own_words, self._seats.get(position.rank, MOST_SEATS)
        if words is not None and seat < MOST_SEATS:
            words[SEATS + seat] = position.fingerprint()

    def present(self, fingerprint: int) -> set[int]:
        """The replicas of this host that have come to a collective."""
        here = {position.rank for position in self._positions if position.came_to(fingerprint)}
        for ranks, words in self._neighbours:
            if fingerprint in (words[FINGERPRINT], words[FINGERPRINT + 1]):
                here.update(ranks)
            else:
                seats = zip(ranks, range(SEATS, SEATS + MOST_SEATS), strict=False)
                here.update(rank for rank, seat in seats if words[seat] == fingerprint)
        return here

    def overdue(self, position: Position) -> Failure:
        """What has gone wrong when the deadline of a replica's collective has passed: who is not there."""
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
            f"{asked} of replica {position.rank} exceeded its timeout of {allowed:g} s: "
            f"after {waited:.3g} s {_absence(missing, silent)}"
        )
        replica = next((rank for rank in missing if rank not in silent), (*missing, -1)[0])
        return Failure("deadline", text, replica, self._generation, position.step, asked.collective)

    def close(self) -> None:
        """Answers no more, and forgets the memory of other processes."""
        hosts, self._hosts = self._hosts, None
        self._own_words = None
        self._neighbours = []
        if hosts is not None:
            hosts.close()


def _absence(missing: Sequence[int], silent: set[int]) -> str:
    """Who is missing, in words, and the remedy."""
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
