"""Steps of a @wb.function: `run` accepts them before they have run, and they survive the loss of a replica."""

from __future__ import annotations

from typing import Any, Final

from workbench.runtime.comm.messages import dumps, loads

MOST_LOSSES: Final = 4
"""How often an accepted step may be lost with a replica; the step itself may be ending the processes."""


class Accepted:
    """The data to resend a step that was lost with a replica.

    Attributes:
      payload: Its arguments as they were sent; the user may have changed the originals since.
      structure: Id of their structure.
      handles: The distributed values among them, in order. They stay on the replicas until the step has ended.
      dropped: Leaves of its result that are no longer referenced.
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
        """The arguments to send, with the new serials of values that were made again."""
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
