"""Folding a dataset into one value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from workbench.data.spec import TensorSpec, spec_of
from workbench.data.stages.functions import note_place
from workbench.data.structure import flatten, flatten_result


def fold(dataset: Iterable[Any], initial_state: Any, reduce_func: Callable[[Any, Any], Any]) -> Any:
    """`state = reduce_func(state, element)` over all elements.

    Raises:
      TypeError: if the function changes structure or dtype of the state.
    """
    leaves, structure = flatten(initial_state)
    for index, element in enumerate(dataset):
        try:
            new, found = flatten_result(reduce_func(structure.pack(leaves), element))
        except Exception as error:
            note_place(error, "reduce", index)
            raise
        before, after = [_dtype(leaf) for leaf in leaves], [_dtype(leaf) for leaf in new]
        if found != structure or before != after:
            raise TypeError(
                f"reduce: the state was {structure.spec} of {before}, the function made it {found.spec} "
                f"of {after} "
                f"at element {index}; return the same structure and dtypes, for example with astype"
            )
        leaves = new
    return structure.pack(leaves)


def _dtype(leaf: Any) -> Any:
    spec = spec_of(leaf)
    return spec.dtype_name if isinstance(spec, TensorSpec) else spec
