"""Sampling the collectives of traced steps: the only way to see inside a compiled program."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.backends.jax_profile import Profile, SampledEvent
    from workbench.distribute.tpu import TPUStrategy
    from workbench.runtime.env import ReplicaEnv

_profiles: dict[int, Profile] = {}  # of this worker process, by group


@dataclass(frozen=True, slots=True)
class SampledCollective:
    """One collective of a compiled program, timed in a few sampled steps. Sampled: other steps may differ.

    Attributes:
      operation: Its name in the compiled program, such as "psum.7".
      samples: How many durations there are: steps times replicas.
      median_ns: Median duration, waiting for slower replicas included.
      min_ns: The shortest: what it takes without waiting.
      max_ns: The longest.
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
    strategy: TPUStrategy,
    fn: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any] | None,
    steps: int,
) -> tuple[SampledCollective, ...]:
    """See `TPUStrategy.sample_collectives`."""
    strategy.local_results(strategy.run(fn, args, kwargs))  # compiled before the profile begins
    strategy.run_internal(start)
    try:
        for _ in range(steps):
            strategy.run(fn, args, kwargs)
        strategy.group.wait()
    finally:
        found = strategy.run_internal(stop)
    durations: dict[str, list[int]] = {}
    for events in found.values():
        for operation, duration_ns in events.events:
            durations.setdefault(operation, []).append(duration_ns)
    return tuple(
        SampledCollective(operation, len(times), int(statistics.median(times)), min(times), max(times))
        for operation, times in sorted(durations.items())
    )


@dataclass(frozen=True, slots=True)
class Events:
    """What one replica's process has seen, if the replica speaks for it.

    Attributes:
      events: (operation, duration in ns) of all of its devices.
    """

    events: tuple[tuple[str, int], ...]


def start(env: ReplicaEnv) -> None:
    """Starts a profile in each process."""
    if _speaks(env):
        from workbench.backends.jax_profile import Profile

        _profiles[env.group_id] = Profile()


def stop(env: ReplicaEnv) -> Events:
    """Ends it."""
    if not _speaks(env) or env.group_id not in _profiles:
        return Events(())
    found: list[SampledEvent] = _profiles.pop(env.group_id).stop()
    return Events(tuple((event.operation, event.duration_ns) for event in found))


def _speaks(env: ReplicaEnv) -> bool:
    """Whether this is the first replica of its process."""
    return env.rank == min(r for r, device in enumerate(env.devices) if device.worker == env.device.worker)
