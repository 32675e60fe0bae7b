"""A training that must give the same bits whatever happens to the workers, and clusters to break.

Replicas tell where they are through files; a test that waits for one looks until it is there. Times are only bounds.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.until import until
from workbench import runtime
from workbench.communicators import Reduction
from workbench.runtime import Cluster, Group
from workbench.runtime.process.process_state import process_state
from workbench.runtime.replica.env import ReplicaEnv

STALL_SECONDS = 3.0
"""Silence after which the clusters here give up a worker."""

PATIENCE_SECONDS = 30.0
"""How long to wait for what must happen; a breach is a hang."""

SIZE = 300_000
"""Weights: so many that a collective takes several rounds, in all of which a replica may die."""

# Any rule makes the fault points live, and tests add rules to running workers (`Training.arm`).
ARMED = {"WB_FAULTS": '[{"point": "never", "action": "raise"}]'}


@contextlib.contextmanager
def no_hang() -> Iterator[None]:
    """Checks that the body ends in time; how fast it is, `python -m tests.benchmarks --suite failure` measures."""
    start = time.monotonic()
    yield
    assert time.monotonic() - start < PATIENCE_SECONDS, "hang"


def lost_together(*_: Any) -> None:
    """A step in which all replicas are lost at once: what is lost before a step is told in other words."""
    context = wb.distribute.get_replica_context()
    pids = context.all_gather(np.array([os.getpid()]), axis=0).tolist()
    if context.replica_id_in_sync_group == 0:
        for pid in reversed(pids):  # its own last
            os.kill(pid, signal.SIGKILL)
    context.all_gather(np.zeros(1), axis=0)  # waits for that


def gone(pid: int) -> bool:
    """Whether a process has ended."""
    return process_state(pid) in ("", "Z")


@contextlib.contextmanager
def meanwhile(action: Callable[[], None]) -> Iterator[None]:
    """Runs `action` in another thread while the body runs."""
    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            action()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=guarded, name="fault-injection")
    thread.start()
    try:
        yield
    finally:
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive(), "hang: the fault could not be injected"
    assert not failures, failures


class Training:
    """Steps whose results depend on all earlier ones, on a group of its own."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.group: Group = cluster.group(cluster.devices, label="Training")
        self.group.on_recover(self._seed)
        self.recovered: list[tuple[list[int], list[int]]] = []

    def run(self, program: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Runs a program as `Strategy.run` does."""
        return self.group.run(self.group.prepare(program, user_function=program), args, **options)

    def step(self, number: int, before: Callable[[ReplicaEnv], None] | None = None) -> list[bytes]:
        """One step of training; `before` is called by each replica before it communicates."""

        def program(env: ReplicaEnv) -> Any:
            weights = env.store.get("weights", np.zeros(SIZE, np.float32))
            noise = np.random.default_rng(1000 * env.rank + number).standard_normal(SIZE)
            if before is not None:
                before(env)
            (mean,) = env.communicator.all_reduce(
                [noise.astype(np.float32) + weights / 3], Reduction("mean", site="train.py:41")
            )
            env.store["weights"] = weights - mean / 10
            return env.store["weights"]

        return [value.tobytes() for value in self.run(program).values()]

    def arm(self, rank: int, point: str, action: str, nth: int = 1) -> None:
        """Has a replica's process fail when it comes to a fault point."""

        def program(env: ReplicaEnv) -> None:
            import workbench.faults

            rule = {"point": point, "replica": rank, "action": action, "nth": nth}
            workbench.faults._RULES.append(rule)

        self._internal(program, ranks=[rank])

    def pids(self) -> list[int]:
        """Process of each replica."""
        return [self.group.place(rank)[0].pid for rank in range(self.group.size)]

    def _internal(self, program: Callable[..., Any], *args: Any, ranks: list[int]) -> Any:
        return self.group.run(self.group.prepare(program), args, ranks=ranks)

    def _seed(self, lost: list[int], survivors: list[int]) -> None:
        self.recovered.append((lost, survivors))
        if survivors:
            source = survivors[0]
            weights = self._internal(lambda env: env.store.get("weights", 0), ranks=[source]).value(source)
            self._internal(lambda env, w: env.store.__setitem__("weights", w), weights, ranks=lost)


class Check:
    """What holds after every fault: the training goes on as if nothing had happened."""

    def __init__(self, training: Training, fault_free: list[list[bytes]]) -> None:
        self.training = training
        self.fault_free = fault_free

    def begin(self) -> None:
        """Steps 0 and 1."""
        assert [self.training.step(number) for number in (0, 1)] == self.fault_free[:2]

    def go_on(self, start: int = 2) -> None:
        """The steps from `start`, on the same cluster."""
        assert [self.training.step(number) for number in range(start, 4)] == self.fault_free[start:4]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Two replicas in processes of their own."""
    with runtime.connect(replicas=2, stall_seconds=STALL_SECONDS, environment=ARMED) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def fault_free(cluster: Cluster) -> list[list[bytes]]:
    """The results of four steps to which nothing happens."""
    training = Training(cluster)
    results = [training.step(number) for number in range(4)]
    training.group.close()
    return results


@pytest.fixture
def training(cluster: Cluster) -> Iterator[Training]:
    """A training that has not begun."""
    training = Training(cluster)
    yield training
    training.group.close()


@pytest.fixture
def check(training: Training, fault_free: list[list[bytes]]) -> Check:
    """Checks of `training`."""
    return Check(training, fault_free)


def kill(pid: int, sig: signal.Signals = signal.SIGKILL) -> None:
    """Sends a signal and, if it kills or stops, waits until the process is gone or stands still."""
    os.kill(pid, sig)
    if sig is signal.SIGSTOP:
        until(lambda: process_state(pid) == "T", f"the stop of process {pid}")
    if sig is signal.SIGKILL:
        until(lambda: gone(pid), f"the end of process {pid}")


def arrival(directory: Path) -> tuple[Path, Callable[[ReplicaEnv], None]]:
    """A file, and what makes it when replica 1 comes there."""
    path = directory / "arrived"

    def arrive(env: ReplicaEnv) -> None:
        if env.rank == 1:
            path.touch()

    return path, arrive
