"""Random partitioners, device specs, cluster specs, resolvers, TF_CONFIG and host lists."""

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
    make = values.either(_partitioner, _parsed, _merged, _cluster, _tf_config, _host_list, *_RESOLVERS)
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
    # Not for rank 0, where TensorFlow raises an IndexError.
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


def _simple(values: Values) -> Json:
    kwargs = {
        "master": values.either("", "m:1"),
        "task_type": values.either(None, *_JOBS),
        "task_id": values.either(None, 0, 1, 2),
        "rpc_layer": values.either(None, "", "grpc"),
        "environment": values.either("", "cloud"),
        "num_accelerators": values.either({}, {"GPU": 2}),
    }
    some = values.random.sample(sorted(kwargs), values.either(0, 2, 6))
    return {
        "type": "Simple",
        "cluster_spec": _jobs(values),
        "kwargs": {name: kwargs[name] for name in some} | {"num_accelerators": kwargs["num_accelerators"]},
    }


def _asked(values: Values, resolver: Json, **more: Json) -> Json:
    """A resolver and some queries, between which its task may change."""
    task = {"task_type": values.either(*_JOBS), "task_id": values.either(0, 1, 4)}
    either: tuple[Json, ...] = (
        *("cluster_spec", "master", "task_type", "task_id", "environment"),
        ["master", task],
        ["master", {**task, "rpc_layer": values.either("http", "")}],
        ["set", {"task_type": values.either(*_JOBS), "task_id": values.either(0, 1)}],
    )
    if resolver["type"] != "TPU":  # TensorFlow has no rpc layer in this case
        either = (*either, "rpc_layer", ["master", {"rpc_layer": "http"}], ["set", {"rpc_layer": "z"}])
    queries = [values.either(*either) for _ in range(values.either(3, 5, 8))]
    return {"kind": "resolver", "resolver": resolver, "queries": queries, **more}


def _given_cluster(values: Values) -> Json:
    return _asked(values, _simple(values))


def _union(values: Values) -> Json:
    kwargs = {
        "task_type": values.either(None, "", "ps"),
        "task_id": values.either(None, 0, 3),
        "rpc_layer": values.either(None, "", "q"),
    }
    resolvers = [_simple(values) for _ in range(values.either(1, 2, 2, 3))]
    some = {name: kwargs[name] for name in values.random.sample(sorted(kwargs), values.either(0, 1, 3))}
    unknown = {"environment": "cloud"} if values.rarely(0.05) else {}
    return _asked(values, {"type": "Union", "resolvers": resolvers, "kwargs": {**some, **unknown}})


def _slurm(values: Values) -> Json:
    hosts, tasks, count = values.either(
        ("n[9-10]", "2(x2)", 4), ("a,b", "1(x2)", 2), ("n[1-2],m", "2,1(x2)", 4), ("n1", "3", 3)
    )
    jobs = values.either(None, {"worker": count}, {"worker": count - 1, "ps": 1}, {"chief": 1}, {})
    gpus = values.either(3, 4, 8)  # not fewer than tasks, where TensorFlow fails
    kwargs = {"jobs": jobs, "gpus_per_node": gpus, "port_base": values.either(8888, 1)}
    if values.rarely(0.3):
        kwargs["gpus_per_task"] = values.either(1, 2)
    step = {
        "SLURM_PROCID": str(values.random.randrange(count)),
        "SLURM_STEP_NUM_TASKS": str(count),
        "SLURM_STEP_NODELIST": hosts,
        "SLURM_STEP_TASKS_PER_NODE": tasks,
        "CUDA_VISIBLE_DEVICES": ",".join(map(str, range(gpus))),
    }
    given = _asked(values, {"type": "Slurm", "kwargs": kwargs}, env=step)
    return {**given, "queries": [*given["queries"], "get_task_info", "num_accelerators"]}


def _kubernetes(values: Values) -> Json:
    pods = [
        {
            "name": f"pod-{values.either('a', 'b', 'c')}{number}",
            "phase": "Pending" if values.rarely(0.05) else "Running",
            "host_ip": f"10.0.1.{number}",
            "pod_ip": f"10.0.1.{number}",
        }
        for number in range(values.either(0, 1, 3))
    ]
    mapping = values.either(None, {}, {"worker": ["x=1"]}, {"worker": ["x=1", "none"], "ps": ["none"]})
    kwargs = {"job_to_label_mapping": mapping, "rpc_layer": values.either("grpc", "")}
    found = {"x=1": pods, "none": [], "job-name=tensorflow": pods}
    return _asked(values, {"type": "Kubernetes", "pods": found, "kwargs": kwargs})


def _compute_engine(values: Values) -> Json:
    machines = [{"name": f"i{number}", "ip": f"10.0.0.{number}"} for number in (9, 10, 2)]
    pages = values.either([machines], [machines[:1], machines[1:]], [[]])
    kwargs = {"project": "p", "zone": "z", "instance_group": "g", "port": 8470}
    more = values.either({}, {"task_type": "ps"}, {"task_id": 1}, {"rpc_layer": ""})
    return _asked(values, {"type": "GCE", "instance_pages": pages, "kwargs": {**kwargs, **more}})


def _tpu(values: Values) -> Json:
    node = {"state": values.either("READY", "READY", "CREATING"), "health": "HEALTHY"}
    ends = [{"ipAddress": "10.1.2.3", "port": "8470"}, {"ipAddress": "10.1.2.4", "port": "8471"}]
    node |= values.either(ends[0], {"networkEndpoints": ends})
    tpu = values.either("t", "t", "lost", ["t"], ["t", "u"], [], "grpc://a:1", "grpc://a,grpc://b:2", "local")
    kwargs = {"tpu": tpu, "zone": "z", "project": "p"}
    coordinator = {"coordinator_name": "chief", "coordinator_address": "c:1"}
    kwargs |= values.either({}, {"job_name": "ps"}, coordinator)
    resolver = {"type": "TPU", "nodes": {"projects/p/locations/z/nodes/t": node}, "kwargs": kwargs}
    given = _asked(values, resolver)
    # TensorFlow's rpc layer of an address is always the same.
    queries = [query for query in given["queries"] if "rpc_layer" not in query[1]]
    return {**given, "queries": [*queries, "get_master", "get_job_name"]}


_RESOLVERS = (_given_cluster, _union, _slurm, _kubernetes, _compute_engine, _tpu)
