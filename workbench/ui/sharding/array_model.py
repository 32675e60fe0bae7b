"""Which device holds which part of an array: variables, distributed values, and JAX's own sharded arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.backends.summary import Summary
from workbench.distribute.values.distributed_values import DistributedValues, Mirrored
from workbench.distribute.variables.variable import Variable
from workbench.ui.inspect.replica_places import central_device, place_of
from workbench.ui.inspect.summaries import described
from workbench.ui.models.sharding import ArrayPart, ArraySharding

Spec = tuple[str, tuple[int, ...]]
"""Dtype and shape."""
Box = tuple[tuple[int, ...], tuple[int, ...]]
"""Start and stop per axis."""


def array_model(value: Any, *, name: str = "") -> ArraySharding:
    """Which device holds which part of `value`.

    The components of a `PerReplica` count as parts of one array along its first axis, as `strategy.gather` concatenates
    them; those of a `Mirrored` or a mirrored variable count as copies. Waits for the step that makes the value.

    Raises:
      TypeError: if it is not an array on several devices.
    """
    if hasattr(value, "addressable_shards") and hasattr(value, "sharding"):
        return _jax_model(value, name)
    if not isinstance(value, DistributedValues | Variable):
        raise TypeError(
            f"expected a dataset, a PerReplica, a Mirrored, a variable or a sharded array of JAX, got "
            f"{type(value).__name__}, which lies on no replica"
        )
    own, kind = (value.name, value.kind) if isinstance(value, Variable) else (name, type(value).__name__)
    found = _specs(value)
    specs = [spec for spec in found if spec is not None]
    if len(specs) < len(found):
        raise TypeError(f"{kind} {own} holds no arrays, so there is nothing to divide")
    dtype, shape = specs[0]
    if isinstance(value, Mirrored) or kind == "MirroredVariable":
        boxes = [((0,) * len(shape), shape) for _ in specs]
    else:
        shape, boxes = _side_by_side([each for _, each in specs])
    return _model(own, kind, dtype, _itemsize(dtype), shape, boxes, _places(value, len(specs)))


def _specs(value: DistributedValues | Variable) -> list[Spec | None]:
    """The spec of each component; None for one that is not an array of numbers. Does not query the replicas."""
    if isinstance(value, Variable):
        place = place_of(value)
        copies = 1 if place is None or central_device(value) is not None else place[0].size
        return [(value.dtype.name, value.shape)] * copies
    if (handle := value.handle) is None:
        return [_spec(part) for part in value.values]
    return [
        spec or (_spec(handle.value(rank)) if handle.is_here(rank) else None)
        for rank, spec in enumerate(handle.specs())
    ]


def _spec(part: Any) -> Spec | None:
    summary = described(part)
    return (summary.dtype, summary.shape) if isinstance(summary, Summary) else None


def _places(value: DistributedValues | Variable, count: int) -> list[tuple[int, str, str]]:
    """Replica, host and device of each component."""
    place = place_of(value)
    if place is None:
        return [(-1 if isinstance(value, Variable) else rank, "", "") for rank in range(count)]
    if (central := central_device(value)) is not None:
        return [(-1, central.host, central.short.lower())]
    return [(rank, device.host, device.short.lower()) for rank, device in enumerate(place[0].devices)]


def _side_by_side(shapes: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], list[Box]]:
    """One after another along axis 0. If the other axes differ, the whole is as large as the largest."""
    rank = max(map(len, shapes))
    padded = [shape if len(shape) == rank and rank else (1,) * max(1, rank) for shape in shapes]
    tail = tuple(max(shape[axis] for shape in padded) for axis in range(1, max(1, rank)))
    boxes: list[Box] = []
    at = 0
    for shape in padded:
        boxes.append(((at, *(0 for _ in tail)), (at + shape[0], *shape[1:])))
        at += shape[0]
    return (at, *tail), boxes


def _jax_model(array: Any, name: str) -> ArraySharding:
    placed = array.sharding.devices_indices_map(array.shape)
    boxes = [
        (
            tuple(part.start or 0 for part in index),
            tuple(
                size if part.stop is None else part.stop
                for part, size in zip(index, array.shape, strict=True)
            ),
        )
        for index in placed.values()
    ]
    places = [
        (
            rank,
            f"process {device.process_index}" if device.process_index else "",
            f"{device.platform}:{device.id}",
        )
        for rank, device in enumerate(placed)
    ]
    return _model(name, "Array", str(array.dtype), array.dtype.itemsize, array.shape, boxes, places)


def _model(
    name: str,
    kind: str,
    dtype: str,
    itemsize: int,
    shape: tuple[int, ...],
    boxes: Sequence[Box],
    places: Sequence[tuple[int, str, str]],
) -> ArraySharding:
    parts = tuple(
        ArrayPart(replica, host, device, start, stop, itemsize * _count(start, stop))
        for (replica, host, device), (start, stop) in zip(places, boxes, strict=True)
    )
    sizes = [part.size_bytes for part in parts]
    average = sum(sizes) / len(sizes)
    return ArraySharding(
        name=name,
        kind=kind,
        shape=tuple(shape),
        dtype=dtype,
        parts=parts,
        size_bytes=itemsize * math.prod(shape),
        imbalance_percent=round(100 * (max(sizes) / average - 1), 1) if average else 0.0,
        sentence=sentence(tuple(shape), boxes),
    )


def sentence(shape: tuple[int, ...], boxes: Sequence[Box]) -> str:
    """How an array is divided, in words.

    >>> sentence((4, 2), [((0, 0), (2, 2)), ((2, 0), (4, 2))])
    'axis 0 split 2 ways'
    >>> sentence((4, 2), [((0, 0), (4, 2))] * 2)
    '2 full copies'
    >>> sentence((5,), [((0,), (3,)), ((3,), (5,)), ((0,), (3,)), ((3,), (5,))])
    'axis 0 split 2 ways, unevenly; 2 copies'
    """
    blocks = dict.fromkeys(boxes)
    splits = []
    for axis in range(len(shape)):
        pieces = {(start[axis], stop[axis]) for start, stop in blocks}
        if len(pieces) > 1:
            uneven = "" if len({stop - start for start, stop in pieces}) == 1 else ", unevenly"
            splits.append(f"axis {axis} split {len(pieces)} ways{uneven}")
    copies = len(boxes) / len(blocks)
    if not splits:
        return "one piece" if len(boxes) == 1 else f"{len(boxes)} full copies"
    text = ", ".join(splits)
    if copies > 1:
        text += f"; {copies:g} copies" if copies == int(copies) else "; some pieces several times"
    return text


def _count(start: tuple[int, ...], stop: tuple[int, ...]) -> int:
    return math.prod(last - first for first, last in zip(start, stop, strict=True))


def _itemsize(dtype: str) -> int:
    try:
        return np.dtype(dtype).itemsize
    except TypeError:  # from an extension, such as bfloat16 or float8_e4m3
        digits = "".join(character if character.isdigit() else " " for character in dtype).split()
        return max(1, int(digits[0]) // 8) if digits else 1
