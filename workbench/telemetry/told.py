"""What a feed is told of a group beside its records: how it gets its input, and how full memories are."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InputFacts:
    """How the replicas of a group got their newest input.

    Attributes:
      waited_shares: By replica, the part of its time, 0 to 1, that it waited for its batches.
      elements: How many elements that was measured over.
      element_us: How long one takes, from fetch to fetch.
      rows: By replica, the rows of the newest element.
      empty_for: How many elements in a row have been empty, by replica.
    """

    waited_shares: tuple[float, ...]
    elements: int
    element_us: float
    rows: tuple[int, ...]
    empty_for: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MemoryFacts:
    """The fullest memory among those of a group's replicas.

    Attributes:
      replica: The replica; the first where several share the memory.
      used_bytes: In use.
      limit_bytes: What there is.
      grown_bytes: How much more that is than when it was first looked at.
      steps: How many steps ago that was.
    """

    replica: int
    used_bytes: int
    limit_bytes: int
    grown_bytes: int = 0
    steps: int = 0


@dataclass(frozen=True, slots=True)
class Told:
    """What a feed was told of a group.

    Attributes:
      cores: How many cores its replicas have together; 0 if that is not known.
      input: How they get their input; None where they get none of distributed datasets.
      memory: The fullest memory; None if nobody has looked.
    """

    cores: int = 0
    input: InputFacts | None = None
    memory: MemoryFacts | None = None
