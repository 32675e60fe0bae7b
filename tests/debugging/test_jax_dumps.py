"""Dumps of operations of JAX that run at once, in replica functions and in datasets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.errors import NotFinite

jax = pytest.importorskip("jax", reason="JAX is not installed: pip install -e '.[jax]'")
jnp: Any = jax.numpy
enable = wb.debugging.experimental.enable_dump_debug_info
disable = wb.debugging.experimental.disable_dump_debug_info


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    yield
    wb.debugging.experimental.disable_dump_debug_info()


@pytest.fixture(scope="module")
def strategy() -> Iterator[wb.MirroredStrategy]:
    with wb.connect(replicas=2, processes=False, replace=True):
        yield wb.MirroredStrategy(backend="jax")


def _values() -> wb.distribute.PerReplica:
    return wb.distribute.PerReplica([jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])])


def test_operations_come_with_line_replica_and_elements(
    strategy: wb.MirroredStrategy, tmp_path: Path
) -> None:
    def step(x: Any) -> Any:
        logged = jnp.log(x * 2)
        mean = wb.distribute.get_replica_context().all_reduce("MEAN", logged)  # type: ignore[union-attr]
        return logged - mean if float(logged[0]) < 1 else mean

    with strategy.scope():
        w = wb.Variable(jnp.zeros(2), name="w")
    expected = [part.tolist() for part in strategy.local_results(strategy.run(step, args=(_values(),)))]
    enable(tmp_path / "d", "FULL_TENSOR")
    found = strategy.local_results(strategy.run(step, args=(_values(),)))
    strategy.run(lambda x: w.assign_add(x), args=(jnp.ones(2),))
    disable()

    assert [part.tolist() for part in found] == expected
    dump = wb.open_dump(tmp_path / "d")
    ops = [row["op"] for row in dump.select(replica=0, step=dump.steps[0])]
    assert [op for op in ops if op in ("multiply", "log", "all_reduce", "subtract")] == [
        "multiply",
        "log",
        "all_reduce",
        "subtract",
    ]
    (logged,) = dump.select(replica=1, op="log")
    assert logged["line"].startswith("test_jax_dumps.py:")
    assert logged["line"].endswith(" in step")
    np.testing.assert_allclose(dump.array(logged), np.log([6.0, 8.0]), rtol=1e-6)
    (assigned,) = dump.select(replica=0, step=dump.steps[1])  # and not what is computed on its behalf
    assert (assigned["op"], assigned["name"]) == ("assign_add", "w:0")


def test_compiled_functions_of_the_users_are_looked_into(
    strategy: wb.MirroredStrategy, tmp_path: Path
) -> None:
    @jax.jit
    def inner(x: Any) -> Any:
        return jnp.sin(x) + 1

    @jax.custom_vjp
    def own_derivative(x: Any) -> Any:
        return jnp.tanh(x)

    own_derivative.defvjp(lambda x: (jnp.tanh(x), x), lambda x, g: (g * jnp.cosh(x),))

    def step(x: Any) -> Any:
        own = own_derivative(x), jax.grad(lambda y: own_derivative(y).sum())(x)
        return own, inner(x), jax.grad(lambda y: inner(y).sum())(x), jax.nn.relu(x), jax.vmap(jnp.dot)(x, x)

    expected = strategy.local_results(strategy.run(step, args=(_values(),)))
    enable(tmp_path / "d", "SHAPE")
    found = strategy.local_results(strategy.run(step, args=(_values(),)))
    disable()

    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other)
    rows = wb.open_dump(tmp_path / "d").select(replica=0)
    (sine, *_) = (row for row in rows if row["op"] == "sin")
    assert sine["line"].endswith(" in inner")
    assert {"cos", "cosh", "dot", "relu", "tanh"} <= {row["op"] for row in rows}


def test_a_function_of_a_dataset_is_dumped_and_nothing_after_it(tmp_path: Path) -> None:
    enable(tmp_path / "d")
    rows = wb.data.Dataset.from_tensor_slices(np.ones((3, 2), np.float32))
    found = list(rows.map(lambda row: jnp.exp(jnp.asarray(row))))
    jnp.exp(jnp.ones(2))
    disable()

    assert len(found) == 3
    assert [row["op"] for row in wb.open_dump(tmp_path / "d").select(op="exp")] == ["exp"] * 3


def test_an_operation_that_makes_a_nan_is_named_while_it_is_dumped(
    strategy: wb.MirroredStrategy, tmp_path: Path
) -> None:
    @jax.jit
    def inner(x: Any) -> Any:
        return jnp.log(x - 5)

    enable(tmp_path / "d", "CURT_HEALTH")
    wb.debugging.enable_check_numerics()
    try:
        for step in (lambda x: jnp.log(x - 5), inner):
            with pytest.raises(
                NotFinite, match=r"JAX: invalid value \(nan\) encountered in .* on replica \d at step"
            ):
                strategy.run(lambda x, step=step: step(x) + 1, args=(_values(),))
    finally:
        wb.debugging.disable_check_numerics()
    disable()
    assert {"subtract", "sub"} <= {row["op"] for row in wb.open_dump(tmp_path / "d").select()}
