"""Combines elements into batches, one by one or in blocks; errors say which component of which element differs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.backends.numpy import STRING
from workbench.data.spec import is_dataset
from workbench.data.structure import Array, Structure
from workbench.errors import InvalidArgumentError

_REMEDY = "use padded_batch, or make them equal with map"


def stack(elements: list[list[Any]], structure: Structure) -> list[Any]:
    """Stacks elements component by component.

    Args:
      elements: The components of each element.
      structure: The structure of an element, for errors.

    Raises:
      InvalidArgumentError: if shapes, dtypes or the number of components differ.
    """
    return [
        _stacked(list(column), structure, index) for index, column in enumerate(zip(*elements, strict=True))
    ]


def concatenate(blocks: list[list[Any]], structure: Structure | None) -> list[Any]:
    """Concatenates blocks of elements component by component.

    Args:
      blocks: The components of each block, with a first dimension.
      structure: The structure of an element, for errors; None if unknown.

    Raises:
      InvalidArgumentError: if shapes, dtypes or the number of components differ.
    """
    return [
        _concatenated(list(column), structure, index)
        for index, column in enumerate(zip(*blocks, strict=True))
    ]


def check_structures(structures: Sequence[Structure], lengths: Sequence[int]) -> None:
    """Rejects elements of different structures in one batch: components would get each other's names.

    Args:
      structures: The structures of successive blocks of elements.
      lengths: Elements in each block.

    Raises:
      InvalidArgumentError: if two differ.
    """
    first = structures[0]
    for number, other in enumerate(structures):
        if other is not first and other != first:
            raise InvalidArgumentError(
                f"cannot batch elements of different structure: element {sum(lengths[:number])} of the batch is "
                f"{_shown(other)}, element 0 is {_shown(first)}; have map return one structure"
            )


def _stacked(values: list[Any], structure: Structure, component: int) -> Array:
    first = values[0]
    if isinstance(first, bytes) or is_dataset(first):
        column = np.empty(len(values), STRING)
        column[:] = values
        return column
    shape, dtype = first.shape, first.dtype
    for index, value in enumerate(values):
        if isinstance(value, bytes) or value.shape != shape or value.dtype != dtype:
            raise InvalidArgumentError(
                f"cannot batch elements of different shape or dtype: {_named(structure, component)}element {index} "
                f"of the batch is {_kind(value)}, element 0 is {dtype}{shape}; {_REMEDY}"
            )
    if shape:
        return np.stack(values)
    return np.array(values, dtype)


def _concatenated(parts: list[Any], structure: Structure | None, component: int) -> Array:
    first, number = parts[0], 0
    for part in parts:
        if part.shape[1:] != first.shape[1:] or part.dtype != first.dtype:
            raise InvalidArgumentError(
                f"cannot batch elements of different shape or dtype: {_named(structure, component)}element {number} "
                f"of the batch is {part.dtype}{part.shape[1:]}, element 0 is {first.dtype}{first.shape[1:]}; {_REMEDY}"
            )
        number += len(part)
    return np.concatenate(parts)


def _kind(value: Any) -> str:
    return "bytes" if isinstance(value, bytes) else f"{value.dtype}{value.shape}"


def _named(structure: Structure | None, component: int) -> str:
    """The component in Python notation; empty if an element has only one."""
    path = () if structure is None else structure.spec.paths()[component]
    return f"component {''.join(f'[{entry!r}]' for entry in path)} of " if path else ""


def _shown(structure: Structure) -> str:
    paths = ["".join(f"[{entry!r}]" for entry in path) for path in structure.spec.paths()]
    return f"components {', '.join(paths)}" if any(paths) else "a single component"
