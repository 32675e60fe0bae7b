"""Random reductions and gatherings: dtypes, shapes, axes, sparse rows, numbers of replicas."""

from __future__ import annotations

from tests.differential.cases.values import DTYPES, Values
from tests.reference.interpreter.codec import Json


def case(values: Values) -> Json:
    """The next case."""
    replicas = values.either(2, 2, 3, 4)  # TensorFlow returns a lone replica's value unchecked
    given: Json = {"kind": values.either("reduce", "reduce", "gather", "all_reduce", "all_gather")}
    if values.rarely(0.2):
        given["strategy"] = "CentralStorageStrategy"
    given["replicas"] = replicas
    if "reduce" in given["kind"]:
        given["reduce_op"] = values.either(
            "SUM", "MEAN", "sum", "mean", "MAX" if values.rarely(0.1) else "SUM"
        )
    if given["kind"] != "all_reduce":
        given["axis"] = values.either(0, 0, 1, -1, -2, 2)
    if given["kind"] == "reduce":
        given["axis"] = values.either(None, None, given["axis"], [0], [0, 1], [1, 0], [-1])
    sparse = given["kind"] == "all_reduce" and values.rarely(0.15)
    given["values"] = _sparse(values, replicas) if sparse else _components(values, replicas)
    return given


def _components(values: Values, replicas: int) -> list[Json]:
    dtype, shape = values.either(*DTYPES), values.shape()
    uneven = values.random.randrange(len(shape)) if shape and values.rarely(0.35) else None
    components = []
    for _ in range(replicas):
        own = list(shape)
        if uneven is not None:
            own[uneven] = values.random.randint(0, 4)
        other = values.rarely(0.02)
        components.append(values.array(None if other else dtype, None if values.rarely(0.02) else own))
    return components


def _sparse(values: Values, replicas: int) -> list[Json]:
    dtype, columns = values.either("float32", "float64", "int32"), values.either([], [2])
    components = []
    for _ in range(replicas):
        rows = values.either(0, 1, 2, 2, 3)
        indices = [values.random.randrange(4) for _ in range(rows)]
        components.append(
            {
                "indexed_slices": {
                    "values": values.array(dtype, [rows, *columns]),
                    "indices": {"t": "int64", "s": [rows], "v": indices},
                    "dense_shape": {"t": "int64", "s": [1 + len(columns)], "v": [4, *columns]},
                }
            }
        )
    return components
