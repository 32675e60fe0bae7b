"""Scan: a function carries a state from element to element."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from workbench.data.passes import Pass
from workbench.data.spec import TensorSpec, relax, spec_of
from workbench.data.stage import Opener, Pipeline, Stage
from workbench.data.stages.computing import probe
from workbench.data.stages.computing.functions import Map, note_function, note_place
from workbench.data.structure import Structure, convert, flatten, flatten_element, flatten_result
from workbench.data.tables import Failed, Leaves, Run, items, single
from workbench.errors import InvalidArgumentError


@dataclass(frozen=True, eq=False)
class Scan(Stage):
    """Replaces each element by the second result of `fn(state, element)`; the first is the next state.

    Attributes:
      initial_state: The nested state that the first element gets.
      fn: The function; it gets an element as one argument.
    """

    name: ClassVar[str] = "scan"
    calls_functions: ClassVar[bool] = True
    initial_state: Any
    fn: Callable[[Any, Any], Any]

    @staticmethod
    def of(initial_state: Any, fn: Callable[[Any, Any], Any]) -> Scan:
        """Checks the state.

        Raises:
          TypeError: if it is of a kind that elements cannot hold, either.
        """
        flatten(initial_state)
        return Scan(initial_state, fn)

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass; after a failure of the function, the next element gets the previous state."""
        leaves, structure = flatten(self.initial_state)
        for index, (element, shape, ids) in enumerate(items(upstream(), current.provenance)):
            try:
                result = self.fn(structure.pack(leaves), shape.pack(element))
                try:
                    state, output = _pair(result)
                    leaves = same_state("scan", leaves, structure, state)
                    made = single(*flatten_element(output), ids)
                except Exception as error:
                    note_function(error, self.fn)
                    raise
            except Exception as error:
                note_place(error, self.text, index)
                made = Failed(error)
            yield made

    def element_spec(self, upstream: Pipeline) -> Any:
        """The nested spec of an element after this stage; a state may grow from one element to the next."""
        leaves, structure = flatten(self.initial_state)
        spec = self._output_spec(leaves, structure, upstream)
        try:
            state, _ = _pair(probe.result_example(self._called_with(leaves, structure, upstream), upstream))
            after = same_state("scan", leaves, structure, state)
        except Exception:  # the function may raise for made-up values
            return spec
        if list(map(np.shape, leaves)) == list(map(np.shape, after)):
            return spec
        return relax(spec, self._output_spec(after, structure, upstream))

    def _output_spec(self, leaves: Leaves, structure: Structure, upstream: Pipeline) -> Any:
        call = self._called_with(leaves, structure, upstream)
        return Map(lambda *parts: _pair(call(*parts))[1]).element_spec(upstream)

    def _called_with(self, leaves: Leaves, structure: Structure, upstream: Pipeline) -> Callable[..., Any]:
        """The function for elements in a known state; takes the components of an element that is a tuple."""
        fn, whole = self.fn, type(upstream.element_spec) is tuple
        return lambda *parts: fn(structure.pack(leaves), parts if whole else parts[0])


def same_state(stage: str, leaves: Leaves, structure: Structure, state: Any) -> Leaves:
    """The components of the next state of a fold.

    Args:
      stage: Name of the stage, for errors.
      leaves: The components of the first state.
      structure: Their structure.
      state: What the function returned.

    Raises:
      InvalidArgumentError: if the function changed the structure of the state.
      TypeError: if it changed a dtype.
    """
    new, found = flatten_result(state)
    before, after = [_dtype(leaf) for leaf in leaves], [_dtype(leaf) for leaf in new]
    if found != structure or before != after:
        kind = TypeError if found == structure else InvalidArgumentError
        raise kind(
            f"{stage}: the state was {structure.spec} of {before}, the function made it {found.spec} of {after}; "
            "return the same structure and dtypes, for example with astype"
        )
    return new


def _dtype(leaf: Any) -> Any:
    spec = spec_of(leaf)
    return spec.dtype_name if isinstance(spec, TensorSpec) else spec


def _pair(result: Any) -> tuple[Any, Any]:
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise TypeError(f"scan: the function must return (new state, output), got {result!r:.80}")
    state, output = result
    return state, convert(output) if isinstance(
        output, list
    ) else output  # inside the pair, a list is one array
