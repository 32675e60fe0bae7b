"""Which part of an argument or a result cannot be sent, by its place in what the user wrote."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cloudpickle
import optree

from workbench.errors import CaptureError
from workbench.runtime.comm.failure_report import safe_text
from workbench.runtime.driver.handle import Handle


def explain_unpicklable_argument(name: str, call: Any, error: BaseException) -> CaptureError:
    """The error for arguments `(args, kwargs)` of which one cannot be pickled; names that one."""
    for path, kind, reason in _unpicklable_leaves(call):
        where = ("args", "kwargs")[path[0]] + "".join(f"[{part!r}]" for part in path[1:])
        return CaptureError(
            f"{where} of {name!r} cannot be sent to the workers: {kind} does not pickle ({reason}). Make it inside the "
            f"function instead."
        )
    return CaptureError(f"the arguments of {name!r} cannot be sent to the workers: {safe_text(error)}")


def explain_unpicklable_result(name: str, result: Any, error: BaseException) -> CaptureError:
    """The error for what a merge function has returned and the replicas cannot be given; names the part."""
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
    """(path, type, why) of each leaf that cannot be pickled."""
    try:
        paths, leaves, _ = optree.tree_flatten_with_path(tree, namespace="workbench")
    except Exception:  # it is no tree: keys that cannot be sorted, a broken node
        return
    for path, leaf in zip(paths, leaves, strict=True):
        if isinstance(leaf, Handle):
            continue  # its components are on the replicas already
        try:
            cloudpickle.dumps(leaf)
        except Exception as reason:
            kind = type(leaf)
            yield path, f"a {kind.__module__}.{kind.__qualname__}", safe_text(reason)
