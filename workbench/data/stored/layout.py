"""Structures, specs and dtypes as JSON, and back. Never executes or imports anything that a file names."""

from __future__ import annotations

import collections
import functools
from collections.abc import Iterable
from typing import Any

import numpy as np

from workbench import tree
from workbench.backends.numpy import STRING, dtype_named
from workbench.data.spec import TensorSpec
from workbench.errors import InvalidArgumentError

Json = Any
_PORTABLE_KINDS = "biufcmM"


def dtype_text(dtype: np.dtype[Any]) -> str:
    """The text of a dtype, including its byte order.

    Raises:
      InvalidArgumentError: for a structured dtype.
    """
    if dtype == STRING:
        return "string"
    if dtype.isbuiltin == 2:  # such as those of ml_dtypes, which NumPy only knows by name
        return dtype.name
    if dtype.kind in _PORTABLE_KINDS:
        return dtype.str
    raise InvalidArgumentError(
        f"elements that are stored or sent hold numbers, times and text, not {dtype}; map each field to a component"
    )


def dtype_of_text(text: str) -> np.dtype[Any]:
    """The dtype that `dtype_text` wrote.

    Raises:
      ValueError, TypeError, AttributeError: if it cannot have written the text.
    """
    if text == "string":
        return STRING
    try:
        dtype = np.dtype(text) if text[:1] in "<>|" else dtype_named(text)
    except SyntaxError as error:  # numpy reads names with commas as Python literals
        raise ValueError(f"{text!r} is not a dtype") from error
    if dtype.kind not in _PORTABLE_KINDS and dtype.isbuiltin != 2:
        raise ValueError(f"{text!r} is not a dtype of stored elements")
    return dtype


def spec_json(element_spec: Any) -> Json:
    """The nested spec of an element as JSON.

    Raises:
      InvalidArgumentError: for nested datasets, and containers that are neither records, tuples nor dicts.
    """
    leaves, structure = tree.flatten(element_spec)
    specs = []
    for leaf in leaves:
        if not isinstance(leaf, TensorSpec):
            raise InvalidArgumentError(
                f"elements that hold datasets cannot be stored or sent: {element_spec}; flatten them first, as with "
                "flat_map(lambda window: window.batch(n))"
            )
        specs.append([leaf.shape if leaf.shape is None else list(leaf.shape), dtype_text(leaf.dtype)])
    return {"structure": skeleton(tree.unflatten(structure, list(range(len(leaves))))), "components": specs}


def spec_of_json(value: Json) -> Any:
    """The nested spec that `spec_json` wrote. Records become named tuples of a new class.

    Raises:
      ValueError, TypeError, LookupError, AttributeError: if it cannot have written the value.
    """
    specs = [TensorSpec(shape, dtype_of_text(dtype)) for shape, dtype in value["components"]]
    return _built(value["structure"], specs)


def skeleton(node: Any) -> Json:
    """A nested structure whose leaves are numbers as JSON.

    Raises:
      InvalidArgumentError: for containers that are neither records, tuples nor dicts.
    """
    if node is None or type(node) is int:
        return node
    if isinstance(node, tuple) and hasattr(node, "_fields"):
        return _named_skeleton(node, node._fields, node)
    if tree.is_record(node):
        parts = tree.parts(node)
        return _named_skeleton(node, parts.keys(), parts.values())
    if type(node) is tuple:
        return {"tuple": [skeleton(item) for item in node]}
    if type(node) in (dict, collections.OrderedDict) and all(type(key) in (str, int) for key in node):
        kind = "dict" if type(node) is dict else "ordered"
        return {kind: [[key, skeleton(item)] for key, item in node.items()]}
    raise InvalidArgumentError(
        f"elements that are stored or sent are records, tuples, and dicts with text or numbers as keys, not "
        f"{type(node).__name__}; map the elements to such"
    )


def _named_skeleton(node: Any, fields: Iterable[str], items: Iterable[Any]) -> Json:
    name = type(node).__name__
    return {
        "named": name,
        "fields": list(_named(name, tuple(fields))._fields),
        "items": [skeleton(item) for item in items],
    }


def _built(node: Json, leaves: list[Any]) -> Any:
    match node:
        case None:
            return None
        case int():
            return leaves[node]
        case {"tuple": items}:
            return tuple(_built(item, leaves) for item in items)
        case {"dict": pairs}:
            return {key: _built(item, leaves) for key, item in pairs}
        case {"ordered": pairs}:
            return collections.OrderedDict((key, _built(item, leaves)) for key, item in pairs)
        case {"named": name, "fields": fields, "items": items}:
            return _named(name, tuple(fields))(*(_built(item, leaves) for item in items))
    raise ValueError(f"{node!r} is not a structure of stored elements")


@functools.lru_cache(maxsize=256)
def _named(name: str, fields: tuple[str, ...]) -> Any:
    # `rename` replaces a key that cannot be a field name, such as "0", by _0.
    return collections.namedtuple(name, fields, rename=True)
