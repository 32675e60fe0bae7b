"""What replicas compute to show elements: a window on two axes of an array, pooled to a few thousand cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from workbench.backends import cupy as gpu
from workbench.backends import numpy as backend
from workbench.distribute.variables.programs import component

if TYPE_CHECKING:
    from workbench.runtime.replica.env import ReplicaEnv

MOST_CELLS: Final = 2500
"""With three digits, they take at most 28 kB of JSON, which a notebook receives twice: in the output and in the widget.
"""
_MOST_ALONG_AN_AXIS: Final = 256


@dataclass(frozen=True, slots=True)
class Window:
    """Elements of an array, as rows and columns.

    Attributes:
      shape: The shape of the array.
      axes: The axis that goes down and the one that goes to the right; -1 for none.
      index: An index on every axis; on those two, the first one shown.
      extent: How many elements to show along those two.
      steps: How many elements make one cell along those two.
    """

    shape: tuple[int, ...]
    axes: tuple[int, int]
    index: tuple[int, ...]
    extent: tuple[int, int]
    steps: tuple[int, int]

    @property
    def selection(self) -> tuple[int | slice, ...]:
        """The index into the array."""
        found: list[int | slice] = list(self.index)
        for axis, extent in zip(self.axes, self.extent, strict=True):
            if axis >= 0:
                found[axis] = slice(self.index[axis], self.index[axis] + extent)
        return tuple(found)

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of cells."""
        return _cells(self.extent[0], self.steps[0]), _cells(self.extent[1], self.steps[1])


def window(
    shape: Sequence[int],
    *,
    axes: tuple[int, int] | None = None,
    index: Sequence[int] = (),
    extent: tuple[int | None, int | None] = (None, None),
) -> Window:
    """A window that fits in an array of this shape, whatever was requested; pooled as little as possible.

    Args:
      shape: The shape of the array.
      axes: Down and to the right; by default the last two.
      index: First index on each axis; by default 0.
      extent: How many elements along the two axes; by default to their end.
    """
    rank = len(shape)
    if axes is None or axes[0] == axes[1] != -1 or not all(-1 <= axis < rank for axis in axes):
        axes = (rank - 2 if rank > 1 else -1, rank - 1)
    places = [*index, *[0] * rank][:rank]
    places = [min(max(0, place), max(0, size - 1)) for place, size in zip(places, shape, strict=True)]
    rows, columns = (
        1 if axis < 0 else min(wanted or shape[axis], shape[axis] - places[axis])
        for axis, wanted in zip(axes, (None if e is None else max(1, e) for e in extent), strict=True)
    )
    return Window(tuple(shape), axes, tuple(places), (rows, columns), _steps(rows, columns))


def _steps(rows: int, columns: int) -> tuple[int, int]:
    down, right = max(1, _cells(rows, _MOST_ALONG_AN_AXIS)), max(1, _cells(columns, _MOST_ALONG_AN_AXIS))
    while _cells(rows, down) * _cells(columns, right) > MOST_CELLS:
        if _cells(rows, down) >= _cells(columns, right):
            down += 1 + down // 8
        else:
            right += 1 + right // 8
    return down, right


def _cells(elements: int, step: int) -> int:
    return -(-elements // step)


def window_of(
    env: ReplicaEnv, components: list[Any], keys: list[str], wanted: Window, difference: bool
) -> np.ndarray:
    """The cells of this replica's component, or of its difference to replica 0; shape `wanted.grid`."""
    value = components[0] if components else component(env, keys[0])
    mine = elements_of(value, wanted)
    if difference:
        with env.communicator.internal("inspect"):
            first = env.communicator.broadcast(np.ascontiguousarray(mine), 0, site="wb.inspect")
        return pooled(mine, wanted.steps, minus=first)
    return pooled(mine, wanted.steps)


def elements_of(value: Any, wanted: Window) -> np.ndarray:
    """The window's elements, shape `wanted.extent`; complex numbers as their absolute values."""
    if gpu.is_gpu_array(value):
        found = gpu.to_host(gpu.accelerator.view(value)[wanted.selection])
    else:
        found = backend.view(value)[wanted.selection]
    found = np.abs(found) if found.dtype.kind == "c" else np.asarray(found)
    if -1 not in wanted.axes and wanted.axes[0] > wanted.axes[1]:
        found = found.T
    return found.reshape(wanted.extent)


def pooled(values: np.ndarray, steps: tuple[int, int], *, minus: np.ndarray | None = None) -> np.ndarray:
    """One number per cell: the mean of its elements, or the largest difference; NaN and infinities are never lost.

    Args:
      values: Shape `(rows, columns)`.
      steps: How many rows and columns make a cell.
      minus: Values to compare with: then a cell is the element of `values - minus` that is farthest from 0. NaNs and
        infinities in both do not count as differences.
    """
    down, right = steps
    rows, columns = values.shape
    cells = np.empty((_cells(rows, down), _cells(columns, right)))
    starts = np.arange(0, columns, right)
    with np.errstate(all="ignore"):
        for row in range(len(cells)):  # strip by strip, because a window may be as large as the array
            part = slice(row * down, (row + 1) * down)
            if minus is None:
                cells[row] = _mean_row(values[part], starts)
            else:
                strip, other = values[part].astype(np.float64), minus[part].astype(np.float64)
                same = (strip == other) | (np.isnan(strip) & np.isnan(other))
                cells[row] = _pooled_row(np.where(same, 0.0, strip - other), starts, farthest=True)
    return cells


def _mean_row(strip: np.ndarray, starts: np.ndarray) -> np.ndarray:
    whole = strip.dtype.kind in "biu"
    if whole or (strip.dtype.kind == "f" and strip.dtype != np.float16):
        sums = strip.sum(axis=0, dtype=np.float64 if whole else None)
        if np.isfinite(sums).all():  # then everything in it is finite, too, as in most arrays
            widths = np.diff(np.append(starts, strip.shape[1]))
            return np.asarray(np.add.reduceat(sums.astype(np.float64), starts) / (widths * len(strip)))
    return _pooled_row(strip.astype(np.float64), starts)


def _pooled_row(strip: np.ndarray, starts: np.ndarray, *, farthest: bool = False) -> np.ndarray:
    finite = np.isfinite(strip)
    known = np.where(finite, strip, 0.0)
    if farthest:
        high = np.maximum.reduceat(known.max(axis=0), starts)
        low = np.minimum.reduceat(known.min(axis=0), starts)
        row = np.where(high >= -low, high, low)
    else:
        row = np.add.reduceat(known.sum(axis=0), starts) / np.add.reduceat(finite.sum(axis=0), starts)
    if not finite.all():
        for is_it, mark in ((np.isneginf, -np.inf), (np.isposinf, np.inf), (np.isnan, np.nan)):
            row[np.logical_or.reduceat(is_it(strip).any(axis=0), starts)] = mark
    return row
