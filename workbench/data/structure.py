"""How values become elements: nested structures of arrays, with Python numbers, text and lists converted.

Tuples, named tuples, dicts, dataclasses and attrs classes are structures. A list is one array (as tf.data), Python
numbers become int32 and float32, text becomes bytes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from workbench import tree
from workbench.backends.numpy import STRING, native, require_unmasked
from workbench.data.spec import Cardinality, is_dataset
from workbench.errors import InvalidArgumentError, WrongType

Array = np.ndarray[Any, np.dtype[Any]]
_INT32 = np.iinfo(np.int32)
_INT64 = np.iinfo(np.int64)
_MOST_FLOAT32 = float(np.finfo(np.float32).max)


class Structure:
    """A nested structure, remembered so that leaves are packed into it quickly."""

    __slots__ = ("_flat", "spec")

    def __init__(self, spec: tree.Spec) -> None:
        self.spec = spec
        self._flat = spec.type is tuple and all(child.is_leaf() for child in spec.children())

    def pack(self, leaves: list[Any]) -> Any:
        """Puts `leaves` back into the structure."""
        return tuple(leaves) if self._flat else tree.unflatten(self.spec, leaves)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and self.spec == other.spec

    def __hash__(self) -> int:
        return hash(self.spec)

    def __reduce__(self) -> tuple[Any, ...]:
        if tree.is_learnt(self.spec):  # a process that unpickles it learns the class from an example
            return _structure_of, (self.pack([0] * self.spec.num_leaves),)
        return Structure, (self.spec,)


class _Leaf(Structure):
    """The structure of an element that is a single array; by far the most common case."""

    __slots__ = ()

    def pack(self, leaves: list[Any]) -> Any:
        """Returns the only leaf."""
        return leaves[0]

    def __reduce__(self) -> tuple[Any, ...]:
        return _leaf, ()


def _structure_of(example: Any) -> Structure:
    return flatten(example)[1]


def _leaf() -> Structure:
    return LEAF


LEAF: Structure = _Leaf(tree.flatten(0)[1])


def _structure(spec: tree.Spec) -> Structure:
    known = _known_structure(spec)
    return Structure(spec) if known is None else known


@functools.lru_cache(maxsize=256)
def _known_structure(spec: tree.Spec) -> Structure | None:
    """The structure, cached.

    None if it has dicts: their specs are equal whatever the order of keys, which elements keep.
    """
    if _has_dict(spec):
        return None
    return LEAF if spec == LEAF.spec else Structure(spec)


def _has_dict(spec: tree.Spec) -> bool:
    return spec.type is dict or any(_has_dict(child) for child in spec.children())


def flatten(value: Any, component: Callable[[Any], Any] | None = None) -> tuple[list[Any], Structure]:
    """Converts `value` to leaves (arrays, NumPy scalars, bytes) and the structure that held them.

    Args:
      value: An element.
      component: Converts a leaf; `convert` by default.
    """
    if type(value) is np.ndarray and value.dtype.kind not in "OUS":
        return [native(value)], LEAF
    leaves, spec = tree.flatten(value, is_leaf=lambda node: isinstance(node, list))
    try:
        return [(component or convert)(leaf) for leaf in leaves], _structure(spec)
    except TypeError:
        if not tree.learn(leaves):
            raise
    return flatten(value, component)


def flatten_result(value: Any) -> tuple[list[Any], Structure]:
    """As `flatten`, for the result of a user's function: a list at the top is a tuple of components."""
    return flatten(tuple(value)) if isinstance(value, list) else flatten(value)


def flatten_element(value: Any) -> tuple[list[Any], Structure]:
    """As `flatten_result`, for a result that becomes an element.

    Raises:
      InvalidArgumentError: if it has no component, as from a function without `return`.
    """
    leaves, structure = flatten_result(value)
    if not leaves:
        raise InvalidArgumentError(f"an element has a component at least, got {value!r:.60}; return a value")
    return leaves, structure


def convert(value: Any) -> Any:
    """One component as array, NumPy scalar, bytes or nested dataset; text in an array without dimensions is bytes.

    Raises:
      TypeError: if the value is none of these and cannot become one, or is a masked array.
    """
    match value:
        case np.ndarray():
            require_unmasked(value)
            return native(value) if value.dtype.kind not in "OUS" else _strings(value)[()]
        case bytes():
            return bytes(value)
        case str():
            return value.encode()
        case np.generic():
            return value
        case bool():
            return np.bool_(value)
        case Cardinality():
            return np.int64(value)
        case int():
            if _INT32.min <= value <= _INT32.max:
                return np.int32(value)
            if _INT64.min <= value <= _INT64.max:
                return np.int64(value)
            raise InvalidArgumentError(f"{value} does not fit into int64; give np.uint64 or an array")
        case float():
            if abs(value) > _MOST_FLOAT32 and not math.isinf(value):
                raise InvalidArgumentError(f"{value} does not fit into float32; give np.float64({value})")
            return np.float32(value)
        case complex():
            return np.complex128(value)
        case list() | range():
            return _from_list(list(value))
    if is_dataset(value) or hasattr(value, "spec_class"):
        return value
    if any(hasattr(value, name) for name in ("__array__", "__array_interface__", "__dlpack__")):
        return convert(np.asarray(value))
    if isinstance(value, Iterator):
        remedy = (
            "it gives its values one by one, once: list(...) makes one array of them, tuple(...) components, and "
            "flat_map(lambda x: Dataset.from_generator(...)) an element of each"
        )
    else:
        remedy = "use numbers, text, arrays, or tuples and dicts of them"
    raise WrongType(f"a dataset element cannot hold {type(value).__name__} {value!r:.60}; {remedy}")


def _from_list(values: list[Any]) -> Array:
    if values and all(map(is_dataset, values)):
        datasets = np.empty(len(values), STRING)
        for index, value in enumerate(values):  # a single `np.asarray` would search them for rows
            datasets[index] = value
        return datasets
    first: Any = values
    while isinstance(first, list | tuple) and first:
        first = first[0]
    try:
        array = np.asarray(values)
    except UnicodeDecodeError:  # text beside bytes
        return _strings(np.array(values, dtype=object))
    except ValueError as error:
        raise InvalidArgumentError(
            f"a list is one array, but its {len(values)} items differ in shape ({error}); "
            "give a tuple for several components, or arrays of one shape"
        ) from error
    if array.dtype.kind in "OUS":
        return _strings(np.array(values, dtype=object))
    if isinstance(first, np.generic | np.ndarray) or hasattr(first, "__array__"):
        return array
    if array.dtype == np.float64:
        try:
            with np.errstate(over="raise"):
                return array.astype(np.float32)
        except FloatingPointError as error:
            raise InvalidArgumentError(
                f"a number of {len(values)} does not fit into float32; give an array of float64"
            ) from error
    if array.dtype == np.int64 and (
        not array.size or (array.min() >= _INT32.min and array.max() <= _INT32.max)
    ):
        return array.astype(np.int32)
    return array


def _strings(array: Array) -> Array:
    """An object array that holds only bytes; `S` arrays would lose trailing NUL bytes."""
    items = array.reshape(-1).tolist()
    if array.dtype == STRING and items and all(map(is_dataset, items)):
        return array  # an array of datasets
    if array.dtype == STRING and all(type(item) is bytes for item in items):
        return array
    result = np.empty(len(items), object)
    if array.dtype.kind == "U":  # typically many file names
        result[:] = [item.encode() for item in items]
        return result.reshape(array.shape)
    for index, item in enumerate(items):
        if isinstance(item, np.ndarray) and not item.shape:
            item = item.item()
        if isinstance(item, str):
            item = item.encode()
        if not isinstance(item, bytes):
            raise WrongType(
                f"an object array may hold only text and bytes, item {index} is {type(item).__name__}"
            )
        result[index] = item
    return result.reshape(array.shape)
