"""Facts of a recorded run besides its records, kept in the metadata of the Parquet file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from workbench.errors import DataCorruption
from workbench.telemetry.clocks import Anchor
from workbench.telemetry.events import Event
from workbench.telemetry.runs.checksummed import opened, sealed

RUN_KEY: Final = b"workbench.run"
VERSION: Final = 2


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known about a run as a whole.

    Attributes:
      anchor: The driver's clocks.
      dropped: Records that rings lost.
      dropped_events: Events that were lost.
      events: The events, oldest first.
    """

    anchor: Anchor
    dropped: int
    dropped_events: int
    events: tuple[Event, ...]

    def encode(self) -> bytes:
        """The facts as a checksum and JSON; Parquet protects its pages against damage, but not its metadata."""
        fields = {
            "version": VERSION,
            "anchor": [self.anchor.monotonic_ns, self.anchor.wall_ns],
            "dropped": self.dropped,
            "dropped_events": self.dropped_events,
            "events": [event.as_dict() for event in self.events],
        }
        return sealed(json.dumps(fields).encode())

    @staticmethod
    def decode(data: bytes) -> Facts:
        """The inverse of `encode`.

        Raises:
          DataCorruption: if the data is damaged or of another version.
        """
        text = opened(data, "the description of the run")
        try:
            fields = json.loads(text)
            if fields["version"] != VERSION:
                found = fields["version"]
                raise DataCorruption(f"the run has version {found}, this workbench reads {VERSION}")
            return Facts(
                anchor=Anchor(*map(int, fields["anchor"])),
                dropped=int(fields["dropped"]),
                dropped_events=int(fields["dropped_events"]),
                events=tuple(Event(**event) for event in fields["events"]),
            )
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise DataCorruption(f"the description of the run makes no sense: {error}") from error
