"""Random dumps of a few operations: every mode, filters, and the circular buffer."""

from __future__ import annotations

from tests.differential.cases.values import Values
from tests.reference.interpreter.codec import Json

_NUMBERS = ("float32", "float32", "float64", "float16", "bfloat16", "int32", "int64")
_COUNTS = ["size", "negative_infinities", "positive_infinities", "nans"]
FACTS = {
    "CURT_HEALTH": ["bad"],
    "CONCISE_HEALTH": _COUNTS,
    "FULL_HEALTH": ["dtype", "rank", *_COUNTS, "negatives", "zeros", "positives"],
    "SHAPE": ["dtype", "rank", "size", "shape"],
    "FULL_TENSOR": ["tensor"],
}
"""What each mode tells of an array."""


def case(values: Values) -> Json:
    """The next case."""
    arrays, operations = [], []
    for _ in range(values.either(1, 2, 4)):
        dtype = values.either(*_NUMBERS, *_NUMBERS, "bool")
        arrays.append(values.array(dtype, values.shape() or [2]))
        operations.append(values.either("stack", "add", "multiply") if dtype != "bool" else "stack")
    given: Json = {
        "kind": "dumped_operations",
        "mode": values.either(*FACTS),
        "arrays": arrays,
        "operations": operations,
        "buffer": 1000,
    }
    match values.either("all", "regex", "dtypes", "buffer"):
        case "regex":
            given["only"] = values.random.sample(["stack", "add", "multiply"], values.either(1, 2))
        case "dtypes":
            given["dtypes"] = values.random.sample(["float32", "int32", "float64", "bool"], 2)
        case "buffer":
            given["buffer"] = values.either(-1, 0, 1, 2, 3)
    return given
