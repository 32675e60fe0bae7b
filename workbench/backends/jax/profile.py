"""Sampled profiles: how long the collectives of a program took on each device, for a few steps."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import jax

_COLLECTIVE = re.compile(
    r"(psum|pmax|pmin|pmean|all[-_]reduce|all[-_]gather|reduce[-_]scatter|all[-_]to[-_]all|collective[-_]permute|ppermute)"
)


@dataclass(frozen=True, slots=True)
class SampledEvent:
    """One collective on one device, in one sampled step.

    Attributes:
      device: Number of the device on its host.
      run: Identifies the run of a program; the same on all devices of a host.
      operation: Name of the operation in the compiled program, such as "psum.7".
      start_ns: When it began, by `time.monotonic_ns`.
      duration_ns: Its duration, including the wait for other devices.
    """

    device: int
    run: int
    operation: str
    start_ns: int
    duration_ns: int


class Profile:
    """A profile being taken in this process; costs milliseconds, so it is only for samples."""

    def __init__(self) -> None:
        self._cleanup = ExitStack()
        self._folder = Path(
            self._cleanup.enter_context(tempfile.TemporaryDirectory(prefix="workbench-profile-"))
        )
        self._began_ns = time.monotonic_ns()  # a profile's times start at its beginning
        jax.profiler.start_trace(str(self._folder))

    def stop(self) -> list[SampledEvent]:
        """Ends the profile; returns the observed collectives."""
        with self._cleanup:
            jax.profiler.stop_trace()
            return [
                event
                for path in self._folder.rglob("*.xplane.pb")
                for event in _events(jax.profiler.ProfileData.from_file(str(path)), self._began_ns)
            ]


def _events(profile: jax.profiler.ProfileData, began_ns: int) -> Iterator[SampledEvent]:
    # Each host gives the emulated devices of several hosts other numbers.
    ids = sorted(device.id for device in jax.local_devices())
    events = (event for plane in profile.planes for line in plane.lines for event in line.events)
    for event in events:
        if not _COLLECTIVE.match(event.name):
            continue
        facts = dict(event.stats)
        if "hlo_op" in facts:
            ordinal = int(facts.get("device_ordinal", 0))
            yield SampledEvent(
                device=ids.index(ordinal) if ordinal in ids else ordinal,
                run=int(facts.get("run_id", 0)),
                operation=str(facts["hlo_op"]),
                start_ns=began_ns + int(event.start_ns),
                duration_ns=int(event.duration_ns),
            )
