"""What programs find under their names when workbench runs them."""

from __future__ import annotations

import contextlib
import functools
import json
import tempfile
from dataclasses import FrozenInstanceError
from types import SimpleNamespace
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


def names(servers: contextlib.ExitStack | None = None) -> dict[str, Any]:
    """What programs find under their names, of this project.

    Args:
      servers: Its end stops the servers that programs have started; without one, the end of the process does.
    """
    import workbench as wb

    def as_int(x: Any) -> Any:
        return np.asarray(x).astype(np.int64)[()]

    def refused(x: Any) -> Any:
        if int(np.sum(x)) % 3 == 1:
            raise wb.errors.InvalidArgumentError("refused")
        return x + x

    def generated(lists: Any) -> Any:
        signature = wb.data.TensorSpec((None,), np.int64)
        return wb.data.Dataset.from_generator(lambda: iter(lists), output_signature=signature)

    def resumed(dataset: Any, count: int) -> list[Any]:
        first = iter(dataset)
        for _ in range(count):
            with contextlib.suppress(wb.errors.WorkbenchError, ValueError):  # from a generator
                next(first, None)
        with tempfile.TemporaryDirectory() as folder:
            first.save(f"{folder}/position")
            second = iter(dataset)
            second.restore(f"{folder}/position")
            return rest(second)

    def checked(number: Any, x: Any) -> Any:
        if number % 3 == 1:
            raise wb.errors.InvalidArgumentError("refused")
        return x

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(part) for name, part in value.items()}
        return tuple(map(plain, value)) if isinstance(value, tuple) else value

    def told(spec: Any) -> str:
        return json.dumps(_described(spec))

    def auto_shard(dataset: Any, policy: str, hosts: int, index: int) -> Any:
        options = wb.data.Options()
        options.experimental_distribute.auto_shard_policy = wb.data.AutoShardPolicy[policy]
        return wb.data.auto_shard(dataset.with_options(options), hosts, index).dataset

    running = servers or contextlib.ExitStack()
    service = wb.data.service

    @functools.cache
    def target() -> str:
        dispatcher = running.enter_context(service.DispatchServer())
        running.enter_context(service.WorkerServer(service.WorkerConfig(dispatcher.target)))
        return dispatcher.target

    @functools.cache
    def several(workers: int, fixed: bool) -> str:
        ports = free_ports(workers)
        addresses = [f"127.0.0.1:{port}" for port in ports] if fixed else ()
        config = service.DispatcherConfig(worker_addresses=addresses)
        dispatcher = running.enter_context(service.DispatchServer(config))
        for port in ports:
            running.enter_context(service.WorkerServer(service.WorkerConfig(dispatcher.target, port=port)))
        return dispatcher.target

    return COMMON | {
        "is_refused": functools.partial(
            is_refused, (wb.errors.WorkbenchError, ValueError, TypeError, NotImplementedError)
        ),
        "asked": functools.partial(
            asked,
            (
                wb.errors.WorkbenchError,
                ValueError,
                TypeError,
                NotImplementedError,
                FrozenInstanceError,
                KeyError,
            ),
        ),
        "ClusterSpec": wb.distribute.ClusterSpec,
        "resolvers": wb.distribute.cluster_resolver,
        "DeviceSpec": wb.DeviceSpec,
        "partitioners": wb.distribute.experimental.partitioners,
        "divided": lambda partitioner, shape, dtype, *more, **named: list(
            partitioner(shape, dtype, *more, **named)
        ),
        "several": several,
        "experimental": wb.data.experimental,
        "service": service,
        "target": target,
        "parsed": plain,
        "texts": lambda examples: np.array([*examples, None], object)[:-1],
        "dtypes": SimpleNamespace(
            int32="int32", int64="int64", float32="float32", float64="float64", string="string", bool="bool"
        ),
        "told": told,
        "DatasetSpec": wb.data.DatasetSpec,
        "IteratorSpec": wb.data.IteratorSpec,
        "OptionalSpec": wb.data.OptionalSpec,
        "Optional": wb.data.Optional,
        "set_options": lambda values: with_settings(wb.data.Options(), values),
        "policy": lambda name: wb.data.experimental.ExternalStatePolicy[name],
        "shards": lambda name: wb.data.AutoShardPolicy[name],
        "auto_shard": auto_shard,
        "batch_size": wb.data.compute_batch_size,
        "sizes": lambda *given: list(map(int, wb.data.batch_sizes_for_worker(*given))),
        "as32": lambda x: np.int32(x),
        "Dataset": wb.data.Dataset,
        "Records": wb.data.TFRecordDataset,
        "Lines": wb.data.TextLineDataset,
        "Pieces": wb.data.FixedLengthRecordDataset,
        "Sql": lambda *arguments: wb.data.experimental.SqlDataset("sqlite", *arguments),
        "io": wb.io,
        "Spec": wb.data.TensorSpec,
        "generator": lambda elements, spec: wb.data.Dataset.from_generator(
            lambda: yielded(elements), output_signature=spec
        ),
        "options": functools.partial(with_values, wb.data.Options),
        "resumed": resumed,
        "checked": checked,
        "at": wb.data.experimental.at,
        "asserted": wb.data.experimental.assert_cardinality,
        "size": lambda x: np.int64(np.size(x)),
        "cast": lambda x, dtype: np.asarray(x).astype(dtype)[()],
        "joined": lambda x, y: np.concatenate([x, y]),
        "as_int": as_int,
        "refused": refused,
        "generated": generated,
        "numbers": np.arange,
        "length": len,
    }


def _described(spec: Any) -> Any:
    if isinstance(spec, dict):
        return {name: _described(part) for name, part in sorted(spec.items())}
    if isinstance(spec, tuple | list):
        return [type(spec).__name__, *map(_described, spec)]
    if isinstance(spec, Pair | Fields):
        return [type(spec).__name__, _described(spec.x), _described(spec.y)]
    if hasattr(spec, "dtype"):
        return ["array", None if spec.shape is None else list(spec.shape), spec.dtype_name, spec.name]
    return (
        [type(spec).__name__, _described(spec.element_spec)] if hasattr(spec, "element_spec") else str(spec)
    )
