"""Rare events besides the collectives: a line of output, a lost replica, a NaN, a straggler."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

Severity = Literal["info", "warning", "error"]

KINDS: Final = ("log", "alert", "lifecycle")
"""log: a line that a replica printed; alert: a person should look; lifecycle: a replica's status changed."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened once.

    Attributes:
      kind: One of `KINDS`.
      name: What happened, in a short word: "stdout", "stderr", "replica_lost", "straggler", "nan" …
      message: The text for people; set as text, never as HTML.
      t_ns: When, as `time.monotonic_ns` of the host; after draining, of the driver.
      severity: How prominently to show it.
      replica: Replica concerned, or -1.
      host: Host concerned, or "".
      step: Step in which it happened, or -1.
      site: Call site, or "".
      generation: How often the gang was rebuilt before, or -1.
      group: The label of the group concerned, such as "MirroredStrategy/1", or "" if it is not a single one.
    """

    kind: str
    name: str
    message: str
    t_ns: int
    severity: str = "info"
    replica: int = -1
    host: str = ""
    step: int = -1
    site: str = ""
    generation: int = -1
    group: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The event as a JSON-able dict; `Event(**d)` is its inverse."""
        return asdict(self)
