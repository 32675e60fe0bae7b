"""What a replica function may try: a call for every public method of what it can get hold of.

A method that is missing here, or is here without being one, fails `test_inside_replicas`.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from threading import get_ident
from typing import Any

import numpy as np
from tqdm import tqdm

import workbench as wb
from workbench import distribute
from workbench.communicators import Reduction
from workbench.data.iterator import DatasetIterator
from workbench.distribute.variables.component import VariableComponent
from workbench.distribute.variables.programs import read_variable
from workbench.runtime.cluster import Cluster
from workbench.runtime.replica.env import current_env

Calls = dict[str, Callable[[Any], Any]]
_DATASET = wb.data.Dataset.range(8).batch(4)


def _kernel(*values: Any) -> Any:
    return values[0] if values else 1


def _progress() -> list[int]:
    # By default, tqdm creates a named semaphore, which a worker leaves behind. All threads take this lock.
    tqdm.set_lock(vars(threading).setdefault("_lock_of_progress", threading.RLock()))
    return list(wb.progress([1]))


def _entered(manager: Any) -> None:
    with manager:
        pass


def _component() -> np.ndarray[Any, Any]:
    return np.ones(2, np.float32)


STRATEGY: Calls = {
    "run": lambda s: s.run(_kernel),
    "reduce": lambda s: s.reduce("SUM", _component(), axis=None),
    "gather": lambda s: s.gather(_component(), axis=0),
    "local_results": lambda s: s.local_results(_component()),
    "scope": lambda s: _entered(s.scope()),
    "distribute_dataset": lambda s: s.distribute_dataset(_DATASET),
    "distribute_datasets_from_function": lambda s: s.distribute_datasets_from_function(lambda _: _DATASET),
    "distribute_values_from_function": lambda s: s.distribute_values_from_function(lambda c: c),
    "make_numpy_dataset": lambda s: s.make_numpy_dataset(_component()),
    "run_internal": lambda s: s.run_internal(read_variable, ("key",)),
    "taking": lambda s: _entered(s.taking(())),
    "run_collective": lambda s: s.run_collective(read_variable, ("key",)),
    "all_reduce_arrays": lambda s: s.all_reduce_arrays(
        current_env().communicator, [_component()], Reduction("sum", "here")
    ),
    "resize": lambda s: s.resize(),
    "divided": lambda s: s.divided(_component, np.dtype(np.float32), (2,), "w", None, "SUM"),
    "next_server": lambda s: s.next_server(),
    "flush_dumps": lambda s: s.flush_dumps("nowhere", sources=True, executions=True, close=True),
    "describe_again": lambda s: s.describe_again(s.description),
    "standing_for": lambda s: type(s).standing_for(s.description),
}
STRATEGY |= {
    f"experimental_{name}": STRATEGY[name]
    for name in (
        "local_results",
        "distribute_dataset",
        "distribute_datasets_from_function",
        "distribute_values_from_function",
        "make_numpy_dataset",
    )
}
EXTENDED: Calls = {
    "reduce_to": lambda e: e.reduce_to("SUM", distribute.PerReplica([1, 2]), "CPU:0"),
    "batch_reduce_to": lambda e: e.batch_reduce_to("SUM", [(distribute.PerReplica([1, 2]), "CPU:0")]),
    "broadcast_to": lambda e: e.broadcast_to(_component(), "CPU:0"),
    "call_for_each_replica": lambda e: e.call_for_each_replica(_kernel),
    "update": lambda e: e.update(wb.Variable(1.0), _kernel),
    "update_non_slot": lambda e: e.update_non_slot(None, _kernel),
    "colocate_vars_with": lambda e: _entered(e.colocate_vars_with(wb.Variable(1.0))),
    "non_slot_devices": lambda e: e.non_slot_devices([]),
    "read_var": lambda e: e.read_var(wb.Variable(1.0)),
    "value_container": lambda e: e.value_container(_component()),
    "experimental_make_numpy_dataset": lambda e: e.experimental_make_numpy_dataset(_component()),
    "variable_created_in_scope": lambda e: e.variable_created_in_scope(_component()),
}
CROSS_DEVICE_OPS: Calls = {
    "reduce": lambda o: o.reduce("SUM", distribute.PerReplica([1, 2]), "CPU:0"),
    "batch_reduce": lambda o: o.batch_reduce("SUM", [(distribute.PerReplica([1, 2]), "CPU:0")]),
    "broadcast": lambda o: o.broadcast(_component(), "CPU:0"),
    "reduce_implementation": lambda o: o.reduce_implementation(
        wb.ReduceOp.SUM, distribute.PerReplica([1, 2]), wb.DeviceSpec.from_string("CPU:0"), None
    ),
    "batch_reduce_implementation": lambda o: o.batch_reduce_implementation(wb.ReduceOp.SUM, [], None),
    "broadcast_implementation": lambda o: o.broadcast_implementation(_component(), "CPU:0"),
    "all_reduce_arrays": lambda o: o.all_reduce_arrays(
        current_env().communicator, [_component()], Reduction("sum", "here")
    ),
    "check_devices": lambda o: o.check_devices([]),
}
DATASET: Calls = {
    "__iter__": lambda d: iter(d),
    "explain": lambda d: d.explain(),
    "reduce": lambda d: d.reduce(0, lambda state, element: state),
    "position": lambda d: d.position(0, 0),
    "elements_at": lambda d: d.elements_at(d.position(0, 0)),
    "check": lambda d: d.check(d.position(0, 0)),
    "__repr__": repr,
}
ITERATOR: Calls = {
    "get_next": lambda i: i.get_next(),
    "get_next_as_optional": lambda i: i.get_next_as_optional(),
    "position": lambda i: i.position(),
    "check": lambda i: i.check(i.position()),
    "go_to": lambda i: i.go_to(i.position()),
    "__iter__": lambda i: iter(i),
    "__next__": lambda i: next(i),
}
DISTRIBUTED_VALUES: Calls = {
    "values_for": lambda v: v.values_for(2),
    "own_component": lambda v: v.own_component(current_env()),
    "handle_for": lambda v: v.handle_for(distribute.get_strategy().group),
    "component_text": lambda v: v.component_text(0),
    "__len__": len,
    "__repr__": repr,
}
_ROWS = wb.IndexedSlices(np.float32([1]), [0])
COMPONENT: Calls = {
    "scatter_add": lambda c: c.scatter_add(_ROWS),
    "scatter_sub": lambda c: c.scatter_sub(_ROWS),
    "scatter_mul": lambda c: c.scatter_mul(_ROWS),
    "scatter_div": lambda c: c.scatter_div(_ROWS),
    "scatter_min": lambda c: c.scatter_min(_ROWS),
    "scatter_max": lambda c: c.scatter_max(_ROWS),
    "scatter_update": lambda c: c.scatter_update(_ROWS),
    "batch_scatter_update": lambda c: c.batch_scatter_update(_ROWS),
    "scatter_nd_add": lambda c: c.scatter_nd_add([[0]], np.float32([1])),
    "scatter_nd_sub": lambda c: c.scatter_nd_sub([[0]], np.float32([1])),
    "scatter_nd_update": lambda c: c.scatter_nd_update([[0]], np.float32([1])),
    "scatter_nd_min": lambda c: c.scatter_nd_min([[0]], np.float32([1])),
    "scatter_nd_max": lambda c: c.scatter_nd_max([[0]], np.float32([1])),
    "gather_nd": lambda c: c.gather_nd([[0]]),
    "get_shape": lambda c: c.get_shape(),
    "is_initialized": lambda c: c.is_initialized(),
    "ref": lambda c: c.ref().deref(),
    "assign": lambda c: c.assign(_component()),
    "assign_add": lambda c: c.assign_add(_component()),
    "assign_sub": lambda c: c.assign_sub(_component()),
    "read_value": lambda c: c.read_value(),
    "value": lambda c: c.value(),
    "numpy": lambda c: c.numpy(),
    "__add__": lambda c: c + 1,
    "__array__": lambda c: np.asarray(c),
    "__getitem__": lambda c: c[0],
    "__iter__": lambda c: list(c),
    "__len__": len,
    "__repr__": repr,
}
VARIABLE: Calls = DISTRIBUTED_VALUES | COMPONENT | {"sparse_read": lambda v: v.sparse_read([0])}
CLUSTER: Calls = {
    "close": lambda c: c.close(),
    "disown": lambda c: None,  # for the child of a fork, which inherits descriptors that its parent uses
    "expect_last_writes": lambda c: c.expect_last_writes(),
    "flush_telemetry": lambda c: c.flush_telemetry(1.0),
    "group": lambda c: c.group(c.devices[:1], label="inside"),
    "__enter__": lambda c: c.__enter__(),
    "__exit__": lambda c: c.__exit__(None, None, None),
    "__repr__": repr,
}
CONTEXT: Calls = {
    "all_reduce": lambda c: c.all_reduce("SUM", _component()),
    "all_gather": lambda c: c.all_gather(_component(), axis=0),
    "merge_call": lambda c: c.merge_call(_kernel_of_merge),
    "select": lambda c: c.select(True, 1, 2),
    "row_mask": lambda c: c.row_mask(_component()),
    "__repr__": repr,
}


def _with_path(use: Callable[[str], Any]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        return use(os.path.join(folder, "stored"))


def _save_and_load(dataset: Any, path: str) -> list[Any]:
    dataset.save(path)
    return list(dataset.load(path))


def _save_and_restore(iterator: Any, path: str) -> None:
    iterator.save(path)
    iterator.restore(path)


_D = wb.data.Dataset
_EVEN = _D.range(8).map(lambda x: x % 2)
DATA: Calls = {
    name: lambda d, made=made: list(made(d))
    for name, made in {
        "apply": lambda d: d.apply(lambda x: x),
        "as_numpy_iterator": lambda d: d.as_numpy_iterator(),
        "assert_cardinality": lambda d: d.assert_cardinality(8),
        "batch": lambda d: d.batch(2),
        "bucket_by_sequence_length": lambda d: d.batch(2).bucket_by_sequence_length(len, [3], [2, 2]),
        "cache": lambda d: d.cache(),
        "choose_from_datasets": lambda d: d.choose_from_datasets([d, d], _EVEN),
        "concatenate": lambda d: d.concatenate(d),
        "counter": lambda d: d.counter().take(2),
        "enumerate": lambda d: d.enumerate(),
        "filter": lambda d: d.filter(lambda x: x > 2),
        "flat_map": lambda d: d.flat_map(lambda x: _D.range(2)),
        "from_generator": lambda d: d.from_generator(lambda: iter([1, 2]), output_types=np.int64),
        "from_tensor_slices": lambda d: d.from_tensor_slices([1, 2]),
        "from_tensors": lambda d: d.from_tensors([1, 2]),
        "group_by_window": lambda d: d.group_by_window(lambda x: x % 2, lambda k, w: w.batch(2), 2),
        "ignore_errors": lambda d: d.ignore_errors(),
        "interleave": lambda d: d.interleave(lambda x: _D.range(2)),
        "list_files": lambda d: d.list_files("/etc/hostname"),
        "map": lambda d: d.map(lambda x: x + 1),
        "of_source": lambda d: d.of_source(d.source),
        "padded_batch": lambda d: d.padded_batch(2),
        "random": lambda d: d.random().take(2),
        "rebatch": lambda d: d.batch(2).rebatch(3),
        "rejection_resample": lambda d: d.rejection_resample(lambda x: x % 2, [0.5, 0.5]),
        "prefetch": lambda d: d.prefetch(2),
        "range": lambda d: d.range(2),
        "repeat": lambda d: d.repeat(2),
        "sample_from_datasets": lambda d: d.sample_from_datasets([d, d]),
        "scan": lambda d: d.scan(np.int64(0), lambda state, x: (state + x, state)),
        "shard": lambda d: d.shard(2, 0),
        "shuffle": lambda d: d.shuffle(8),
        "skip": lambda d: d.skip(1),
        "take": lambda d: d.take(1),
        "take_while": lambda d: d.take_while(lambda x: x < 2),
        "unbatch": lambda d: d.batch(2).unbatch(),
        "unique": lambda d: d.unique(),
        "unread": lambda d: d.unread(),
        "upstream": lambda d: d.batch(2).upstream(),
        "window": lambda d: d.window(2),
        "with_options": lambda d: d.with_options(wb.data.Options()),
        "with_source": lambda d: d.with_source(d.source, ()),
        "with_element_spec": lambda d: d.with_element_spec(d.element_spec),
        "with_stage": lambda d: d.with_stage(d.batch(2).stages[-1]),
        "zip": lambda d: d.zip((d, d)),
    }.items()
} | {
    "cardinality": lambda d: d.cardinality(),
    "load": lambda d: _with_path(lambda path: _save_and_load(d, path)),
    "save": lambda d: _with_path(d.save),
    "snapshot": lambda d: _with_path(lambda path: list(d.snapshot(path).repeat(2))),
    "first": lambda d: d.first(),
    "attempted": lambda d: list(d.attempted()),
    "explain": lambda d: d.explain(elements=1),
    "get_single_element": lambda d: d.take(1).get_single_element(),
    "map_batches": lambda d: d.map_batches(lambda x: x, 2),
    "next_pass": lambda d: d.next_pass(),
    "numbered_pass": lambda d: d.numbered_pass(0),
    "open": lambda d: list(d.open(d.next_pass())),
    "options": lambda d: d.options(),
    "ragged_batch": lambda d: d.ragged_batch(2),
    "sparse_batch": lambda d: d.sparse_batch(2, (3,)),
    "reduce": lambda d: d.reduce(np.int64(0), lambda total, x: total + x),
    "__len__": len,
    "__repr__": repr,
}
DATA_ITERATOR: Calls = {
    "get_next": lambda i: i.get_next(),
    "get_next_as_optional": lambda i: i.get_next_as_optional(),
    "position": lambda i: i.position(),
    "check": lambda i: i.check(i.position()),
    "go_to": lambda i: i.go_to(i.position()),
    "save": lambda i: _with_path(i.save),
    "restore": lambda i: _with_path(lambda path: _save_and_restore(i, path)),
    "__next__": lambda i: next(i),
}


def _kernel_of_merge(_: Any) -> int:
    return 1


def _opened_dump(folder: str) -> Any:
    own = f"{folder}/dump-{os.getpid()}-{get_ident()}"
    os.makedirs(own, exist_ok=True)
    with open(f"{own}/dump.json", "w", encoding="utf-8") as file:
        file.write('{"format": 1, "mode": "NO_TENSOR"}')
    return wb.open_dump(own)


# What `wb.NAME` refers to, given the strategy and a folder. Classes that only hold values have an entry, too.
PUBLIC: dict[str, Callable[[Any, str], Any]] = {
    "Checkpoint": lambda s, f: wb.Checkpoint(rate=0.1).save(f"{f}/checkpoint"),
    "CheckpointManager": lambda s, f: wb.CheckpointManager(wb.Checkpoint(), f"{f}/checkpoints", 1).save(),
    "DeviceSpec": lambda s, f: wb.DeviceSpec.from_string("CPU:0"),
    "IndexedSlices": lambda s, f: wb.IndexedSlices(_component(), np.arange(2), (4,)),
    "MirroredStrategy": lambda s, f: wb.MirroredStrategy(),
    "MultiWorkerMirroredStrategy": lambda s, f: wb.MultiWorkerMirroredStrategy(),
    "OneDeviceStrategy": lambda s, f: wb.OneDeviceStrategy("CPU:0"),
    "TPUStrategy": lambda s, f: wb.TPUStrategy(),
    "Variable": lambda s, f: wb.Variable(1.0, name="made_inside"),
    "collectives": lambda s, f: repr(wb.collectives(s)),
    "connect": lambda s, f: wb.connect(replicas=1),
    "current_cluster": lambda s, f: wb.current_cluster(),
    "dashboard": lambda s, f: wb.dashboard(),
    "dask_pages": lambda s, f: wb.dask_pages(),
    "device": lambda s, f: _entered(wb.device("CPU:0")),
    "devices": lambda s, f: repr(wb.devices()),
    "diagnose": lambda s, f: repr(wb.diagnose()),
    "explain_sharding": lambda s, f: repr(wb.explain_sharding(_DATASET, s)),
    "field_terms": lambda s, f: wb.field_terms(False),
    "function": lambda s, f: s.run(wb.function(_kernel)),
    "inspect": lambda s, f: repr(wb.inspect(wb.Variable(1.0))),
    "latest_checkpoint": lambda s, f: wb.latest_checkpoint(f),
    "layout": lambda s, f: wb.layout("overview"),
    "log": lambda s, f: repr(wb.log()),
    "open_dump": lambda s, f: _opened_dump(f),
    "open_run": lambda s, f: wb.open_run(wb.record(f"{f}/{get_ident()}-to-open.parquet").close()),
    "progress": lambda s, f: _progress(),
    "record": lambda s, f: wb.record(f"{f}/{get_ident()}.parquet").close(),
    "report": lambda s, f: wb.report(f + "/inside.html", wb.devices()),
    "run_cell": lambda s, f: wb.run_cell("1", s),
    "runs": lambda s, f: repr(wb.runs(f)),
    "overview": lambda s, f: repr(wb.overview()),
    "topology": lambda s, f: repr(wb.topology()),
    # Enums and namespaces, which cannot be called.
    **dict.fromkeys(("ReduceOp", "VariableAggregation", "VariableSynchronization", "Cluster"), lambda s, f: None),
    **dict.fromkeys(("compat", "data", "debugging", "distribute", "errors", "io", "nn", "testing"), lambda s, f: None),
}  # fmt: skip

OBJECTS: dict[str, tuple[type, Calls]] = {
    "strategy": (distribute.Strategy, STRATEGY),
    "extended": (distribute.StrategyExtended, EXTENDED),
    "ops": (distribute.CrossDeviceOps, CROSS_DEVICE_OPS),
    "dataset": (distribute.DistributedDataset, DATASET),
    "iterator": (distribute.DistributedIterator, ITERATOR),
    "variable": (wb.Variable, VARIABLE),
    "component": (VariableComponent, COMPONENT),
    "per_replica": (distribute.PerReplica, DISTRIBUTED_VALUES),
    "mirrored": (distribute.Mirrored, DISTRIBUTED_VALUES),
    "cluster": (Cluster, CLUSTER),
    "context": (distribute.ReplicaContext, CONTEXT),
    "data": (wb.data.Dataset, DATA),
    "data_iterator": (DatasetIterator, DATA_ITERATOR),
}
"""Name -> what it is in tests, and how each of its methods is called."""


def public(of: type) -> Iterator[str]:
    """Names of the methods, properties and other attributes that a class shows."""
    return (name for name in dir(of) if not name.startswith("_"))


def is_method(of: type, name: str) -> bool:
    """Whether an attribute of a class has to be called to do anything."""
    return callable(getattr(of, name)) and not isinstance(of.__dict__.get(name), property)
