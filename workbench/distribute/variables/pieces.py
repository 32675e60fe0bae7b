"""Piece: a part of a variable's value that replicas keep and can themselves write to a file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a variable's value; mostly the whole value.

    Attributes:
      key: Its name in the stores of replicas.
      ranks: The replicas that have it.
      start: Its first index in the value, by dimension.
      shape: Its shape.
    """

    key: str
    ranks: tuple[int, ...]
    start: tuple[int, ...]
    shape: tuple[int, ...]
