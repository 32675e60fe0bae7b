"""Piece: a part of a variable's value that replicas keep, so that they can write it to a file themselves."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a variable's value, mostly all of it.

    Attributes:
      key: Its name in the stores of replicas.
      ranks: The replicas that have it; each can give it.
      start: Where it begins in the value, by dimension.
      shape: Its shape.
    """

    key: str
    ranks: tuple[int, ...]
    start: tuple[int, ...]
    shape: tuple[int, ...]
