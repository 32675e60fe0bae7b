"""Facts about an array, as each debug mode has them."""

from __future__ import annotations

from typing import Any

import numpy as np


def facts(array: np.ndarray, mode: str) -> dict[str, Any]:
    """The columns of `schema.SCHEMA` that a mode fills for an array; the others are null.

    Args:
      array: An array of any dtype.
      mode: One of `options.MODES`. The health modes only cover floating dtypes.
    """
    if mode == "NO_TENSOR":
        return {}
    shape = {"dtype": array.dtype.name, "shape": list(array.shape), "size": array.size}
    if mode == "SHAPE":
        return shape
    floating = array.dtype.kind == "f" or array.dtype.name.startswith(("bfloat", "float"))
    if mode == "FULL_TENSOR":
        if array.dtype.kind not in "biufcV" or array.dtype.hasobject:
            return shape
        bad = {"bad": not bool(np.isfinite(array).all())} if floating or array.dtype.kind == "c" else {}
        return shape | bad | {"tensor": np.ascontiguousarray(array).tobytes()}
    if mode == "FULL_NUMERICS" and (floating or array.dtype.kind in "biu"):
        return shape | _numerics(array.astype(np.float64))
    if not floating:
        return {}
    with np.errstate(all="ignore"):
        values = array if array.dtype.kind == "f" else array.astype(np.float32)
        finite = np.isfinite(values)
        if mode == "CURT_HEALTH":
            return {"dtype": array.dtype.name, "bad": not bool(finite.all())}
        found = {
            "dtype": array.dtype.name,
            "size": array.size,
            "bad": not bool(finite.all()),
            **_counts(values),
        }
        if mode == "CONCISE_HEALTH":
            return found
        return found | shape | _signs(values)


def _counts(values: np.ndarray) -> dict[str, int]:
    return {
        "negative_infinities": int(np.isneginf(values).sum()),
        "positive_infinities": int(np.isposinf(values).sum()),
        "nans": int(np.isnan(values).sum()),
    }


def _signs(values: np.ndarray) -> dict[str, int]:
    """How many finite elements are less than, equal to and greater than 0."""
    finite = values[np.isfinite(values)]
    return {
        "negatives": int((finite < 0).sum()),
        "zeros": int((finite == 0).sum()),
        "positives": int((finite > 0).sum()),
    }


def _numerics(values: np.ndarray) -> dict[str, Any]:
    with np.errstate(all="ignore"):
        finite = values[np.isfinite(values)]
        found: dict[str, Any] = {"bad": finite.size < values.size, **_counts(values), **_signs(values)}
        if finite.size:
            found |= {
                "min": float(finite.min()),
                "max": float(finite.max()),
                "mean": float(finite.mean()),
                "variance": float(finite.var()),
            }
        return found
