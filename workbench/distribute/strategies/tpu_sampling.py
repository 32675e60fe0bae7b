"""Samples the collectives of traced steps, the only way to see inside a compiled program."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.telemetry.records import SAMPLED, Signature

if TYPE_CHECKING:
    from workbench.backends.jax.operations import Operation
    from workbench.backends.jax.profile import Profile, SampledEvent
    from workbench.distribute.strategies.strategy import Strategy
    from workbench.runtime.replica.env import ReplicaEnv

_profiles: dict[int, Profile] = {}  # of this worker process, by group


@dataclass(frozen=True, slots=True)
class SampledCollective:
    """One collective of a compiled program, timed in a few sampled steps; other steps may differ.

    Attributes:
      operation: Its name in the compiled program, such as "psum.7".
      samples: Number of durations: steps times replicas.
      median_ns: Median duration, including waits for slower replicas.
      min_ns: The shortest duration: the time without waiting.
      max_ns: The longest duration.
    """

    operation: str
    samples: int
    median_ns: int
    min_ns: int
    max_ns: int

    def __str__(self) -> str:
        return (
            f"{self.operation}: median {self.median_ns / 1e3:.1f} µs, {self.min_ns / 1e3:.1f} to "
            f"{self.max_ns / 1e3:.1f} µs ({self.samples} samples)"
        )


def sample(
    strategy: Strategy,
    fn: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any] | None,
    steps: int,
) -> tuple[SampledCollective, ...]:
    """See `TPUStrategy.sample_collectives`."""
    strategy.local_results(strategy.run(fn, args, kwargs))  # compiles it before the profile begins
    strategy.run_internal(start)
    first = strategy.group.number
    try:
        for _ in range(steps):
            strategy.run(fn, args, kwargs)
        strategy.group.wait()
    finally:
        found = strategy.run_internal(stop)
    seen = [entry for events in found.values() for entry in events.entries]
    strategy.run_internal(note, (first, tuple(seen)))
    durations: dict[str, list[int]] = {}
    for entry in seen:
        durations.setdefault(entry.name, []).append(entry.end_ns - entry.start_ns)
    return tuple(
        SampledCollective(operation, len(times), int(statistics.median(times)), min(times), max(times))
        for operation, times in sorted(durations.items())
    )


@dataclass(frozen=True, slots=True)
class Seen:
    """One collective on one replica, in one sampled step.

    Attributes:
      rank: The replica.
      step: Number of the step among the sampled ones.
      seq: Number of the collective in the step, from 1, the same on all replicas; 0 is the step as a whole.
      name: Its name in the program.
      operation: Its kind, None if unknown from the program.
      start_ns, end_ns: Its start and end, by the clock of the replica's host.
    """

    rank: int
    step: int
    seq: int
    name: str
    operation: Operation | None
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Events:
    """The events in one replica's process, if the replica speaks for it."""

    entries: tuple[Seen, ...]


def start(env: ReplicaEnv) -> None:
    """Starts a profile in each process."""
    if _speaks(env):
        from workbench.backends.jax.profile import Profile

        _profiles[env.group_id] = Profile()


def stop(env: ReplicaEnv) -> Events:
    """Ends the profile in each process."""
    if not _speaks(env) or env.group_id not in _profiles:
        return Events(())
    found: list[SampledEvent] = _profiles.pop(env.group_id).stop()
    ranks = {d.index: rank for rank, d in enumerate(env.devices) if d.worker == env.device.worker}
    return Events(tuple(_seen([event for event in found if event.device in ranks], ranks, env.operations)))


def _seen(
    events: Sequence[SampledEvent], ranks: dict[int, int], operations: dict[str, Operation]
) -> Iterator[Seen]:
    """The events of a process, numbered so that the records of replicas can be joined."""
    begun: dict[int, int] = {}
    for event in events:
        begun[event.run] = min(event.start_ns, begun.get(event.run, event.start_ns))
    steps = {run: step for step, run in enumerate(sorted(begun, key=begun.__getitem__))}
    turns: Counter[tuple[int, int, str]] = Counter()  # an operation in a loop runs several times
    placed = []
    for event in sorted(events, key=lambda event: event.start_ns):
        turn = turns[event.device, event.run, event.operation]
        turns[event.device, event.run, event.operation] += 1
        placed.append(((event.operation, turn), event))
    # Independent operations may run in another order on each device, so names decide, not times.
    numbers = {key: seq for seq, key in enumerate(sorted({key for key, _ in placed}), start=1)}
    for key, event in placed:
        yield Seen(
            rank=ranks[event.device],
            step=steps[event.run],
            seq=numbers[key],
            name=event.operation,
            operation=operations.get(event.operation),
            start_ns=event.start_ns,
            end_ns=event.start_ns + event.duration_ns,
        )


def note(env: ReplicaEnv, first: int, seen: tuple[Seen, ...]) -> None:
    """Writes the events of this replica to its telemetry, marked as sampled.

    Args:
      env: The replica.
      first: Number of the first sampled step.
      seen: The events of all replicas.
    """
    ready: dict[tuple[int, int], int] = {}
    local = {rank for rank, device in enumerate(env.devices) if device.worker == env.device.worker}
    for each in seen:
        if each.rank in local:  # the clocks of other hosts differ from this one's
            ready[each.step, each.seq] = max(each.start_ns, ready.get((each.step, each.seq), 0))
    for each in seen:
        what = each.operation
        if each.rank == env.rank and what is not None:
            env.communicator.record(
                Signature(0, "", what.op, what.redop, what.dtype, SAMPLED, 0, "xla", site=each.name),
                first + each.step,
                each.seq,
                what.count,
                what.nbytes,
                each.start_ns,
                min(ready[each.step, each.seq], each.end_ns),
                each.end_ns,
            )


def _speaks(env: ReplicaEnv) -> bool:
    """Whether this is the first replica of its process."""
    return env.rank == min(r for r, device in enumerate(env.devices) if device.worker == env.device.worker)
