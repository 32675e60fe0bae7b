"""Checks whether inputs to collectives on a GPU are finite: kernels set a word in host memory, which is read later.

The fused kernel checks every number in its register. Before other collectives, a separate kernel reads the inputs:
small arrays always, larger ones as far as a hundredth of the time allows, as on CPUs (`core/finiteness.py`). The record
says what was not read; nothing is concluded from a sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic_ns as _clock

from workbench.backends.accelerator import Accelerator
from workbench.backends.flags import Taken
from workbench.backends.numpy import can_be_infinite
from workbench.communicators.core.finiteness import (
    FINITE,
    FIRST_NS,
    MOST_SAVED_NS,
    NOT_FINITE,
    NOT_READ,
    SHARE,
)
from workbench.communicators.gpu.work import Work

ALWAYS_BYTES = 1 << 20
"""Arrays up to this size are always read, because their kernel takes only a few microseconds."""


class Inputs:
    """Checks the inputs of the replicas on one device. Only for the thread that queues collectives, one at a time."""

    def __init__(self, accelerator: Accelerator, ordinal: int) -> None:
        self._gpu = accelerator
        self._ns_per_byte = 1 / accelerator.bytes_per_ns(ordinal)
        self._saved_ns: float = FIRST_NS
        self._before_ns = _clock()

    def look(self, works: Sequence[Work], *, fused: bool) -> Taken | None:
        """Gives each work the word that is set if its sources are not finite.

        Args:
          works: The works of all replicas on the device; the communication stream is current.
          fused: Whether the fused kernel checks the sources, so that no other kernel needs to.
        """
        now = _clock()
        self._saved_ns = min(MOST_SAVED_NS, self._saved_ns + (now - self._before_ns) / SHARE)
        self._before_ns = now
        taken = self._gpu.flags.take(len(works))
        for place, work in enumerate(works):
            if taken is None:
                work.unread = True
                continue
            work.flag = taken.of(place)
            if not fused:
                self._read(work)
        return taken

    def _read(self, work: Work) -> None:
        for source in work.sources:
            if not source.size or not can_be_infinite(source.dtype):
                continue
            if source.nbytes > ALWAYS_BYTES:
                takes_ns = source.nbytes * self._ns_per_byte
                if takes_ns > self._saved_ns:
                    work.unread = True
                    continue
                self._saved_ns -= takes_ns
            self._gpu.flag_not_finite(source, work.flag)


def found(work: Work, taken: Taken | None, place: int) -> str:
    """What to record about the inputs of a work whose kernels have run.

    Args:
      work: The work.
      taken: The words of its device's works, None if nothing was checked.
      place: Its index among them.
    """
    if taken is None:
        return NOT_READ
    if taken.words[place]:
        return NOT_FINITE
    return NOT_READ if work.unread else FINITE
