"""Arguments for the replicas: flattened, with references in place of values that the replicas have.

Also explains which part of them, or of a merge function's result, cannot be sent, in the user's terms.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import optree

from workbench import by_value
from workbench.errors import CaptureError
from workbench.runtime.comm.failure_report import safe_text
from workbench.runtime.comm.messages import dumps
from workbench.runtime.driver.handle import Handle
from workbench.runtime.driver.step import Step
from workbench.runtime.shipping.function_registry import Shipping

_PLAIN = frozenset({int, float, bool, complex, str, bytes, type(None)})
# Types that are always leaves, never part of the structure.
_LEAVES = _PLAIN - {type(None)} | {Handle, np.ndarray}


def payload(
    shipping: Shipping, step: Step, args: tuple[Any, ...], kwargs: dict[str, Any] | None
) -> tuple[Any, Any]:
    """Encodes arguments for the executor; also returns the id of their structure. Both are None without arguments.

    Args:
      shipping: Knows structures by id.
      step: The step that takes them; records the values that it reads.
      args: Positional arguments; a `Handle` anywhere in them stands for the replica's component.
      kwargs: Arguments by name, likewise.

    Raises:
      CaptureError: if an argument cannot be pickled; it names the argument.
    """
    if not args and not kwargs:
        return None, None
    call: Any = args, kwargs or {}
    if not kwargs and _LEAVES.issuperset(map(type, args)):  # the common case, at a fifth of the cost
        leaves, spec = list(args), _positional(len(args))
    else:
        leaves, spec = optree.tree_flatten(call, namespace="workbench")
    refs, plain = [], True
    for index, leaf in enumerate(leaves):
        kind = type(leaf)
        if kind is Handle:
            refs.append((index, leaf.serial, leaf.leaf))
            step.inputs.append(weakref.ref(leaf))  # weak, because a reference would keep the replicas' memory
            leaves[index] = None
            if step.accepted is not None:
                step.accepted.handles.append(leaf)
        elif kind not in _PLAIN:
            plain = False
    if shipping.codec.by_reference:
        return (spec, leaves, refs), None
    structure = shipping.structure_id(spec)
    if plain:  # every replica may get the same objects, so they are pickled with the message
        return (structure, leaves, refs), structure
    try:
        return dumps((structure, leaves, refs)), structure
    except Exception as error:  # pickling calls code of any class in the arguments
        raise explain_unpicklable_argument(step.name, call, error) from error


@functools.cache
def _positional(count: int) -> Any:
    """The structure of a call with this many positional arguments, all leaves."""
    call: Any = (0,) * count, {}
    return optree.tree_structure(call, namespace="workbench")


def explain_unpicklable_argument(name: str, call: Any, error: BaseException) -> CaptureError:
    """The error if one of the arguments `(args, kwargs)` cannot be pickled; names that argument.

    Args:
      name: Name of the user's function.
      call: The arguments.
      error: The error of pickling them.
    """
    for path, kind, reason in _unpicklable_leaves(call):
        where = ("args", "kwargs")[path[0]] + "".join(f"[{part!r}]" for part in path[1:])
        return CaptureError(
            f"{where} of {name!r} cannot be sent to the workers: {kind} does not pickle ({reason}). Make it inside the "
            f"function instead."
        )
    return CaptureError(f"the arguments of {name!r} cannot be sent to the workers: {safe_text(error)}")


def explain_unpicklable_result(name: str, result: Any, error: BaseException) -> CaptureError:
    """The error if a merge function's result cannot be sent to the replicas; names the part at fault.

    Args:
      name: Name of the merge function.
      result: Its result.
      error: The error of pickling it.
    """
    for path, kind, reason in _unpicklable_leaves(result):
        where = "".join(f"[{part!r}]" for part in path)
        return CaptureError(
            f"the result{where} of the merge function {name!r} cannot be sent to the replicas: {kind} does not pickle "
            f"({reason}). Return arrays, numbers, distributed values or variables."
        )
    return CaptureError(
        f"the result of the merge function {name!r} cannot be sent to the replicas: {type(error).__name__}: "
        f"{safe_text(error)}"
    )


def _unpicklable_leaves(tree: Any) -> Iterator[tuple[tuple[Any, ...], str, str]]:
    """(path, type, reason) of each leaf that cannot be pickled."""
    try:
        paths, leaves, _ = optree.tree_flatten_with_path(tree, namespace="workbench")
    except Exception:  # not a valid tree: keys that cannot be sorted, or a broken node
        return
    for path, leaf in zip(paths, leaves, strict=True):
        if isinstance(leaf, Handle):
            continue  # its components are on the replicas already
        try:
            by_value.dumps(leaf)
        except Exception as reason:
            kind = type(leaf)
            yield path, f"a {kind.__module__}.{kind.__qualname__}", safe_text(reason)
