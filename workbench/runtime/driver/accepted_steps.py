"""Steps of a @wb.function: accepted when `run` returns, before they have run; a lost replica does not change that."""

from __future__ import annotations

from typing import Any, Final

from workbench.runtime.comm.messages import dumps, loads

MOST_LOSSES: Final = 4
"""How often an accepted step may be lost with a replica; it may be what ends the process."""


class Accepted:
    """What it takes to send a step again that was lost with a replica.

    Attributes:
      payload: Its arguments, as they were sent: the user may have changed theirs since.
      structure: Id of their structure.
      handles: The distributed values among them, in their order. They stay on the replicas until the step has ended.
      dropped: Leaves of its result that nobody wants any more.
      losses: How often it was lost.
    """

    __slots__ = ("dropped", "handles", "losses", "payload", "structure")

    def __init__(self) -> None:
        self.payload: Any = None
        self.structure: Any = None
        self.handles: list[Any] = []
        self.dropped: list[int] = []
        self.losses = 0

    def payload_now(self) -> Any:
        """The arguments to send: values among them that were made again have other serials."""
        if not self.handles:
            return self.payload
        pickled = type(self.payload) is bytes
        structure, leaves, refs = loads(self.payload) if pickled else self.payload
        refs = [
            (index, handle.serial, handle.leaf)
            for (index, *_), handle in zip(refs, self.handles, strict=True)
        ]
        payload = structure, leaves, refs
        return dumps(payload) if pickled else payload
