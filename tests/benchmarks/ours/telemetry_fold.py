"""Times telemetry: one `Ring.write`, draining, and folding what 10,000 events per second make.

Folding is timed as a dashboard does it: ten times a second every replica's batch arrives and a snapshot is
taken. The goals: less than 1 µs per write, at most 10 % of a core for 10,000 events per second.
"""

from __future__ import annotations

import random
import time
import timeit
from collections.abc import Callable

from tests.benchmarks.measure import Script
from workbench.telemetry.feed.feed import Feed
from workbench.telemetry.recording.drain import Drain
from workbench.telemetry.recording.ring import Ring
from workbench.telemetry.records import Signature

EVENTS_PER_SECOND = 10_000
BATCHES_PER_SECOND = 10
SIZES = (4096, 1 << 20, 1 << 24)
OPS = ("all_reduce", "all_gather")
SIGNATURE = Signature(0, "g", "all_reduce", "sum", "float32", "direct", 1, "shm", "ok", "a.py:1")


def write_ns() -> float:
    """Cost of one `Ring.write` with its clock readings taken elsewhere, best of 30 rounds."""
    ring = Ring(4096, replica=0, host="a", device="cpu:0", run_id="run", size=2)
    number, write = ring.number(SIGNATURE), ring.write
    times = [10**15 + k for k in range(10_000)]

    def writes() -> None:
        for t in times:
            write(number, t, 0, 4, 16, t, t, t)

    def nothing() -> None:
        for _ in times:
            pass

    def best(function: Callable[[], None]) -> float:
        return min(timeit.repeat(function, number=1, repeat=30))

    return (best(writes) - best(nothing)) / len(times) * 1e9


def made_up_run(replicas: int, seconds: int) -> tuple[list[bytes], float]:
    """The batches of a run, by tenth of a second, and the CPU seconds that draining took."""
    rng = random.Random(0)
    rings = [
        Ring(4096, replica=r, host="ab"[r % 2], device=f"cpu:{r}", run_id="run", size=replicas)
        for r in range(replicas)
    ]
    drain = Drain()
    per_batch = EVENTS_PER_SECOND // BATCHES_PER_SECOND // replicas
    batches, drain_seconds, step = [], 0.0, 0
    for _ in range(seconds * BATCHES_PER_SECOND):
        for _ in range(per_batch):
            step += 1
            size, op = SIZES[step % len(SIZES)], OPS[step % len(OPS)]
            for ring in rings:
                t = step * 1_000_000 + rng.randrange(100_000)
                ends = step * 1_000_000 + 400_000
                number = ring.number(SIGNATURE._replace(op=op))
                ring.write(number, step, 0, size // 4, size, t, t, ends)
        begin = time.process_time()
        batches.append(drain.take([(ring, None) for ring in rings]))
        drain_seconds += time.process_time() - begin
    return batches, drain_seconds


def fold_seconds(batches: list[bytes]) -> tuple[float, int]:
    """CPU seconds to fold the run with a snapshot per tenth of a second, and the records folded."""
    feed = Feed()
    begin = time.process_time()
    for batch in batches:
        feed.ingest(batch)
        feed.snapshot()
    spent = time.process_time() - begin
    return spent, feed.snapshot().counters.records


def main() -> None:
    """Measures all figures."""
    script = Script("telemetry", __doc__, replicas=8, seconds=10)
    made_up_run(2, 1)  # imports Arrow before the clock starts
    batches, drain_seconds = made_up_run(script.options.replicas, script.options.seconds)
    spent, records = fold_seconds(batches)
    drains = len(batches)
    for what, unit, value in (
        ("one record", "ns", write_ns()),
        ("draining a batch", "µs", drain_seconds / drains * 1e6),
        ("folding 10,000 events/s", "% of a core", 100 * spent / records * EVENTS_PER_SECOND),
        ("size of an event", "bytes", sum(map(len, batches)) / records),
    ):
        with script.case("workbench", what, unit=unit, scale=1, replicas=1) as case:
            case.samples = [value]


if __name__ == "__main__":
    main()
