"""Folds the elements of each key into one value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from workbench.data.passes import Pass
from workbench.data.spec import UNKNOWN_CARDINALITY, spec_of
from workbench.data.stage import Opener, Pipeline, Stage
from workbench.data.stages.computing import probe
from workbench.data.stages.computing.functions import note_function, note_place
from workbench.data.stages.computing.scan import same_state
from workbench.data.structure import Array, Structure, flatten, flatten_element
from workbench.data.tables import Failed, Leaves, Run, items, single
from workbench.errors import InvalidArgumentError


@dataclass(frozen=True, eq=False)
class Reducer:
    """Three functions that fold the elements of a key into one value.

    Attributes:
      init_func: `state = init_func(key)`, for the first element of a key, an int64 scalar.
      reduce_func: `state = reduce_func(state, element)`, with the same structure and dtypes.
      finalize_func: `value = finalize_func(state)`, after the last element of all; a tuple is unpacked over its
        arguments.
    """

    init_func: Callable[[Any], Any]
    reduce_func: Callable[[Any, Any], Any]
    finalize_func: Callable[..., Any]


@dataclass(slots=True)
class _Group:
    leaves: Leaves
    structure: Structure
    ids: list[Array] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class ReduceByKey(Stage):
    """One value for each key, in ascending order of keys, after all elements have arrived.

    If a function fails for an element, the state of its key does not change.

    Attributes:
      fn: Returns an element's key, a whole number; a tuple element is unpacked over its arguments.
      reducer: The functions that fold elements.
    """

    name: ClassVar[str] = "group_by_reducer"
    calls_functions: ClassVar[bool] = True
    fn: Callable[..., Any]
    reducer: Reducer

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over the runs of `upstream()`."""
        groups: dict[int, _Group] = {}
        for index, (leaves, structure, ids) in enumerate(items(upstream(), current.provenance)):
            element = structure.pack(leaves)
            failed = None
            try:
                key = _key(probe.call(self.fn, element), self.fn)
                group = groups.get(key) or _Group(*flatten(self.reducer.init_func(np.int64(key))))
                state = self.reducer.reduce_func(group.structure.pack(group.leaves), element)
                try:
                    group.leaves = same_state(self.name, group.leaves, group.structure, state)
                except Exception as error:
                    note_function(error, self.reducer.reduce_func)
                    raise
            except Exception as error:
                note_place(error, self.text, index)
                failed = Failed(error)
            if failed is not None:
                yield failed
                continue
            groups[key] = group
            if ids is not None:
                group.ids.append(ids)
        for key in sorted(groups):
            group = groups[key]
            try:
                result = self._finalized(group.structure.pack(group.leaves))
                made = single(*result, np.concatenate(group.ids) if group.ids else None)
            except Exception as error:
                error.add_note(f"in the finalize_func of {self.text}, key {key}")
                made = Failed(error)
            yield made

    def element_spec(self, upstream: Pipeline) -> Any:
        """The nested spec of an element after this stage."""
        state, packed = flatten(self.reducer.init_func(np.int64(0)))
        leaves, structure = self._finalized(packed.pack(state))
        return structure.pack([spec_of(leaf) for leaf in leaves])

    def cardinality(self, upstream: Pipeline) -> int:
        """Number of elements after this stage."""
        return UNKNOWN_CARDINALITY

    def _finalized(self, state: Any) -> tuple[Leaves, Structure]:
        return flatten_element(probe.call(self.reducer.finalize_func, state))


def _key(given: Any, fn: Callable[..., Any]) -> int:
    key = np.asarray(given)
    if key.shape or key.dtype.kind not in "iu":
        unfit = InvalidArgumentError(
            f"group_by_reducer: key_func must return a whole number, got {given!r:.80}"
        )
        note_function(unfit, fn)
        raise unfit
    return int(key)
