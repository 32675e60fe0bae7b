"""Random dumps of a few operations: every mode, filters, and the circular buffer."""

from __future__ import annotations

from tests.differential.cases.values import Values
from tests.reference.interpreter.codec import Json

_NUMBERS = ("float32", "float64", "float16", "bfloat16", "int32", "int64", "int8", "uint8")
# Some of TensorFlow's operations do not support these.
_KEPT = ("bool", "int16", "uint16", "uint32", "uint64")
_COUNTS = ["size", "negative_infinities", "positive_infinities", "nans"]
FACTS = {
    "CURT_HEALTH": ["bad"],
    "CONCISE_HEALTH": _COUNTS,
    "FULL_HEALTH": ["dtype", "rank", *_COUNTS, "negatives", "zeros", "positives"],
    "SHAPE": ["dtype", "rank", "size", "shape"],
    "FULL_TENSOR": ["tensor"],
    "NO_TENSOR": [],
}
"""What each mode tells of an array."""


def case(values: Values) -> Json:
    """The next case."""
    arrays, operations = [], []
    for _ in range(values.either(1, 2, 4)):
        dtype = values.either(*_NUMBERS, *_NUMBERS, *_KEPT)
        arrays.append(values.array(dtype, values.shape() or [2]))
        operations.append(values.either("stack", "add", "multiply") if dtype in _NUMBERS else "stack")
    given: Json = {
        "kind": "dumped_operations",
        "mode": values.either(*FACTS),
        "arrays": arrays,
        "operations": operations,
        "buffer": 1000,
    }
    filters = ("all", "buffer") if given["mode"] == "NO_TENSOR" else ("all", "regex", "dtypes", "buffer")
    match values.either(*filters):
        case "regex":
            given["only"] = values.random.sample(["stack", "add", "multiply"], values.either(1, 2))
        case "dtypes":
            given["dtypes"] = values.random.sample(["float32", "int32", "float64", "bool"], 2)
        case "buffer":
            given["buffer"] = values.either(-1, 0, 1, 2, 3)
    return given
