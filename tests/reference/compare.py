"""Compares what was observed with what a vector expects, with the tolerances that the format states.

The expectation leads, so nothing has to be encoded: `{"t", "s", "v"}` wants an array of that dtype,
`{"py": x}` a Python number, a JSON list a sequence, and so on. Where a plain value is expected, a per-replica
value all of whose components equal it will do, because `run` always returns per-replica values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from tests.reference.distributed import components, densify, is_dataset, is_sparse, is_variable, select
from tests.reference.errors import accepts
from tests.reference.interpreter.codec import Json, array, as_bytes, decode_special, dtype_name, json_keys
from tests.reference.interpreter.specs import match_spec
from tests.reference.outcomes import Mismatch

_MARKERS = {
    "t",
    "py",
    "pystr",
    "tuple",
    "list",
    "dict",
    "per_replica",
    "mirrored",
    "variable",
    "indexed_slices",
    "optional",
    "dataset",
}
_MARKERS |= {"error", "dtype", "b64"}
_RELATIVE = {"float16": 1e-2, "bfloat16": 1e-2, "float64": 1e-9, "complex128": 1e-9}
_SPEC_KEYS = {"element_spec"}


@runtime_checkable
class Judge(Protocol):
    """Something observed that itself knows how it is compared."""

    def judge(self, expected: Json, path: str, comparison: Comparison) -> None:
        """Raises `Mismatch` unless it is what `expected` describes."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How to compare.

    Attributes:
      any_float: A floating dtype other than the expected one is fine (a mean of integers).
    """

    any_float: bool = False

    def match(self, expected: Json, actual: Any, path: str = "") -> None:
        """Raises `Mismatch`, naming the place, unless `actual` is what `expected` describes."""
        if isinstance(actual, Judge):
            actual.judge(expected, path, self)
        elif isinstance(expected, dict) and _MARKERS & expected.keys():
            self._marked(expected, actual, path)
        elif isinstance(expected, dict):
            self._mapping(expected, actual, path)
        elif isinstance(expected, list):
            self._sequence(expected, actual, path, (list, tuple, np.ndarray))
        elif expected is None:
            _require(actual is None or _all_equal_none(actual), path, "None", actual)
        else:
            self._plain(expected, actual, path)

    def _mapping(self, expected: dict[str, Json], actual: Any, path: str) -> None:
        _require(isinstance(actual, Mapping), path, f"a mapping with {sorted(expected)}", actual)
        found = json_keys(actual.items())
        _require(found.keys() == expected.keys(), path, f"the keys {sorted(expected)}", sorted(found))
        for key, item in expected.items():
            if key in _SPEC_KEYS:
                match_spec(item, found[key], f"{path}.{key}")
            else:
                self.match(item, found[key], f"{path}.{key}")

    def _sequence(self, expected: Sequence[Json], actual: Any, path: str, kinds: tuple[type, ...]) -> None:
        _require(isinstance(actual, kinds), path, f"a {kinds[0].__name__} of {len(expected)}", actual)
        _require(len(actual) == len(expected), path, f"{len(expected)} items", actual)
        for position, (item, found) in enumerate(zip(expected, actual, strict=True)):
            self.match(item, found, f"{path}[{position}]")

    def _marked(self, expected: dict[str, Json], actual: Any, path: str) -> None:
        match expected:
            case {"error": error}:
                _require(
                    isinstance(actual, BaseException) and accepts(error, actual),
                    path,
                    f"the error {error['kind']}",
                    actual,
                )
            case {"per_replica": items} | {"mirrored": items}:
                self._per_replica(items, actual, path)
            case {"variable": kind, "components": items}:
                self._variable(kind, items, actual, path)
            case {"indexed_slices": parts}:
                self._array(array_of_sparse(parts), densify(actual), path)
            case {"optional": content}:
                self._optional(content, actual, path)
            case {"dataset": items}:
                _require(is_dataset(actual), path, "a dataset", actual)
                self._sequence(items, list(actual), path, (list,))
            case _:
                self._plain_value(expected, actual, path)

    def _plain_value(self, expected: dict[str, Json], actual: Any, path: str) -> None:
        parts = components(actual)
        if parts is not None and not is_variable(actual):
            _require(len(parts) > 0, path, "a value", actual)
            for replica, part in enumerate(parts):
                self.match(expected, part, f"{path}<replica {replica}>")
            return
        match expected:
            case {"t": _, "s": _, "v": _}:
                self._array(array(expected), densify(actual) if is_sparse(actual) else actual, path)
            case {"py": plain} | {"pystr": plain}:
                self._plain(decode_special(plain), actual, path)
            case {"tuple": items}:
                self._sequence(items, actual, path, (tuple,))
            case {"list": items}:
                self._sequence(items, actual, path, (list,))
            case {"dict": items}:
                self._mapping(items, actual, path)
            case {"dtype": name}:
                _require(dtype_name(actual) == name, path, f"the dtype {name}", actual)
            case {"b64": _}:
                _require(actual == as_bytes(expected), path, "these bytes", actual)
            case _:
                raise ValueError(f"no rule to compare with {expected!r}")

    def _per_replica(self, items: Sequence[Json], actual: Any, path: str) -> None:
        _require(len(items) > 0, path, "no replicas", actual)
        for replica, item in enumerate(items):
            self.match(item, select(actual, replica, of=len(items)), f"{path}<replica {replica}>")

    def _variable(self, kind: str, items: Sequence[Json], actual: Any, path: str) -> None:
        _require(is_variable(actual) or len(items) == 1, path, f"a {kind}", actual)
        match kind:
            case "Variable":
                pass
            case "MirroredVariable" | "SyncOnReadVariable":
                _require(is_variable(actual), path, f"a {kind}", actual)
                on_read = actual.synchronization.name == "ON_READ"
                _require(on_read == (kind == "SyncOnReadVariable"), path, kind, actual.synchronization)
            case _:
                raise ValueError(f"no rule for variables of kind {kind!r}")
        parts = components(actual)
        found = (actual,) if parts is None else parts
        _require(len(found) == len(items), path, f"{len(items)} components", found)
        for position, (item, part) in enumerate(zip(items, found, strict=True)):
            self.match(item, np.asarray(part) if "t" in item else part, f"{path}.component[{position}]")

    def _optional(self, content: dict[str, Json], actual: Any, path: str) -> None:
        has_value = bool(actual.has_value())
        _require(has_value == content["has_value"], path, f"has_value {content['has_value']}", has_value)
        if has_value:
            self.match(content["value"], actual.get_value(), f"{path}.value")

    def _array(self, expected: np.ndarray[Any, Any], actual: Any, path: str) -> None:
        _require(
            # NumPy's float64 and complex128 are also Python numbers.
            isinstance(actual, np.generic) or not isinstance(actual, bool | int | float | complex | None),
            path,
            f"an array of {expected.dtype}",
            actual,
        )
        found = np.asarray(actual)
        wanted, got = dtype_name(expected.dtype), dtype_name(found.dtype)
        floats = self.any_float and "float" in wanted and "float" in got
        _require(wanted == got or floats, path, f"dtype {wanted}", f"dtype {got}: {actual!r}")
        _require(
            expected.shape == found.shape, path, f"shape {expected.shape}", f"shape {found.shape}: {actual!r}"
        )
        if wanted == "string":
            texts = [as_bytes(t) if isinstance(t, str) else bytes(t) for t in found.reshape(-1).tolist()]
            _require(texts == expected.reshape(-1).tolist(), path, expected, actual)
        elif expected.dtype.kind in "biu":
            _require(bool(np.array_equal(expected, found)), path, expected, actual)
        else:
            wide = np.complex128 if expected.dtype.kind == "c" else np.float64
            relative = max(_RELATIVE.get(wanted, 1e-5), _RELATIVE.get(got, 1e-5) if floats else 0.0)
            close = np.allclose(
                found.astype(wide), expected.astype(wide), rtol=relative, atol=0.0, equal_nan=True
            )
            _require(bool(close), path, expected, actual)

    def _plain(self, expected: Any, actual: Any, path: str) -> None:
        parts = components(actual)
        if parts is not None and not is_variable(actual):
            for replica, part in enumerate(parts):
                self._plain(expected, part, f"{path}<replica {replica}>")
            return
        found = actual.item() if isinstance(actual, np.generic) else actual
        if isinstance(expected, str) and isinstance(found, bytes):
            found = found.decode(errors="surrogateescape")
        if isinstance(expected, float) and isinstance(found, float):
            same = bool(np.isclose(found, expected, rtol=1e-5, atol=0.0, equal_nan=True))
        else:
            same = type(found) is type(expected) and found == expected
        _require(same, path, f"{expected!r} ({type(expected).__name__})", actual)


def array_of_sparse(parts: dict[str, Json]) -> np.ndarray[Any, Any]:
    """The dense array of `{"values", "indices", "dense_shape"}`."""
    values = array(parts["values"])
    dense = np.zeros(tuple(array(parts["dense_shape"])), values.dtype)
    np.add.at(dense, array(parts["indices"]), values)
    return dense


def _all_equal_none(actual: Any) -> bool:
    parts = components(actual)
    return parts is not None and not is_variable(actual) and all(part is None for part in parts)


def _require(condition: bool, path: str, expected: object, actual: object) -> None:
    if not condition:
        raise Mismatch(f"{path or 'result'}: expected {expected}, got {actual!r}")
