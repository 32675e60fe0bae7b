"""Checkpoints of variables of compiled programs, on emulated TPU cores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import workbench as wb

pytest.importorskip("jax", reason="JAX is not installed: pip install -e '.[jax]'")


@pytest.fixture(scope="module")
def strategy() -> Iterator[wb.TPUStrategy]:
    with wb.connect(tpu=2, replace=True):
        yield wb.TPUStrategy()


@pytest.mark.parametrize("background", [False, True])
def test_variables_of_compiled_programs_come_back(
    tmp_path: Path, strategy: wb.TPUStrategy, background: bool
) -> None:
    with strategy.scope():
        w = wb.Variable(np.arange(6, dtype=np.float32), aggregation="MEAN")
        total = wb.Variable(np.float32(0), synchronization="ON_READ", aggregation="SUM")

    @wb.function
    def step() -> None:
        w.assign_add(np.ones(6, np.float32))
        total.assign_add(np.float32(1))

    strategy.run(step)
    strategy.run(step)
    checkpoint = wb.Checkpoint(w=w, total=total)
    path = checkpoint.save(tmp_path / "x", background=background)
    strategy.run(step)
    checkpoint.restore(path)
    assert [part.numpy()[0] for part in strategy.local_results(w)] == [2, 2]
    assert total.numpy() == 4

    strategy.run(step)
    assert w.numpy().tolist() == [3, 4, 5, 6, 7, 8]
    assert total.numpy() == 6

    plain = wb.Checkpoint(w=wb.Variable(np.zeros(6, np.float32)), total=wb.Variable(np.float32(0)))
    plain.restore(path)
    assert plain.w.numpy()[5] == 7
