"""Many steps with a worker killed now and then: memory, descriptors, threads, shared memory and stores must stay flat.

The steps are spread evenly over the time; the last replica's process is killed every `--kill-seconds`. Each figure is
sampled once a second. It is flat if its median in the last third of the run is not higher than in the second third by
more than its allowance; the first third is left out, in which caches and histories fill. Exits with 1 if one is not.
"""

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil

import workbench as wb
from tests.benchmarks.measure import Script

MIB = 1 << 20
# How far the last third may exceed the first: for memory, a multiple of an allocator's granularity; otherwise almost
# nothing.
ALLOWANCE = {
    "memory": 8.0,
    "descriptors": 2.0,
    "threads": 1.0,
    "shared memory": 1.0,
    "values": 64.0,
    "objects": 8.0,
}
UNITS = {"memory": "MiB", "shared memory": "MiB"}
Samples = dict[tuple[str, str], list[float]]


def held_by_worker() -> int:
    """Runs in a worker: values that it keeps for handles of the driver."""
    from workbench.runtime.deploy.plugin import IN_PROCESS

    return sum(side._host.holds() for side in IN_PROCESS.values() if side._host is not None)


def shared_memory_mib(pid: int) -> float:
    """What a process uses of memory that it shares with others, files aside, in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("RssShmem:")[2].split()[0]) / 1024


def named_shared_memory_mib() -> float:
    """What stands in /dev/shm, in MiB; other programs make and remove segments meanwhile."""
    total = 0
    for entry in os.scandir("/dev/shm"):
        with contextlib.suppress(FileNotFoundError):
            total += entry.stat().st_size
    return total / MIB


def look(cluster: wb.Cluster, survivor: Any, samples: Samples) -> None:
    """Takes one sample of everything, of the driver and of the worker that is never killed."""
    for who, process in (("driver", psutil.Process()), ("worker", psutil.Process(survivor.pid))):
        samples[who, "memory"].append(process.memory_info().rss / MIB)
        samples[who, "descriptors"].append(process.num_fds())
        samples[who, "threads"].append(process.num_threads())
        samples[who, "shared memory"].append(shared_memory_mib(process.pid))
    held = cluster.client.run(held_by_worker, workers=[survivor.address])
    samples["worker", "values"].append(held[survivor.address])
    samples["driver", "objects"].append(len(cluster.gang.shipping.pickled))
    samples["/dev/shm", "shared memory"].append(named_shared_memory_mib())


@contextlib.contextmanager
def killing(cluster: wb.Cluster, every_seconds: float, kills: list[float]) -> Iterator[None]:
    """Kills the last worker again and again meanwhile."""
    done = threading.Event()

    def kill() -> None:
        while not done.wait(every_seconds):
            victim = list(cluster.gang.workers.values())[-1]
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim.pid, signal.SIGKILL)
                kills.append(time.monotonic())

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(10)


def soak(steps: int, seconds: float, kill_seconds: float) -> tuple[Samples, int, int]:
    """Runs the steps; returns what was sampled, the number of kills and of errors that they caused."""
    samples: Samples = defaultdict(list)
    kills: list[float] = []
    errors = 0
    with wb.connect(replicas=2) as cluster:
        strategy = wb.MirroredStrategy()
        with strategy.scope():
            weight = wb.Variable(np.zeros(25_000, np.float32))

        @wb.function
        def train(x: Any) -> Any:
            context = wb.distribute.get_replica_context()
            weight.assign_add(context.all_reduce("mean", np.full(25_000, x, np.float32)))
            return context.all_reduce("sum", np.ones(256, np.float32))

        survivor = next(iter(cluster.gang.workers.values()))
        started, done, sampled = time.monotonic(), 0, 0.0
        with killing(cluster, kill_seconds, kills):
            while done < steps:
                try:
                    for _ in range(50):
                        result = strategy.run(train, (1.0,))
                    total = strategy.local_results(result)[1][0]
                    assert total == 2, total
                    done += 50
                except wb.errors.ReplicaLost:
                    errors += 1
                if time.monotonic() > sampled + 1:
                    sampled = time.monotonic()
                    look(cluster, survivor, samples)
                ahead = started + seconds * done / steps - time.monotonic()
                if ahead > 0:
                    time.sleep(min(ahead, 1.0))
    return samples, len(kills), errors


def growth(values: list[float]) -> float:
    """Median of the last third minus median of the second third."""
    third = len(values) // 3
    return statistics.median(values[-third:]) - statistics.median(values[third:-third])


def main() -> int:
    """Soaks, prints slopes; returns 1 if something grew."""
    script = Script("soak", __doc__, steps=100_000, seconds=600.0, kill_seconds=30.0)
    options = script.options
    steps = max(1000, int(options.steps * options.scale))
    samples, kills, errors = soak(steps, options.seconds * options.scale, options.kill_seconds)
    print(
        f"{steps} steps, {kills} kills, {errors} errors from them, {len(samples['driver', 'memory'])} samples"
    )
    grown = []
    for (who, what), values in samples.items():
        more, unit = growth(values), UNITS.get(what, "count")
        per_100k = more * 3 * 100_000 / steps
        print(
            f"{who:9} {what:14} first {values[0]:10.1f} last {values[-1]:10.1f}   median "
            f"{statistics.median(values):10.1f}   growth {more:+8.2f}   slope {per_100k:+10.2f} {unit} per 100k steps"
        )
        if more > ALLOWANCE[what]:
            grown.append(f"{what} of the {who} grew by {more:.1f}")
        with script.case(
            f"workbench, {who}", f"{what} per 100,000 steps", unit=unit, scale=1, replicas=0
        ) as case:
            case.samples = [per_100k]
    if errors == 0 < kills:
        grown.append("no error told of the killed workers")
    print("\n".join(grown) or "flat")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
