"""Dumps of compiled functions: what each operation gave on each replica, with its line and step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import workbench as wb
from tests.tpu.conftest import by_replica, ids
from workbench.errors import NotFinite

enable = wb.debugging.experimental.enable_dump_debug_info
disable = wb.debugging.experimental.disable_dump_debug_info


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    yield
    wb.debugging.experimental.disable_dump_debug_info()


def _step(x: Any) -> Any:
    logged = jnp.log(x + 1)
    total = wb.distribute.get_replica_context().all_reduce("SUM", logged)  # type: ignore[union-attr]
    return total * 2


def test_operations_come_with_line_replica_step_and_elements(spread: Any, tmp_path: Path) -> None:
    enable(tmp_path / "d", "FULL_TENSOR")
    expected = 2 * np.log1p(np.arange(4)).sum()
    for _ in range(2):
        found = spread.local_results(spread.run(_step, args=(ids(spread),)))
        np.testing.assert_allclose(found, [expected] * 4, rtol=1e-6)
    disable()

    dump = wb.open_dump(tmp_path / "d")
    first, second = dump.steps
    assert second == first + 1
    for replica in range(4):
        rows = dump.select(replica=replica, step=second)
        ops = [row["op"] for row in rows]
        assert [op for op in ops if op in ("add", "log", "all_reduce", "mul")] == [
            "add",
            "log",
            "all_reduce",
            "mul",
        ]
        (logged,) = (row for row in rows if row["op"] == "log")
        assert logged["line"].startswith("test_dumps.py:")
        assert logged["line"].endswith(" in _step")
        np.testing.assert_allclose(dump.array(logged), np.log1p(replica), rtol=1e-6)
    assert any("def _step" in text for text in dump.sources.values())


def test_assignments_name_their_variable(strategy: Any, tmp_path: Path) -> None:
    with strategy.scope():
        w = wb.Variable(np.float32(1.0), name="w", aggregation="MEAN")

    @wb.function
    def step(x: Any) -> Any:
        w.assign_add(x)
        return w.read_value()

    strategy.local_results(strategy.run(step, args=(ids(strategy),)))
    enable(tmp_path / "d", "SHAPE")
    strategy.local_results(strategy.run(step, args=(ids(strategy),)))
    disable()
    strategy.local_results(strategy.run(step, args=(ids(strategy),)))

    dump = wb.open_dump(tmp_path / "d")
    (row,) = dump.select(op="assign_add", replica=1)
    assert (row["name"], row["dtype"], row["shape"], row["tensor"]) == ("w:0", "float32", [], None)
    assert len(dump.steps) == 1
    assert float(w) == 1.0 + 3 * 1.5


def test_gradients_and_compiled_parts_are_looked_into(strategy: Any, tmp_path: Path) -> None:
    @jax.jit
    def inner(x: Any) -> Any:
        return jnp.sin(x) * x

    enable(tmp_path / "d", "FULL_HEALTH", op_regex="^(sin|cos)$")
    strategy.local_results(strategy.run(lambda x: jax.grad(inner)(x), args=(ids(strategy),)))
    disable()

    rows = wb.open_dump(tmp_path / "d").select(replica=0)
    assert {row["op"] for row in rows} == {"sin", "cos"}
    assert all(row["line"].endswith(" in inner") for row in rows)
    assert {row["zeros"] for row in rows if row["op"] == "sin"} == {1}


def test_a_checked_step_that_fails_is_dumped(strategy: Any, tmp_path: Path) -> None:
    enable(tmp_path / "d", "CONCISE_HEALTH")
    wb.debugging.enable_check_numerics()
    try:
        with pytest.raises(NotFinite, match="log makes a NaN or an infinity on replica 2"):
            strategy.local_results(
                strategy.run(_step, args=(by_replica(strategy, *np.float32([0, 1, -1, 2])),))
            )
    finally:
        wb.debugging.disable_check_numerics()
    disable()

    dump = wb.open_dump(tmp_path / "d")
    assert [dump.select(op="log", replica=replica)[0]["negative_infinities"] for replica in range(4)] == [
        0,
        0,
        1,
        0,
    ]


def test_filters_by_dtype_and_the_newest_operations_hold(strategy: Any, tmp_path: Path) -> None:
    def step(x: Any) -> Any:
        return (x.astype(jnp.int32) + 1) * 2

    enable(tmp_path / "d", "FULL_NUMERICS", circular_buffer_size=8, tensor_dtypes=["int32"])
    for _ in range(3):
        strategy.local_results(strategy.run(step, args=(ids(strategy),)))
    disable()

    dump = wb.open_dump(tmp_path / "d")
    assert len(dump) == 8
    assert {row["dtype"] for row in dump.select()} == {"int32"}
    assert [row["max"] for row in dump.select(op="mul")] == [4.0, 6.0, 8.0]
