"""Programs of vectors, with the names that they see as TensorFlow's."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.distribute import values as distributed

from tests.differential.cases.tensorflow.notation import encode
from tests.reference.interpreter.codec import Json


def run_program(given: Json, names: dict[str, Any]) -> Json:
    """What the lines of a case leave in `result`, encoded."""
    return {"result": encode(left_by(given, names))}


def left_by(given: Json, names: dict[str, Any]) -> Any:
    """What the lines of a case leave in `result`."""
    names = {**array_names(), **names}
    exec("\n".join(given["code"]), names)
    return names["result"]


def array_names() -> dict[str, Any]:
    """The array functions of all programs."""
    return {
        "np": np,
        "const": _const,
        "cast": tf.cast,
        "identity": tf.identity,
        "reduce_sum": tf.reduce_sum,
        "reduce_mean": tf.reduce_mean,
        "concat": tf.concat,
        "stack": tf.stack,
        "zeros": tf.zeros,
        "ones": tf.ones,
        "square": tf.square,
        "shape_of": tf.shape,
        "function": tf.function,
        "errors": tf.errors,
        "Dataset": tf.data.Dataset,
        "Variable": tf.Variable,
        "Sync": tf.VariableSynchronization,
        "Agg": tf.VariableAggregation,
        "IndexedSlices": tf.IndexedSlices,
    }


def strategy_names(strategy: Any) -> dict[str, Any]:
    """What a program over `strategy` sees."""
    public = tf.distribute
    names = ("ReduceOp", "get_replica_context", "get_strategy", "has_strategy", "in_cross_replica_context")
    others = ("experimental_set_strategy", "InputContext", "InputOptions", "ReductionToOneDevice")
    classes = ("HierarchicalCopyAllReduce", "MirroredStrategy", "DistributedValues", "DistributedDataset")
    return {
        **{name: getattr(public, name) for name in (*names, *others, *classes, "DistributedIterator")},
        "ValueContext": public.experimental.ValueContext,
        "PerReplica": distributed.PerReplica,
        "strategy": strategy,
        "run": strategy.run,
        "local": strategy.experimental_local_results,
        "per_replica": functools.partial(per_replica, strategy),
    }


def per_replica(strategy: Any, components: list[Any]) -> Any:
    """A value whose component on replica r is `components[r]`."""
    if hasattr(strategy, "experimental_distribute_values_from_function"):
        return strategy.experimental_distribute_values_from_function(
            lambda context: components[context.replica_id_in_sync_group]
        )
    return strategy.run(lambda: components[int(tf.distribute.get_replica_context().replica_id_in_sync_group)])


def v1_program(given: Json) -> Json:
    """A program over a strategy of TensorFlow 1.15, whose `run` had another name."""
    devices = [f"/cpu:{index}" for index in range(given["replicas"])]
    strategy = tf.compat.v1.distribute.MirroredStrategy(devices, tf.distribute.ReductionToOneDevice())
    strategy.experimental_run_v2 = strategy.run
    return run_program(given, strategy_names(strategy))


def numeric_check_program(given: Json) -> Json:
    """A program that switches the check of all operations on or off."""
    debugging = tf.debugging
    names = {name: getattr(debugging, name) for name in ("enable_check_numerics", "disable_check_numerics")}
    try:
        return run_program(
            given, {**names, "tf_sqrt": tf.sqrt, "tf_log": tf.math.log, "divide": tf.math.divide}
        )
    finally:
        debugging.disable_check_numerics()


def device_scope(given: Json) -> Json:
    """The device of an operation of a graph that nested scopes surround, or of an eager result."""
    if given["kind"] == "device_scope_eager":
        return {"device": _inside(given["scopes"], lambda: tf.Variable(0.0).device)}
    with tf.Graph().as_default():
        return {"device": _inside(given["scopes"], lambda: tf.constant(0.0).device)}


def _inside(scopes: list[Json], make: Any) -> Any:
    if not scopes:
        return make()
    scope, *others = scopes
    with tf.device(tf.DeviceSpec(**scope["spec"]) if isinstance(scope, dict) else scope):
        return _inside(others, make)


def _const(value: Any, dtype: str | None = None) -> Any:
    return tf.constant(value, None if dtype is None else tf.as_dtype(dtype))


PROGRAMS = {
    "v1_program": v1_program,
    "numeric_check_program": numeric_check_program,
    "device_scope": device_scope,
    "device_scope_eager": device_scope,
}
