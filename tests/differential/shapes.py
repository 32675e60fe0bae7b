"""Structures of elements: what random programs know of the elements that they have so far."""

from __future__ import annotations

from dataclasses import dataclass, field

NAMES = ("a", "b", "c")


@dataclass(frozen=True)
class Leaf:
    """An array in an element.

    Attributes:
      dtype: Name of its dtype.
      rank: Number of its dimensions.
      varies: Whether its first dimension differs between elements.
    """

    dtype: str
    rank: int = 0
    varies: bool = False


@dataclass(frozen=True)
class Nest:
    """A structure.

    Attributes:
      kind: "tuple", "dict" or "named".
      parts: What it holds.
    """

    kind: str
    parts: tuple[Shape, ...] = field(default=())


Shape = Leaf | Nest


def leaves(shape: Shape) -> list[Leaf]:
    """The arrays of a structure, in order."""
    return [shape] if isinstance(shape, Leaf) else [leaf for part in shape.parts for leaf in leaves(part)]


def paths(text: str, shape: Shape) -> list[tuple[str, Leaf]]:
    """An expression for each array of the element that `text` stands for."""
    if isinstance(shape, Leaf):
        return [(text, shape)]
    found: list[tuple[str, Leaf]] = []
    for number, part in enumerate(shape.parts):
        inner = {
            "tuple": f"[{number}]",
            "dict": f"[{NAMES[number % 3]!r}]",
            "named": f".{'xy'[number % 2]}",
        }[shape.kind]
        found += paths(text + inner, part)
    return found or [(text, Leaf("int32"))]


def deeper(shape: Shape) -> Shape:
    """What batches of elements look like."""
    if isinstance(shape, Leaf):
        return Leaf(shape.dtype, shape.rank + 1, shape.varies)
    return Nest(shape.kind, tuple(deeper(part) for part in shape.parts))


def shallower(shape: Shape) -> Shape:
    """What rows of elements look like."""
    if isinstance(shape, Leaf):
        return Leaf(shape.dtype, max(0, shape.rank - 1))
    return Nest(shape.kind, tuple(shallower(part) for part in shape.parts))
