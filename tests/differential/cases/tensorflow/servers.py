"""Programs over parameter servers: a cluster in this process, one coordinator per program."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute import sharded_variable

from tests.differential.cases.tensorflow.ports import free_port
from tests.differential.cases.tensorflow.programs import run_program, strategy_names
from tests.reference.interpreter.codec import Json

_WORKERS, _SERVERS = 2, 3
_running: list[Any] = []


def coordinator_program(given: Json) -> Json:
    """A program over a `ParameterServerStrategy` and its coordinator."""
    strategy = _strategy(given.get("partitioner"))
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    return run_program(
        given,
        {
            **strategy_names(strategy),
            "coordinator": coordinator,
            "fetch": coordinator.fetch,
            "ClusterCoordinator": tf.distribute.coordinator.ClusterCoordinator,
            "shards": _shards,
            "device": _device,
            "is_sharded": _is_sharded,
            "to_tensor": tf.convert_to_tensor,
            "check_positive": tf.debugging.assert_positive,
            "embedding_lookup": tf.nn.embedding_lookup,
        },
    )


def _strategy(partitioner: Json) -> Any:
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(_cluster(), rpc_layer="grpc")
    if partitioner is None:
        return tf.distribute.ParameterServerStrategy(resolver)
    make = getattr(tf.distribute.experimental.partitioners, partitioner["type"])
    return tf.distribute.ParameterServerStrategy(resolver, variable_partitioner=make(**partitioner["args"]))


@functools.cache
def _cluster() -> Any:
    jobs = {"worker": _WORKERS, "ps": _SERVERS}
    spec = tf.train.ClusterSpec(
        {job: [f"localhost:{free_port()}" for _ in range(n)] for job, n in jobs.items()}
    )
    # Functions on workers wait for each other, so each needs more threads than a small machine offers.
    threads = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=_WORKERS + _SERVERS + 1)
    _running.extend(
        tf.distribute.Server(spec, job_name=job, task_index=task, config=threads, protocol="grpc")
        for job, count in jobs.items()
        for task in range(count)
    )
    return spec


def _is_sharded(variable: Any) -> bool:
    return isinstance(variable, sharded_variable.ShardedVariable)


def _shards(variable: Any) -> list[Any]:
    parts = variable.variables if _is_sharded(variable) else [variable]
    return [(part.name, _device(part), part.read_value().numpy()) for part in parts]


def _device(variable: Any) -> str:
    spec = tf.DeviceSpec.from_string(variable.device)
    return f"{spec.job}:{spec.task}"
