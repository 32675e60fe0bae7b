"""Checkpoints beside `dd` on the same disk, and what saving in the background costs steps.

Each write ends with fsync, `dd`'s too (`conv=fsync`); before each read the files are dropped from the page cache. Both
take turns, as a disk's speed changes from minute to minute.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

import workbench as wb
from tests.benchmarks.measure import Script

MIB = 256
TURNS = 5
STEPS = 3_000
STEPS_BETWEEN_SAVES = 1_000


def dd(*arguments: str) -> None:
    subprocess.run(["dd", "bs=8M", *arguments], check=True, capture_output=True)


def drop(files: Iterable[Path]) -> None:
    """Has the next read come from the disk."""
    for file in files:
        descriptor = os.open(file, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def rate(call: Callable[[], Any]) -> float:
    """MiB per second."""
    start = time.perf_counter()
    call()
    return MIB / (time.perf_counter() - start)


def throughput(script: Script, folder: Path, strategy: wb.MirroredStrategy) -> None:
    """Writes and reads 256 MiB of variables, in turns with `dd`."""
    if not script.wants("write read"):
        return
    values = np.random.default_rng(1)
    with strategy.scope():
        variables = [wb.Variable(values.random(MIB << 14)) for _ in range(8)]
    checkpoint = wb.Checkpoint(variables=variables)
    raw, path = folder / "raw", folder / "checkpoint"
    found: dict[str, list[float]] = {name: [] for name in ("write dd", "write", "read dd", "read")}
    for _ in range(max(3, int(TURNS * script.options.scale))):
        found["write dd"].append(
            rate(lambda: dd("if=/dev/zero", f"of={raw}", f"count={MIB // 8}", "conv=fsync"))
        )
        found["write"].append(rate(lambda: checkpoint.write(path)))
        drop([raw, *path.glob("*.safetensors")])
        found["read dd"].append(rate(lambda: dd(f"if={raw}", "of=/dev/null")))
        found["read"].append(rate(lambda: checkpoint.restore(path)))
    for what in ("write", "read"):
        for who, name in (("dd", f"{what} dd"), ("workbench", what)):
            with script.case(who, what, unit="MiB/s", scale=1.0) as case:
                case.samples = found[name]


def slow_down(script: Script, folder: Path, strategy: wb.MirroredStrategy) -> None:
    """Steps with saves in the background, two to three a second, and without: each pair side by side, in turns.

    A step takes 0.4 ms. What a machine does beside them changes 300 steps by 5 % and more, and hides what a save costs.
    """
    if not script.wants("background"):
        return
    with strategy.scope():
        w = wb.Variable(np.zeros(1 << 18, np.float32), aggregation="MEAN")
    manager = wb.CheckpointManager(wb.Checkpoint(w=w), folder / "managed", 2, background=True)
    gradient = np.ones(1 << 18, np.float32)

    @wb.function
    def step() -> None:
        w.assign_sub(gradient * np.float32(1e-6))

    def steps(save: bool) -> float:
        start = time.perf_counter()
        for number in range(STEPS):
            strategy.run(step)
            if save and number % STEPS_BETWEEN_SAVES == 0:
                manager.save()
        _ = w.numpy()
        seconds = time.perf_counter() - start
        manager.sync()
        return seconds

    steps(True)
    with script.case("workbench", "slow-down by saving in the background", unit="%", scale=1.0) as case:
        pairs = [(steps(False), steps(True)) for _ in range(max(3, int(TURNS * script.options.scale)))]
        case.samples = [100 * (saving / without - 1) for without, saving in pairs]


def main() -> None:
    """Measures throughput, then the cost of saving in the background."""
    script = Script("checkpoints", __doc__, folder="")
    with (
        tempfile.TemporaryDirectory(dir=script.options.folder or None) as folder,
        wb.connect(replicas=2),
    ):
        strategy = wb.MirroredStrategy()
        throughput(script, Path(folder), strategy)
        slow_down(script, Path(folder), strategy)


if __name__ == "__main__":
    main()
