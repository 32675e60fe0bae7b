"""The columns of a dump. Importing pyarrow starts a thread, so forked processes import this late."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

SCHEMA: Final = pa.schema(
    [
        ("time", pa.float64()),  # seconds since 1970
        ("host", pa.string()),
        ("replica", pa.int32()),  # -1 in the notebook
        ("step", pa.int64()),  # -1 outside steps
        ("number", pa.int64()),  # number of the operation within its step and replica
        ("op", pa.string()),
        ("name", pa.string()),  # the variable of an assignment, or ""
        ("output", pa.int32()),  # number of the result
        ("line", pa.string()),  # "train.py:12 in step"
        ("stack", pa.string()),  # the user's lines that led to the operation, innermost first
        ("dtype", pa.string()),
        ("shape", pa.list_(pa.int64())),
        ("size", pa.int64()),
        ("bad", pa.bool_()),  # whether any element is NaN or infinite
        ("negative_infinities", pa.int64()),
        ("positive_infinities", pa.int64()),
        ("nans", pa.int64()),
        ("negatives", pa.int64()),
        ("zeros", pa.int64()),
        ("positives", pa.int64()),
        ("min", pa.float64()),  # over the finite elements, like the next three
        ("max", pa.float64()),
        ("mean", pa.float64()),
        ("variance", pa.float64()),
        ("tensor", pa.binary()),  # the elements in C order
    ]
)
