"""What programs find under their names when TensorFlow runs them."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import tempfile
from typing import Any

import numpy as np

from tests.differential.common_names import (
    COMMON,
    Fields,
    Pair,
    asked,
    free_ports,
    is_refused,
    rest,
    with_settings,
    with_values,
    yielded,
)


def names() -> dict[str, Any]:
    """What programs find under their names, of TensorFlow."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    from tensorflow.python.data.experimental.ops import distribute

    def as_int(x: Any) -> Any:
        return tf.cast(x, tf.int64)

    def refused(x: Any) -> Any:
        rest = tf.reduce_sum(as_int(x)) % 3
        with tf.control_dependencies([tf.debugging.assert_none_equal(rest, tf.constant(1, tf.int64))]):
            return x + x

    def generated(lists: Any) -> Any:
        signature = tf.TensorSpec((None,), tf.int64)
        return tf.data.Dataset.from_generator(lambda: iter(lists), output_signature=signature)

    def resumed(dataset: Any, count: int) -> list[Any]:
        first = iter(dataset)
        for _ in range(count):
            with contextlib.suppress(tf.errors.OpError):
                next(first, None)
        with tempfile.TemporaryDirectory() as folder:
            saved = tf.train.Checkpoint(iterator=first).write(f"{folder}/position")
            second = iter(dataset)
            tf.train.Checkpoint(iterator=second).read(saved)
            return rest(second)

    def checked(number: Any, x: Any) -> Any:
        with tf.control_dependencies([tf.debugging.assert_none_equal(number % 3, tf.constant(1, tf.int64))]):
            return tf.identity(x)

    def padded(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: padded(part) for name, part in value.items()}
        if isinstance(value, tuple):
            return tuple(map(padded, value))
        return _padded(value) if isinstance(value, tf.SparseTensor) else value

    def told(spec: Any) -> str:
        return json.dumps(_described(spec))

    def auto_shard(dataset: Any, policy: str, hosts: int, index: int) -> Any:
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy[policy]
        return distribute._AutoShardDataset(dataset.with_options(options), hosts, index)

    @functools.cache
    def servers() -> tuple[Any, Any]:
        service = tf.data.experimental.service
        dispatcher = service.DispatchServer(service.DispatcherConfig())
        address = dispatcher.target.split("://")[1]
        return dispatcher, service.WorkerServer(service.WorkerConfig(dispatcher_address=address))

    @functools.cache
    def several(workers: int, fixed: bool) -> list[Any]:
        service = tf.data.experimental.service
        ports = free_ports(workers)
        addresses = [f"localhost:{port}" for port in ports] if fixed else None
        dispatcher = service.DispatchServer(service.DispatcherConfig(worker_addresses=addresses))
        address = dispatcher.target.split("://")[1]
        return [
            dispatcher,
            *(
                service.WorkerServer(
                    service.WorkerConfig(address, f"localhost:{port}", port, heartbeat_interval_ms=50)
                )
                for port in ports
            ),
        ]

    refusals = tf.errors.OpError, ValueError, TypeError, NotImplementedError, AttributeError
    return COMMON | {
        "is_refused": functools.partial(is_refused, refusals),
        "asked": functools.partial(asked, (Exception,)),
        "ClusterSpec": tf.train.ClusterSpec,
        "resolvers": tf.distribute.cluster_resolver,
        "DeviceSpec": tf.DeviceSpec,
        "partitioners": tf.distribute.experimental.partitioners,
        "divided": lambda partitioner, shape, dtype, *more, **named: list(
            partitioner(tf.TensorShape(shape), tf.as_dtype(dtype), *more, **named)
        ),
        "several": lambda workers, fixed: several(workers, fixed)[0].target,
        "experimental": tf.data.experimental,
        "service": tf.data.experimental.service,
        "target": lambda: servers()[0].target,
        "parsed": padded,
        "texts": lambda examples: tf.constant(examples, tf.string, [len(examples)]),
        "dtypes": tf.dtypes,
        "told": told,
        "DatasetSpec": tf.data.DatasetSpec,
        "IteratorSpec": tf.data.IteratorSpec,
        "OptionalSpec": tf.OptionalSpec,
        "Optional": tf.experimental.Optional,
        "set_options": lambda values: with_settings(tf.data.Options(), values),
        "policy": lambda name: tf.data.experimental.ExternalStatePolicy[name],
        "shards": lambda name: tf.data.experimental.AutoShardPolicy[name],
        "auto_shard": auto_shard,
        "batch_size": lambda dataset: distribute.compute_batch_size(dataset),
        "sizes": lambda *given: list(map(int, distribute.batch_sizes_for_worker(*given))),
        "as32": lambda x: tf.cast(x, tf.int32),
        "Dataset": tf.data.Dataset,
        "Records": tf.data.TFRecordDataset,
        "Lines": tf.data.TextLineDataset,
        "Pieces": tf.data.FixedLengthRecordDataset,
        "Sql": lambda *arguments: tf.data.experimental.SqlDataset("sqlite", *arguments),
        "io": tf.io,
        "Spec": _Specs(),
        "generator": lambda elements, spec: tf.data.Dataset.from_generator(
            lambda: yielded(elements), output_signature=spec
        ),
        "options": functools.partial(with_values, tf.data.Options),
        "resumed": resumed,
        "checked": checked,
        "at": lambda dataset, index: tf.data.experimental.at(dataset, index),
        "asserted": tf.data.experimental.assert_cardinality,
        "size": lambda x: tf.size(x, tf.int64),
        "cast": tf.cast,
        "joined": lambda x, y: tf.concat([x, y], 0),
        "as_int": as_int,
        "refused": refused,
        "generated": generated,
        "numbers": tf.range,
        "length": lambda x: tf.shape(x)[0],
    }


class _Specs:
    """Makes `tf.TensorSpec`s for names of dtypes."""

    def __call__(self, shape: Any, dtype: str, name: str | None = None) -> Any:
        import tensorflow as tf

        return tf.TensorSpec(shape, tf.as_dtype(dtype), name)

    def from_value(self, value: Any) -> Any:
        """The spec of an array."""
        import tensorflow as tf

        return tf.TensorSpec.from_tensor(tf.convert_to_tensor(value))


def _padded(sparse: Any) -> Any:
    """Values and lengths, as workbench returns them in place of a sparse array."""
    shape = [int(size) for size in sparse.dense_shape]
    values = np.full(shape, b"" if sparse.dtype == "string" else 0, sparse.values.numpy().dtype)
    lengths = np.zeros(shape[:-1], np.int64)
    for place, value in zip(sparse.indices.numpy(), sparse.values.numpy(), strict=True):
        values[tuple(place)] = value
        lengths[tuple(place[:-1])] += 1
    return (values, lengths) if lengths.ndim else values


def _described(spec: Any) -> Any:
    if isinstance(spec, dict):
        return {name: _described(part) for name, part in sorted(spec.items())}
    if isinstance(spec, tuple | list):
        return [type(spec).__name__, *map(_described, spec)]
    if isinstance(spec, Pair | Fields):
        return [type(spec).__name__, _described(spec.x), _described(spec.y)]
    if hasattr(spec, "dtype"):
        shape = None if spec.shape.rank is None else list(spec.shape)
        return ["array", shape, spec.dtype.name, spec.name]
    return (
        [type(spec).__name__, _described(spec._serialize()[0])] if hasattr(spec, "_serialize") else str(spec)
    )
