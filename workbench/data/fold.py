"""Folding a dataset into one value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from workbench.data.stages.computing.functions import note_function, note_place
from workbench.data.stages.computing.scan import same_state
from workbench.data.structure import flatten


def fold(
    dataset: Iterable[Any], initial_state: Any, reduce_func: Callable[[Any, Any], Any], name: str = "reduce"
) -> Any:
    """`state = reduce_func(state, element)` over all elements.

    Args:
      dataset: The elements.
      initial_state: The first state.
      reduce_func: Returns the next state.
      name: Name of the method, for errors.

    Raises:
      TypeError: if the function changes structure or dtype of the state.
    """
    leaves, structure = flatten(initial_state)
    for index, element in enumerate(dataset):
        try:
            state = reduce_func(structure.pack(leaves), element)
            try:
                leaves = same_state("reduce", leaves, structure, state)
            except Exception as error:
                note_function(error, reduce_func)
                raise
        except Exception as error:
            note_place(error, name, index)
            raise
    return structure.pack(leaves)
