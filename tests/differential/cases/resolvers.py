"""Random partitioners, device specs, cluster specs, TF_CONFIG and host lists."""

from __future__ import annotations

from typing import Any

from tests.differential.cases.values import DTYPES, Values
from tests.reference.interpreter.codec import Json

_ADDRESSES = ("a:1", "b:2", "h.example.com:2222", "10.0.0.1:80")
_JOBS = ("worker", "ps", "chief", "evaluator")
_PARTS = """
/job:worker /job:ps /job: /job:a-b /replica:0 /replica: /task:1 /task:a /task:-1 /CPU:0 /cpu:1 /GPU /gpu:* CPU:0 //
/device:GPU:* /device:TPU:0 /device:CPU /device:custom:3 /gizmo:0
""".split()


def case(values: Values) -> Json:
    """The next case."""
    make = values.either(_partitioner, _parsed, _merged, _cluster, _tf_config, _host_list)
    made: Json = make(values)
    return made


def _partitioner(values: Values) -> Json:
    name = values.either("FixedShards", "MinSize", "MaxSize")
    sizes = {
        "FixedShards": {"num_shards": values.either(1, 2, 3, 7, 100, 0, -1)},
        "MinSize": {
            "min_shard_bytes": values.either(1, 10, 100, 0),
            "max_shards": values.either(1, 3, 10, 0),
        },
        "MaxSize": {
            "max_shard_bytes": values.either(1, 7, 16, 100, 0),
            "max_shards": values.either(None, 2, 10, 0),
        },
    }
    # Not of rank 0, of which TensorFlow reports an IndexError.
    shape = [values.either(1, 2, 3, 5, 7, 10, 16) for _ in range(values.either(1, 1, 2, 3))]
    given = {"kind": "partitioner", "partitioner": f"{name}Partitioner", "args": sizes[name], "shape": shape}
    return {**given, "dtype": values.either(*DTYPES), "axis": values.either(0, 0, 0, -1)}


def _text(values: Values) -> str:
    return "".join(values.either(*_PARTS) for _ in range(values.either(1, 1, 2, 3)))


def _parsed(values: Values) -> Json:
    return {"kind": "device_spec_parse", "string": _text(values)}


def _merged(values: Values) -> Json:
    return {"kind": "device_spec_merge", "specs": [_text(values) for _ in range(values.either(2, 3))]}


def _jobs(values: Values) -> dict[str, Any]:
    return {job: _tasks(values) for job in values.random.sample(_JOBS, values.either(0, 1, 2, 3))}


def _tasks(values: Values) -> Json:
    addresses = [values.either(*_ADDRESSES) for _ in range(values.either(0, 1, 2, 3))]
    numbers = values.random.sample(range(5), len(addresses))
    return dict(zip(map(str, numbers), addresses, strict=True)) if values.rarely(0.25) else addresses


def _cluster(values: Values) -> Json:
    job = values.either(*_JOBS)
    queries = [
        "as_dict",
        "jobs",
        "bool",
        ["num_tasks", job],
        ["task_indices", job],
        ["task_address", job, values.either(0, 2)],
    ]
    return {"kind": "cluster_spec", "cluster": _jobs(values), "queries": queries}


def _tf_config(values: Values) -> Json:
    task = {"type": values.either("worker", "ps", "chief", "nope"), "index": values.either(0, 1, "1", 9)}
    config = {"cluster": _jobs(values), "task": task}
    if values.rarely(0.3):
        config["rpc_layer"] = values.either("grpc", "")
    if values.rarely(0.15):
        config["session_master"] = values.either("sess://m", "")
    chosen = {"task_type": values.either("worker", "ps", None), "task_id": values.either(0, 1, None)}
    queries = [
        "cluster_spec",
        "task_type",
        "task_id",
        "rpc_layer",
        "environment",
        "master",
        ["master", chosen],
    ]
    return {
        "kind": "resolver",
        "resolver": {"type": "TFConfig"},
        "env": {"TF_CONFIG": config},
        "queries": queries,
    }


def _host_list(values: Values) -> Json:
    parts = ("n", "m5", "[1-3]", "[08,10-11],", ",", "-", "7", "[", "]", "[3-1],")
    return {
        "kind": "slurm_expand_hostlist",
        "hostlist": "".join(values.either(*parts) for _ in range(values.either(1, 2, 3))),
    }
