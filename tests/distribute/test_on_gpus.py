"""Strategies, variables and views over arrays on GPUs, with a made-up CuPy that is as strict as the real one."""

from __future__ import annotations

import functools
import gc
import inspect
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import workbench as wb
from tests.communicators.simulated_gpu import SimulatedGpus
from tests.distribute import made_up_cupy
from tests.gpu import programs
from workbench.backends import cupy as gpu
from workbench.backends import cupy_contents
from workbench.backends.accelerator import Accelerator
from workbench.debugging import followed_lines
from workbench.errors import BackendUnavailable
from workbench.runtime.comm.failure_report import is_users
from workbench.runtime.process import gpus


@pytest.fixture(scope="module")
def strategy() -> Iterator[wb.MirroredStrategy]:
    module, accelerator = made_up_cupy.Module(), made_up_cupy.Accelerator()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        patch.setitem(sys.modules, "cupy", module)
        patch.setattr(gpu, "namespace", functools.lru_cache(lambda: module))
        patch.setattr(gpu, "accelerator", accelerator)
        patch.setattr(
            followed_lines, "is_users", lambda name: name != made_up_cupy.__file__ and is_users(name)
        )
        patch.setattr(gpus, "_driver_count", lambda: 1)
        patch.setattr(gpus, "use", lambda ordinal: None)
        with wb.connect(gpu_replicas=2, processes=False):
            yield wb.MirroredStrategy()


ONLY_FOR_NCCL = {"divide", "ordered", "unordered", "stream_pointer", "pointer"}


@pytest.mark.parametrize(
    ("stand_in", "lacks"),
    [(gpu.CupyAccelerator, set()), (SimulatedGpus, set()), (made_up_cupy.Accelerator, ONLY_FOR_NCCL)],
)
def test_each_stand_in_for_a_gpu_library_has_the_methods_of_all(stand_in: type, lacks: set[str]) -> None:
    wanted = {
        name: value
        for name, value in vars(Accelerator).items()
        if inspect.isfunction(value) and name[0] != "_"
    }
    found = {name for name in wanted if hasattr(stand_in, name)}

    assert set(wanted) - found == lacks
    for name in found:
        have, want = (
            list(inspect.signature(each).parameters) for each in (getattr(stand_in, name), wanted[name])
        )
        assert have == want, name


def test_all_gpus_are_taken_by_default(strategy: wb.MirroredStrategy) -> None:
    assert [device.short for device in strategy.devices] == ["GPU:0", "GPU:1"]
    assert "2×gpu" in repr(strategy)


def test_xp_is_cupy(strategy: wb.MirroredStrategy) -> None:
    def fn() -> str:
        xp = wb.distribute.get_replica_context().xp
        return type(xp.zeros(3)).__module__

    assert strategy.local_results(strategy.run(fn)) == ("cupy", "cupy")


def test_arguments_are_on_the_gpu(strategy: wb.MirroredStrategy) -> None:
    batches = strategy.distribute_dataset(
        wb.data.Dataset.from_tensor_slices(
            {"x": np.ones((4, 3), np.float32), "name": ["a", "b", "c", "d"]}
        ).batch(4)
    )

    def fn(batch: Any, scale: Any, count: int) -> Any:
        xp = wb.distribute.get_replica_context().xp
        kinds = [type(part).__module__ for part in (batch["x"], scale, batch["name"])]
        return kinds, xp.matmul(batch["x"], scale) * count

    for batch in batches:
        kinds, product = strategy.run(fn, (batch, np.full((3, 1), 2.0, np.float32), 5))
        assert [strategy.local_results(kind)[1] for kind in kinds] == ["cupy", "cupy", "numpy"]
        np.testing.assert_array_equal(strategy.gather(product, axis=0), np.full((4, 1), 30.0))


def test_the_copy_of_a_distributed_value_lives_for_the_step_that_takes_it(
    strategy: wb.MirroredStrategy, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies: list[Any] = []
    asarray = made_up_cupy.Module.asarray

    def seen(self: Any, x: Any, dtype: Any = None) -> Any:
        made = asarray(self, x, dtype)
        copies.append(weakref.ref(made))
        return made

    monkeypatch.setattr(made_up_cupy.Module, "asarray", seen)
    ahead = [
        strategy.distribute_values_from_function(lambda context, number=number: np.full(3, float(number)))
        for number in range(4)
    ]
    strategy.run(lambda: None)
    assert not copies  # no step has taken one

    for number, value in enumerate(ahead):
        found = strategy.run(lambda x: (type(x).__module__, float(x.sum())), (value,))
        assert [strategy.local_results(part)[1] for part in found] == ["cupy", 3.0 * number]
    strategy.run(lambda: None)
    gc.collect()

    assert len(copies) == 8  # four values for two replicas
    assert not any(copy() is not None for copy in copies)


def test_a_step_that_changes_its_arguments_in_place_changes_no_other_step_and_no_value(
    strategy: wb.MirroredStrategy,
) -> None:
    value = strategy.distribute_values_from_function(lambda context: np.zeros(3))

    def fn(x: Any) -> float:
        x[:] = x + 1
        return float(x.sum())

    sums = [strategy.local_results(strategy.run(fn, (value,))) for _ in range(3)]

    assert sums == [(3.0, 3.0)] * 3
    assert [part.tolist() for part in strategy.local_results(value)] == [[0.0, 0.0, 0.0]] * 2


def test_replicas_and_the_notebook_agree_about_a_value_that_the_notebook_changes(
    strategy: wb.MirroredStrategy,
) -> None:
    arrays = [np.zeros(3), np.zeros(3)]
    value = strategy.distribute_values_from_function(lambda context: arrays[context.replica_id_in_sync_group])

    for content in (1.0, 9.0):
        for each in arrays:
            each[:] = content
        found = strategy.local_results(strategy.run(lambda x: x.tolist(), (value,)))
        assert list(found) == [part.tolist() for part in strategy.local_results(value)]


def test_a_change_of_a_variable_on_the_gpu_is_not_copied_first(
    strategy: wb.MirroredStrategy, monkeypatch: pytest.MonkeyPatch
) -> None:
    with strategy.scope():
        variable = wb.Variable(np.ones(3, np.float32), aggregation=wb.VariableAggregation.NONE)

    def fn() -> None:
        variable.assign_sub(wb.distribute.get_replica_context().xp.ones(3, np.float32))

    with monkeypatch.context() as patch:
        patch.setattr(made_up_cupy.Module, "array", None)
        strategy.run(fn)

    assert variable.numpy().tolist() == [0.0, 0.0, 0.0]


def test_numpy_is_refused_a_variable_with_the_ways_that_there_are(strategy: wb.MirroredStrategy) -> None:
    with strategy.scope():
        variable = wb.Variable(np.ones(3, np.float32))

    def fn() -> str:
        with pytest.raises(TypeError, match=r"ctx\.xp\.asarray\(value\) and value\.read_value\(\) leave"):
            np.asarray(variable)
        return str(variable.numpy())

    assert strategy.local_results(strategy.run(fn)) == ("[1. 1. 1.]", "[1. 1. 1.]")


def test_nan_is_put_into_arrays_on_the_gpu(strategy: wb.MirroredStrategy) -> None:
    def fn(x: Any) -> Any:
        return type(x).__module__, x.sum()

    of, sums = strategy.run(wb.testing.inject(fn, wb.testing.NaNInput(1)), (np.ones((2, 2), np.float32),))

    assert strategy.local_results(of) == ("cupy", "cupy")
    assert [str(float(each)) for each in strategy.local_results(sums)] == ["4.0", "nan"]


@pytest.mark.parametrize(
    ("dtype", "where"),
    [
        ("bfloat16", "cupy"),
        ("float16", "cupy"),
        (">f4", "cupy"),
        ("bool", "cupy"),
        ("float8_e4m3fn", "numpy"),  # CuPy supports none of these, whatever their kind
        ("float8_e5m2", "numpy"),
        ("longdouble", "numpy"),
        ("datetime64[s]", "numpy"),
    ],
)
def test_arguments_of_cupys_dtypes_are_on_the_gpu(
    strategy: wb.MirroredStrategy, dtype: str, where: str
) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    array = np.zeros(3).astype(kind)

    found = strategy.run(lambda x: (type(x).__module__.split(".")[0], x.dtype.name), args=(array,))

    assert [values.values[0] for values in found] == [where, kind.name]


def test_values_in_the_notebook_are_numpy_arrays(strategy: wb.MirroredStrategy) -> None:
    def fn() -> Any:
        ctx = wb.distribute.get_replica_context()
        return ctx.xp.arange(3) + ctx.replica_id_in_sync_group

    result = strategy.run(fn)
    assert [type(part) for part in strategy.local_results(result)] == [np.ndarray] * 2
    np.testing.assert_array_equal(strategy.reduce("SUM", result, axis=None), [1, 3, 5])
    np.testing.assert_array_equal(strategy.gather(result, axis=0), [0, 1, 2, 1, 2, 3])


def test_variables_live_on_the_gpu(strategy: wb.MirroredStrategy) -> None:
    with strategy.scope():
        w = wb.Variable(np.arange(4, dtype=np.float32), name="w")

    def fn() -> Any:
        ctx = wb.distribute.get_replica_context()
        where = type(w.read_value()).__module__
        w.assign_add(ctx.all_reduce("sum", ctx.xp.ones(4, np.float32)))
        w.assign_sub(ctx.all_reduce("mean", w * 0.5))
        return where

    assert strategy.local_results(strategy.run(fn)) == ("cupy", "cupy")
    np.testing.assert_array_equal(w.numpy(), (np.arange(4) + 2) * 0.5)
    w.assign(np.zeros(4, np.float32))
    np.testing.assert_array_equal(w.numpy(), np.zeros(4))


def test_a_step_that_fails_leaves_variables_as_they_were(strategy: wb.MirroredStrategy) -> None:
    with strategy.scope():
        w = wb.Variable(np.ones(2, np.float32))

    def fn() -> None:
        w.assign_add(wb.distribute.get_replica_context().xp.ones(2, np.float32))
        raise KeyError("broken")

    with pytest.raises(KeyError):
        strategy.run(fn)
    np.testing.assert_array_equal(w.numpy(), np.ones(2))


def test_collectives_of_structures(strategy: wb.MirroredStrategy) -> None:
    def fn() -> Any:
        ctx = wb.distribute.get_replica_context()
        mine = ctx.xp.full((2, 2), ctx.replica_id_in_sync_group + 1.0)
        both = ctx.all_reduce("sum", {"gpu": mine, "host": np.ones(3)})
        return both["gpu"], both["host"], ctx.all_gather(mine, axis=0)

    on_gpu, on_host, gathered = strategy.run(fn)
    np.testing.assert_array_equal(on_gpu.values[0], np.full((2, 2), 3.0))
    np.testing.assert_array_equal(on_host.values[1], np.full(3, 2.0))
    assert gathered.values[0].shape == (4, 2)


def test_inspect_shows_what_is_on_the_gpu(
    strategy: wb.MirroredStrategy, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workbench.backends import summary as on_the_host

    asked: list[Any] = []

    def summary(x: Any) -> Any:  # in place of the kernel
        asked.append(x)
        return on_the_host.summary(gpu.to_host(x))

    monkeypatch.setattr(cupy_contents, "summary", summary)
    with strategy.scope():
        w = wb.Variable(np.full(4, 7.0, np.float32), name="w")

    text = str(wb.inspect(w))
    assert "in sync" in text
    assert asked


def test_nccl_is_refused_for_replicas_that_share_a_gpu(strategy: wb.MirroredStrategy) -> None:
    by_nccl = wb.MirroredStrategy(cross_device_ops=wb.distribute.NcclAllReduce())

    def fn() -> Any:
        ctx = wb.distribute.get_replica_context()
        return ctx.all_reduce("sum", ctx.xp.ones(2))

    with pytest.raises(BackendUnavailable, match="share one GPU"):
        by_nccl.run(fn)


def test_training_gives_the_losses_of_cpus(strategy: wb.MirroredStrategy) -> None:
    random = np.random.default_rng(0)
    x = random.standard_normal((64, 8)).astype(np.float32)
    y = (x @ random.standard_normal((8, 1))).astype(np.float32)
    w, expected = np.zeros((8, 1), np.float32), []
    for _ in range(4):
        error = x @ w - y
        expected.append(float((error**2).mean()))
        w -= 0.05 * 2 * x.T @ error / len(x)

    np.testing.assert_allclose(programs.train(wb, 4), expected, rtol=1e-5)


def test_what_is_not_finite_on_a_gpu_is_found_there(strategy: wb.MirroredStrategy) -> None:
    wb.debugging.enable_check_numerics()
    try:
        assert strategy.run(lambda x: x * 2, args=(np.ones(2, np.float32),)) is not None
        with pytest.raises(
            wb.errors.NotFinite, match=r"returned is not finite on replica .*: 1 NaN and 0 infinite of 2"
        ):
            strategy.run(lambda x: x, args=(np.array([1, np.nan], np.float32),))
    finally:
        wb.debugging.disable_check_numerics()


def test_a_dump_has_what_collectives_and_assignments_of_gpu_arrays_gave(
    strategy: wb.MirroredStrategy, tmp_path: Path
) -> None:
    with strategy.scope():
        w = wb.Variable(np.zeros(2, np.float32), name="w")

    def step(x: Any) -> None:
        total = wb.distribute.get_replica_context().all_reduce("SUM", x)  # type: ignore[union-attr]
        w.assign_add(total)

    wb.debugging.experimental.enable_dump_debug_info(tmp_path / "d", "FULL_TENSOR")
    try:
        strategy.run(step, args=(np.array([1.0, np.inf], np.float32),))
        strategy.local_results(w)
    finally:
        wb.debugging.experimental.disable_dump_debug_info()

    dump = wb.open_dump(tmp_path / "d")
    rows = dump.select(replica=1)
    assert [(row["op"], row["name"], row["bad"]) for row in rows] == [
        ("all_reduce", "", True),
        ("assign_add", "w:0", True),
    ]
    assert [dump.array(row).tolist() for row in rows] == [[2.0, np.inf]] * 2  # type: ignore[union-attr]
