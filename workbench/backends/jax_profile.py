"""Sampled profiles: how long the collectives of a program took on each device, for a few steps."""

from __future__ import annotations

import re
import tempfile
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
      operation: Name of the operation in the compiled program, such as "psum.7".
      duration_ns: Time in it, waiting for the others included.
    """

    device: int
    operation: str
    duration_ns: int


class Profile:
    """A profile that is being taken in this process; costs milliseconds, so only for samples."""

    def __init__(self) -> None:
        self._cleanup = ExitStack()
        self._folder = Path(
            self._cleanup.enter_context(tempfile.TemporaryDirectory(prefix="workbench-profile-"))
        )
        jax.profiler.start_trace(str(self._folder))

    def stop(self) -> list[SampledEvent]:
        """Ends it; returns what collectives were seen."""
        with self._cleanup:
            jax.profiler.stop_trace()
            return [
                event
                for path in self._folder.rglob("*.xplane.pb")
                for event in _events(jax.profiler.ProfileData.from_file(str(path)))
            ]


def _events(profile: jax.profiler.ProfileData) -> Iterator[SampledEvent]:
    for plane in profile.planes:
        for line in plane.lines:
            for event in line.events:
                if _COLLECTIVE.match(event.name):
                    facts = dict(event.stats)
                    if "hlo_op" in facts:
                        device = int(facts.get("device_ordinal", 0))
                        yield SampledEvent(device, str(facts["hlo_op"]), int(event.duration_ns))
