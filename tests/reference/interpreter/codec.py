"""Decodes the values of a vector into arrays and structures (section 2 of the format)."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from tests.reference.outcomes import api

Json = Any

_SPECIAL = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


def decode(value: Json) -> Any:
    """The Python value, array or structure that `value` stands for."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case list():
            return [decode(item) for item in value]
        case {"t": _, "s": _, "v": _}:
            return array(value)
        case {"py": plain} | {"pystr": plain}:
            return decode_special(plain)
        case {"np": inner}:
            return array(inner)
        case {"dtype": name}:
            return dtype(name)
        case {"b64": text}:
            return base64.b64decode(text)
        case {"tuple": items}:
            return tuple(decode(item) for item in items)
        case {"list": items}:
            return [decode(item) for item in items]
        case {"dict": items}:
            return {key: decode(item) for key, item in items.items()}
        case {"indexed_slices": parts}:
            return api("IndexedSlices")(
                *(decode(parts[part]) for part in ("values", "indices", "dense_shape"))
            )
        case _:
            raise ValueError(f"no rule to decode {value!r}")


def array(value: Json) -> np.ndarray[Any, Any]:
    """The array described by `{"t", "s", "v"}`; strings become objects of type bytes."""
    name, shape, nested = value["t"], value["s"], value["v"]
    if name == "string":
        strings = np.empty(shape, object)
        strings.reshape(-1)[:] = [as_bytes(item) for item in _flat(nested)]
        return strings
    if name.startswith("complex"):
        pairs = np.array(_map(decode_special, nested), float).reshape([*shape, 2])
        return np.ascontiguousarray(pairs).view(np.complex128)[..., 0].astype(name)
    # An integer must not pass through float64, which would round it.
    wide: Any = np.float64 if "float" in name else dtype(name)
    return np.array(_map(decode_special, nested), wide).astype(dtype(name)).reshape(shape)


def as_bytes(text: Json) -> bytes:
    """The bytes of a text or of `{"b64": ...}`."""
    return base64.b64decode(text["b64"]) if isinstance(text, dict) else text.encode()


def decode_special(leaf: Json) -> Any:
    """`leaf`, with the names of non-finite numbers replaced by the numbers."""
    return _SPECIAL.get(leaf, leaf) if isinstance(leaf, str) else leaf


def dtype(name: str) -> np.dtype[Any]:
    """The NumPy type of a dtype name; strings are objects."""
    if name == "string":
        return np.dtype(object)
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def dtype_name(kind: Any) -> str:
    """The name of a dtype in the vectors' spelling."""
    if isinstance(kind, str) and kind == "string":
        return kind
    found = np.dtype(kind)
    return "string" if found.kind in "OSUT" else found.name


def default_array(value: Any, kind: str | None = None) -> Any:
    """`value` as an array: Python numbers as int32 or float32 unless `kind` says other, arrays as are."""
    if type(value).__module__.startswith("jax"):
        return value if kind is None else value.astype(dtype(kind))  # it has a dtype, even while traced
    if kind is not None:
        return np.asarray(value, dtype(kind))
    found = np.asarray(value)
    if found.dtype.kind in "SU":
        strings = np.empty(found.shape, object)
        strings.reshape(-1)[:] = [
            as_bytes(t) if isinstance(t, str) else bytes(t) for t in _flat(found.tolist())
        ]
        return strings
    if any(isinstance(leaf, np.ndarray | np.generic) for leaf in _flat(value)):
        return found
    defaults = {"i": np.int32, "f": np.float32, "c": np.complex64}
    return found.astype(defaults.get(found.dtype.kind, found.dtype))


def _flat(nested: Any) -> Iterator[Any]:
    if isinstance(nested, list | tuple):
        for item in nested:
            yield from _flat(item)
    else:
        yield nested


def _map(fn: Callable[[Any], Any], nested: Any) -> Any:
    return [_map(fn, item) for item in nested] if isinstance(nested, list) else fn(nested)


def json_keys(mapping: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    """A dict with its keys as JSON would write them."""
    return {str(key): item for key, item in mapping}
