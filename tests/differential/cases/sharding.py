"""Random pipelines split among workers and replicas, and regrouped."""

from __future__ import annotations

from tests.differential.cases.values import Values
from tests.reference.interpreter.codec import Json


def case(values: Values) -> Json:
    """The next case."""
    make = values.either(
        _distributed, _distributed, _steps, _steps, _sharded, _split, _regrouped, _schedule, _detected
    )
    made: Json = make(values)
    return made


def _distributed(values: Values) -> Json:
    workers = {"num_workers": values.either(2, 2, 3, 4), "replicas_per_worker": values.either(1, 2, 3)}
    return {"kind": "multi_worker_distribute", **workers, "pipeline": _pipeline(values)}


def _steps(values: Values) -> Json:
    return {
        "kind": "distribute_dataset",
        "replicas": values.either(1, 2, 3, 4),
        "pipeline": _pipeline(values),
    }


def _sharded(values: Values) -> Json:
    return {"kind": "auto_shard", "num_workers": values.either(1, 2, 3), "pipeline": _pipeline(values)}


def _split(values: Values) -> Json:
    return {
        "kind": "legacy_rebatch",
        "num_replicas": values.either(1, 2, 3, 4),
        "pipeline": _pipeline(values),
    }


def _regrouped(values: Values) -> Json:
    sizes = values.either(1, 2, 3, [2, 1], [2, 1, 1], [3, 2], [2, 0, 1], [1, 0])
    flags = {"batch_sizes": sizes, "drop_remainder": values.either(True, False)}
    return {"kind": "rebatch", **flags, "pipeline": _pipeline(values)}


def _schedule(values: Values) -> Json:
    workers = values.random.randint(1, 4)
    return {
        "kind": "batch_sizes_for_worker",
        "global_batch_size": values.either(1, 2, 3, 5, 8, 11, 64),
        "num_workers": workers,
        "num_replicas_per_worker": values.random.randint(1, 3),
        "worker_index": values.random.randrange(workers),
    }


def _detected(values: Values) -> Json:
    return {"kind": "compute_batch_size", "pipeline": _pipeline(values)}


def _pipeline(values: Values) -> list[Json]:
    steps: list[Json] = [_source(values)]
    before: tuple[Json, ...] = (
        {"op": "skip", "count": 1},
        {"op": "repeat", "count": 2},
        {"op": "prefetch", "buffer_size": 1},
    )
    steps += [values.either(*before) for _ in range(values.either(0, 0, 1))]
    steps.append(
        {"op": "batch", "batch_size": values.random.randint(1, 9), "drop_remainder": values.rarely(0.2)}
    )
    after: tuple[Json, ...] = (
        *before,
        {"op": "take", "count": 2},
        {"op": "shard", "num_shards": 2, "index": 0},
    )
    steps += [values.either(*after) for _ in range(values.either(0, 0, 1, 2))]
    if values.rarely(0.7):
        steps.append({"op": "options", "auto_shard_policy": values.either("OFF", "DATA", "AUTO")})
    return steps


def _source(values: Values) -> Json:
    rows = values.either(4, 5, 7, 8, 9, 10, 12, 13, 16)
    numbers = {"t": "int32", "s": [rows], "v": list(range(rows))}
    texts = {"t": "string", "s": [rows, 2], "v": [[f"a{row}", f"b{row}"] for row in range(rows)]}
    return values.either(
        {"op": "range", "args": [rows]},
        {"op": "range", "args": [rows]},
        {"op": "from_tensor_slices", "value": {"tuple": [numbers, texts]}},
        {"op": "from_tensor_slices", "value": {"dict": {"a": numbers, "b": texts}}},
    )
