"""Healthy runs on real clusters, of which none may be called ill: `python -m tests.ui.healthy_runs 200`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from typing import Any

import numpy as np

import workbench as wb
from workbench.telemetry.verdicts import Verdict, verdicts

_STEPS = 60
_TRUE = ("good", "sharing")
"""What may be said of a healthy run: where replicas have too few cores, that is so."""
_SHAPES = (
    {"replicas": 2, "processes": False},
    {"replicas": 2},
    {"replicas": 4, "processes": False},
    {"replicas": 3},
)


def healthy_run(number: int) -> list[Verdict]:
    """What is wrongly said of a run in which nothing is wrong: of the strategy's steps, its input and its variables.

    Args:
      number: The number of the run; it decides how many replicas there are, where, and what they compute.
    """
    rng = np.random.default_rng(number)
    size = int(rng.integers(20, 200))
    with wb.connect(**_SHAPES[number % len(_SHAPES)]) as cluster:  # type: ignore[arg-type]
        strategy = wb.MirroredStrategy()
        with strategy.scope():
            weights = wb.Variable(rng.normal(size=(size, 4)), name="weights")

        def step(x: np.ndarray) -> Any:
            context: Any = wb.distribute.get_replica_context()
            gradient = x.T @ (x @ weights.value() - 1.0) / len(x)
            gradient = context.all_reduce("mean", gradient)
            weights.assign_sub(0.01 * gradient)
            return float(np.square(gradient).mean())

        rows = rng.normal(size=(16 * _STEPS, size))
        dataset = wb.data.Dataset.from_tensor_slices(rows).batch(16)
        for batch in strategy.experimental_distribute_dataset(dataset):
            strategy.run(step, args=(batch,))
        wb.inspect(weights)
        cluster.flush_telemetry()
        return [found for found in verdicts(cluster.feed.snapshot()) if found.code not in _TRUE]


def main() -> int:
    """Runs them, and prints what was said wrongly; gives the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.ui.healthy_runs",
        description="Runs healthy clusters, and prints every verdict other than a good one.",
    )
    parser.add_argument("runs", nargs="?", type=int, default=200, help="how many; default: %(default)s")
    runs = parser.parse_args().runs
    wrong: Counter[str] = Counter()
    for number in range(runs):
        for found in healthy_run(number):
            wrong[found.code] += 1
            print(f"run {number}: {found.sentence} ({found.evidence})", flush=True)
    print(f"{runs} healthy runs, {sum(wrong.values())} false verdicts {dict(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
