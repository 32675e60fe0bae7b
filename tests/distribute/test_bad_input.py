"""What bad input gets: an error that says what, got, where and how to fix it, and nothing is lost by it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.data import Dataset
from workbench.distribute import PerReplica, get_replica_context
from workbench.errors import ClusterClosed

Attempt = Callable[[Any], object]


def _rank() -> int:
    return get_replica_context().replica_id_in_sync_group


def _unequal(*shapes: tuple[int, ...]) -> PerReplica:
    return PerReplica(tuple(np.ones(shape) for shape in shapes))


def _with_outer_variable(strategy: Any) -> object:
    outside = wb.Variable(1.0, name="outside")
    return strategy.run(lambda: outside + 1)


def _with_lock(strategy: Any) -> object:
    lock = threading.Lock()
    return strategy.run(lambda: lock.locked())


BAD: dict[str, tuple[Attempt, str]] = {
    "unknown device": (
        lambda s: wb.MirroredStrategy(["XPU:0"]),
        r"unknown part 'XPU:0'.* a device reads 'CPU:0'",
    ),
    "missing device": (
        lambda s: wb.MirroredStrategy(["CPU:0", "CPU:7"]),
        r"devices\[1\] is 'CPU:7'.*2 devices were asked for, and there are CPU:0 to CPU:1 .*wb\.connect\(replicas=8\)",
    ),
    "missing GPU": (lambda s: wb.OneDeviceStrategy("GPU:0"), r"1 device was asked for.*workbench doctor"),
    "more devices than there are": (
        lambda s: wb.MirroredStrategy([f"CPU:{index}" for index in range(4)]),
        r"4 devices were asked for.*wb\.connect\(replicas=4\)",
    ),
    "batch that does not divide": (
        lambda s: s.distribute_datasets_from_function(
            lambda context: Dataset.range(9).batch(context.get_per_replica_batch_size(9))
        ),
        r"global batch 9 is not divisible by 2 replicas; use 8 or 10",
    ),
    "no batch dimension": (
        lambda s: s.distribute_dataset(Dataset.range(4)),
        r"elements are scalars .*dataset\.batch\(global_batch_size\)",
    ),
    "no dataset": (lambda s: s.distribute_dataset([1]), r"got list; .*from_tensor_slices"),
    "wrong axis": (
        lambda s: s.reduce("SUM", _unequal((2, 3), (2, 3)), axis=5),
        r"axis 5 is out of range: replica 0 has float64\[2,3\] of rank 2; use an axis from 0 to 1",
    ),
    "wrong axis of the only one": (
        lambda s: s.reduce("SUM", _unequal((2,), (2,)), axis=1),
        r"axis 1 is out of range: replica 0 has float64\[2\] of rank 1; use axis=0",
    ),
    "text to reduce": (
        lambda s: s.reduce("SUM", s.run(lambda: "text"), axis=None),
        r"reduce needs numbers, got dtype object \(text or other Python objects\); convert them first",
    ),
    "scalars to gather": (
        lambda s: s.gather(s.run(lambda: np.float32(1)), axis=0),
        r"replica 0 has a scalar float32\[\]; give it one with x\[np\.newaxis\]",
    ),
    "shapes that differ": (
        lambda s: s.reduce("SUM", _unequal((2,), (3,)), axis=None),
        r"replica 0 has float64\[2\], replica 1 has float64\[3\]; name the dimension",
    ),
    "collectives that differ": (
        lambda s: s.run(lambda: get_replica_context().all_reduce("sum", [np.ones(2)] * (1 + _rank()))),
        r"\(test_bad_input\.py:\d+\).*they differ in dtype or shape, structure",
    ),
    "collectives of structures that differ": (
        lambda s: s.run(
            lambda: get_replica_context().all_reduce("sum", [np.ones(2)] if _rank() else {"w": np.ones(2)})
        ),
        r"they differ in structure \(\{'w': \*\} and \[\*\]\)\. Every replica",
    ),
    "texts to add up": (
        lambda s: s.run(lambda: get_replica_context().all_reduce("sum", np.array(["a"]))),
        r"expected an array of numbers, got one of dtype <U1: convert it to a numeric array first",
    ),
    "objects to add up": (
        lambda s: s.run(lambda: get_replica_context().all_reduce("sum", np.array([None, "a"]))),
        r"expected an array of numbers, got one of dtype object: convert it",
    ),
    "structures that differ": (
        lambda s: s.run(lambda: (1,) * (1 + _rank())),
        r"\(\*,\) on replica 0, \(\*, \*\) on replica 1; return the same",
    ),
    "cross-replica call on a replica": (
        lambda s: s.run(lambda: s.reduce("SUM", 1.0, axis=None)),
        r"strategy\.reduce was called inside a replica function.*all_reduce or all_gather",
    ),
    "run on a replica": (lambda s: s.run(lambda: s.run(_rank)), r"strategy\.run was called inside a replica"),
    "variable of no scope": (
        _with_outer_variable,
        r"'outside:0' was created outside .*with strategy\.scope\(\)",
    ),
    "function that does not pickle": (_with_lock, r"captures 'lock', a _thread\.lock.*Create it inside"),
    "a value of another strategy to reduce": (
        lambda s: s.reduce("SUM", PerReplica((1.0, 2.0, 3.0)), axis=None),
        r"a PerReplica with 3 components cannot be used by a strategy of 2 replicas; make it with",
    ),
    "a value of another strategy to gather": (
        lambda s: s.gather(PerReplica((np.ones(1),)), axis=0),
        r"a PerReplica with 1 component cannot be used by a strategy of 2 replicas",
    ),
    "CuPy without GPUs": (
        lambda s: wb.MirroredStrategy(backend="cupy"),
        r"backend='cupy' computes on NVIDIA GPUs, and CPU:0 is none; .*wb\.connect\(gpus=1\)",
    ),
    "arguments that are no tuple": (lambda s: s.run(_rank, args=3), r"got int; write args=\(value,\)"),
}
ONLY_BETWEEN_PROCESSES = {"variable of no scope", "function that does not pickle"}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_told_and_nothing_is_lost(strategy: Any, what: str) -> None:
    if what in ONLY_BETWEEN_PROCESSES and strategy.group.gang.shipping.codec.by_reference:
        pytest.skip("replicas that are threads share the objects of this process")
    with strategy.scope():
        v = wb.Variable([1.0, 2.0], aggregation="SUM")
    earlier = strategy.run(lambda: v + 1)
    attempt, text = BAD[what]
    with pytest.raises((TypeError, ValueError, RuntimeError, wb.errors.WorkbenchError), match=f"(?s){text}"):
        attempt(strategy)
    assert earlier.values[1].tolist() == [2, 3]
    strategy.run(lambda: v.assign_add(np.ones(2, np.float32)))
    assert v.numpy().tolist() == [3, 4]


def test_a_strategy_of_a_closed_cluster_says_so() -> None:
    with wb.connect(replicas=2, processes=False, replace=True):
        strategy = wb.MirroredStrategy()
        with strategy.scope():
            v = wb.Variable(1.0)
        value = strategy.run(lambda: v + 1)
    for use in (lambda: strategy.run(_rank), v.read_value, lambda: v.assign(2.0)):
        with pytest.raises(ClusterClosed, match=r"wb\.connect\(.*make the strategy again"):
            use()
    assert value.values == (2, 2)
    assert "stopped" in repr(strategy)
