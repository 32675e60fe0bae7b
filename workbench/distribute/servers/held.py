"""Held: a variable on its server, and the updates that change it in place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.distribute.servers.update_rules import Rule, rule_of, slots_of
from workbench.distribute.variables.scatter import SCATTERS, scatter_into
from workbench.runtime.services.frames import Array, Fields


@dataclass(slots=True)
class Held:
    """A variable, or a shard of one.

    Attributes:
      array: Its value, which updates change in place.
      version: Number of its updates.
      slots: Its optimizer state, by name.
      steps: Number of its optimizer steps.
    """

    array: Array
    version: int = 0
    slots: dict[str, Array] = field(default_factory=dict)
    steps: int = 0


def change(held: Held, fields: Fields, arrays: list[Array]) -> None:
    """Applies an update that has been recorded."""
    how, array = fields["how"], held.array
    if how == "step":
        rule: Rule = rule_of(fields["rule"])
        held.steps += 1
        rule.step(array, held.slots, arrays, held.steps)
    elif how == "set":
        values, rest = arrays[0], arrays[1:]
        kept = slots_of(held.slots, fields["slots"], array)
        rows: Any = rest[len(kept)] if len(rest) > len(kept) else ...
        array[rows] = values
        for slot, new in zip(kept, rest, strict=False):
            slot[rows] = new
        held.steps += 1
    elif how == "set_slots":
        held.slots = dict(zip(fields["slots"], map(np.array, arrays), strict=True))
        held.steps = fields["steps"]
    elif how in SCATTERS:
        _scatter(array, how, arrays[0], arrays[1])
    elif how == "assign":
        array[...] = arrays[0]
    else:
        combine = np.add if how == "assign_add" else np.subtract
        combine(array, arrays[0], out=array, casting="same_kind")


def _scatter(array: Any, how: str, values: Array, indices: Array) -> None:
    """Scatters in place. First occurrences of rows change together, which takes a fraction of the time."""
    indices = indices.reshape(-1)
    values = values.reshape(indices.size, *array.shape[1:])
    if how in ("scatter_add", "scatter_sub"):
        combine = np.add if how == "scatter_add" else np.subtract
        again = _again(indices)
        if not again.size:
            _combine_rows(combine, array, indices, values)
            return
        first = np.ones(indices.size, bool)
        first[again] = False
        _combine_rows(combine, array, indices[first], values[first])
        combine.at(array, indices[again], values[again])
    else:
        scatter_into(array, how, values, indices)


def _combine_rows(combine: np.ufunc, array: Any, rows: Array, values: Array) -> None:
    combined = array.take(rows, axis=0)
    combine(combined, values, out=combined)
    array[rows] = combined


def _again(indices: Array) -> Array:
    """Positions of repeated indices; those of one row are in order."""
    ordered = indices.copy()
    ordered.sort()
    if not (ordered[1:] == ordered[:-1]).any():
        return indices[:0]  # the usual case, without the slower stable sort
    order = indices.argsort(kind="stable")
    ordered = indices[order]
    again: Array = order[1:][ordered[1:] == ordered[:-1]]
    return again
