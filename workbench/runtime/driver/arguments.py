"""Arguments on their way to the replicas: flattened, with references in the place of what the replicas have."""

from __future__ import annotations

import functools
import weakref
from typing import Any

import numpy as np
import optree

from workbench.runtime.comm.messages import dumps
from workbench.runtime.driver.handle import Handle
from workbench.runtime.driver.step import Step
from workbench.runtime.driver.unpicklable import explain_unpicklable_argument
from workbench.runtime.shipping.function_registry import Shipping

_PLAIN = frozenset({int, float, bool, complex, str, bytes, type(None)})
# Types that are a leaf wherever they stand. None is part of the structure.
_LEAVES = _PLAIN - {type(None)} | {Handle, np.ndarray}


def payload(
    shipping: Shipping, step: Step, args: tuple[Any, ...], kwargs: dict[str, Any] | None
) -> tuple[Any, Any]:
    """Arguments as the executor decodes them, and the id of their structure; both None if there are no arguments.

    Args:
      shipping: Knows structures by id.
      step: Whose arguments they are; learns which values it reads.
      args: Positional arguments; a `Handle` anywhere in them stands for the replica's component.
      kwargs: Likewise by name.

    Raises:
      CaptureError: naming an argument that cannot be pickled.
    """
    if not args and not kwargs:
        return None, None
    call: Any = args, kwargs or {}
    if not kwargs and _LEAVES.issuperset(map(type, args)):  # the common case, for a fifth of the cost
        leaves, spec = list(args), _positional(len(args))
    else:
        leaves, spec = optree.tree_flatten(call, namespace="workbench")
    refs, plain = [], True
    for index, leaf in enumerate(leaves):
        kind = type(leaf)
        if kind is Handle:
            refs.append((index, leaf.serial, leaf.leaf))
            step.inputs.append(weakref.ref(leaf))  # not kept: that would keep the replicas' memory
            leaves[index] = None
            if step.accepted is not None:
                step.accepted.handles.append(leaf)
        elif kind not in _PLAIN:
            plain = False
    if shipping.by_reference:
        return (spec, leaves, refs), None
    structure = shipping.structure_id(spec)
    if plain:  # every replica may have the same objects: pickled with the message
        return (structure, leaves, refs), structure
    try:
        return dumps((structure, leaves, refs)), structure
    except Exception as error:  # pickling calls code of whatever the arguments are
        raise explain_unpicklable_argument(step.name, call, error) from error


@functools.cache
def _positional(count: int) -> Any:
    """The structure of a call with so many positional arguments, all of them leaves."""
    call: Any = (0,) * count, {}
    return optree.tree_structure(call, namespace="workbench")
