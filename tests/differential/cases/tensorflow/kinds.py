"""The kinds of inputs that random cases have, each run as the vectors were recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.data.experimental.ops import distribute as sharding
from tensorflow.python.distribute import input_lib
from tensorflow.python.distribute.cluster_resolver import slurm_cluster_resolver

from tests.differential.cases.tensorflow.checkpoints import checkpoint_program
from tests.differential.cases.tensorflow.dumps import dumped_operations
from tests.differential.cases.tensorflow.notation import component, decode, described, encode, encode_spec
from tests.differential.cases.tensorflow.pipelines import build
from tests.differential.cases.tensorflow.programs import PROGRAMS, per_replica, run_program, strategy_names
from tests.differential.cases.tensorflow.resolvers import cluster, resolver
from tests.differential.cases.tensorflow.servers import coordinator_program
from tests.reference.interpreter.codec import Json

_FIELDS = ("job", "replica", "task", "device_type", "device_index")


def strategy_of(given: Json) -> Any:
    """The strategy that a case names, over logical CPU devices."""
    devices = [f"CPU:{index}" for index in range(given["replicas"])]
    match given.get("strategy"):
        case "default":
            return tf.distribute.get_strategy()
        case "OneDeviceStrategy":
            return tf.distribute.OneDeviceStrategy(devices[0])
        case "CentralStorageStrategy":
            return tf.distribute.experimental.CentralStorageStrategy(devices, "CPU:0")
        case _:
            return tf.distribute.MirroredStrategy(devices, tf.distribute.ReductionToOneDevice())


def _collective(given: Json) -> Json:
    strategy, context = strategy_of(given), tf.distribute.get_replica_context
    value = per_replica(strategy, [decode(part) for part in given["values"]])
    match given["kind"]:
        case "reduce":
            axis = tuple(given["axis"]) if isinstance(given["axis"], list) else given["axis"]
            return {"result": encode(strategy.reduce(given["reduce_op"], value, axis=axis))}
        case "gather":
            return {"result": encode(strategy.gather(value, axis=given["axis"]))}
        case "all_reduce":
            result = strategy.run(lambda x: context().all_reduce(given["reduce_op"], x), args=(value,))
        case _:
            result = strategy.run(lambda x: context().all_gather(x, axis=given["axis"]), args=(value,))
    return {"per_replica": [component(result, replica) for replica in range(given["replicas"])]}


def _program(given: Json) -> Json:
    strategy = strategy_of(given)
    return run_program(given, strategy_names(strategy))


def _debugging(given: Json) -> Json:
    check = getattr(tf.debugging, given["fn"])
    keywords = {name: decode(value) for name, value in given.get("kwargs", {}).items()}
    return {"ok": True, "result": encode(check(*(decode(value) for value in given["args"]), **keywords))}


def _assert_shapes(given: Json) -> Json:
    pairs = [(decode(tensor), _shape(shape)) for tensor, shape in given["shapes"]]
    tf.debugging.assert_shapes(pairs)
    return {"ok": True}


def _shape(shape: Json) -> Any:
    return shape if isinstance(shape, str) else [... if isinstance(size, dict) else size for size in shape]


def _partitioner(given: Json) -> Json:
    partition = getattr(tf.distribute.experimental.partitioners, given["partitioner"])(**given["args"])
    return {
        "result": list(
            partition(tf.TensorShape(given["shape"]), tf.as_dtype(given["dtype"]), axis=given["axis"])
        )
    }


def _device_spec(given: Json) -> Json:
    texts = given["specs"] if "specs" in given else [given["string"]]
    merged, *others = map(tf.DeviceSpec.from_string, texts)
    for other in others:
        merged = merged.make_merged_spec(other)
    return {**{name: getattr(merged, name) for name in _FIELDS}, "to_string": merged.to_string()}


def _cluster_spec(given: Json) -> Json:
    spec = cluster(given["cluster"])

    def ask(query: Json) -> Any:
        name, *arguments = [query] if isinstance(query, str) else query
        if name == "bool":
            return bool(spec)
        return sorted(spec.jobs) if name == "jobs" else getattr(spec, name)(*arguments)

    return {"results": [_answer(lambda query=query: ask(query)) for query in given["queries"]]}


def _distributed(given: Json) -> Json:
    workers, replicas = given["num_workers"], given["replicas_per_worker"]
    places = [(f"/device:CPU:{worker}", [f"/device:CPU:{worker}"] * replicas) for worker in range(workers)]
    dataset = input_lib.DistributedDataset(
        input_lib.InputWorkers(places),
        strategy_of({"replicas": replicas}),
        dataset=build(given["pipeline"]),
        num_replicas_in_sync=workers * replicas,
    )
    return _by_worker(lambda worker: dataset._cloned_datasets[worker], workers)


def _sharded(given: Json) -> Json:
    dataset, workers = build(given["pipeline"]), given["num_workers"]
    return _by_worker(lambda worker: sharding._AutoShardDataset(dataset, workers, worker), workers)


def _by_worker(dataset_of: Callable[[int], Any], workers: int) -> Json:
    found = [
        _answer(lambda w=worker: [encode(element) for element in dataset_of(w)]) for worker in range(workers)
    ]
    return found[0] if all(isinstance(entry, dict) for entry in found) else {"workers": found}


def _regrouped(given: Json) -> Json:
    dataset = build(given["pipeline"])
    if given["kind"] == "legacy_rebatch":
        dataset = sharding._LegacyRebatchDataset(dataset, given["num_replicas"])
    else:
        dataset = dataset.rebatch(given["batch_sizes"], given["drop_remainder"])
    return {
        "element_spec": encode_spec(dataset.element_spec),
        "elements": [encode(element) for element in dataset],
    }


def _schedule(given: Json) -> Json:
    names = ("global_batch_size", "num_workers", "num_replicas_per_worker", "worker_index")
    return {
        "result": [int(size) for size in sharding.batch_sizes_for_worker(*(given[name] for name in names))]
    }


def _steps(given: Json) -> Json:
    dataset = strategy_of(given).experimental_distribute_dataset(build(given["pipeline"]))
    replicas = range(given["replicas"])
    return {
        "element_spec": encode_spec(dataset.element_spec),
        "steps": [[component(step, replica) for replica in replicas] for step in dataset],
        "end": "exhausted",
    }


def _answer(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except Exception as error:
        return described(error)


KINDS: dict[str, Callable[[Json], Json]] = {
    **dict.fromkeys(("reduce", "gather", "all_reduce", "all_gather"), _collective),
    "program": _program,
    "checkpoint_program": lambda given: checkpoint_program(given, strategy_of(given)),
    "debugging": _debugging,
    "dumped_operations": dumped_operations,
    "assert_shapes": _assert_shapes,
    "partitioner": _partitioner,
    "device_spec_parse": _device_spec,
    "device_spec_merge": _device_spec,
    "cluster_spec": _cluster_spec,
    "resolver": resolver,
    "slurm_expand_hostlist": lambda given: {
        "result": slurm_cluster_resolver.expand_hostlist(given["hostlist"])
    },
    "multi_worker_distribute": _distributed,
    "auto_shard": _sharded,
    "legacy_rebatch": _regrouped,
    "rebatch": _regrouped,
    "batch_sizes_for_worker": _schedule,
    "compute_batch_size": lambda given: {
        "result": int(sharding.compute_batch_size(build(given["pipeline"])))
    },
    "distribute_dataset": _steps,
    **PROGRAMS,
    "coordinator_program": coordinator_program,
}
