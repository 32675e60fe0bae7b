"""Checks through a whole strategy: training, and errors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.gpu import programs
from tests.gpu.results import Row, held


def training(quick: bool) -> Iterator[Row]:
    """The same replica function on CPUs and on replicas that share the GPU, through a whole strategy."""
    import workbench as wb

    steps = 5 if quick else 30
    losses = {}
    for name, options in {"NumPy": {"replicas": 2, "gpus": 0}, "CuPy": {"gpu_replicas": 2}}.items():
        with wb.connect(**options):
            losses[name] = programs.train(wb, steps)
    gap = float(np.max(np.abs(np.subtract(losses["NumPy"], losses["CuPy"]))))
    fell = losses["CuPy"][-1] < losses["CuPy"][0]
    yield held("training, NumPy and CuPy", gap < 1e-4 and fell, f"losses differ by {gap:.1e}", "< 1e-4")


def errors(quick: bool) -> Iterator[Row]:
    """More memory than there is: the error names the replica and what is free."""
    import workbench as wb

    with wb.connect(gpu_replicas=1):
        strategy = wb.MirroredStrategy()
        try:
            strategy.run(programs.too_much)
        except MemoryError as error:
            text = str(error)
        else:
            text = ""
    fine = "replica 0" in text and "bytes were wanted" in text and "are free" in text
    yield held("out of memory is told", fine, text[:90])
