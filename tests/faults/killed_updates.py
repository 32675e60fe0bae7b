"""Workers and parameter servers are killed at random moments: every update must count once, all the same.

`python -m tests.faults.killed_updates --kills 200 --seed 1` prints how many there were of each kind. In each round a
`ClusterCoordinator` runs functions that update variables in all the ways there are, while up to three processes are
killed; then the variables must hold exactly what the functions add up to, and each function must have returned once.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import workbench as wb
from workbench import distribute
from workbench.distribute import server_optimizers
from workbench.errors import CancelledError, ReplicaLost
from workbench.runtime.process.process_state import process_state

WORKERS, SERVERS = 3, 2
ROWS, WIDTH, TAKEN = 40, 3, 6
LEAST_CALLS, AHEAD = 40, 20
PATIENCE_SECONDS = 60.0
POINTS = {
    "worker": ("servers.sent", "coordinator.after_call"),
    "server": ("server.after_journal", "server.before_reply"),
}
MOMENTS = ("any time", "at a point", "when it is back")
ARMED = {"WB_FAULTS": '[{"point": "never", "action": "raise"}]'}


@dataclass
class Kills:
    """What was done.

    Attributes:
      by_kind: Number of processes that ended, by role and moment.
      rounds: Number of rounds.
      calls: Number of functions that ran.
    """

    by_kind: Counter[str] = field(default_factory=Counter)
    rounds: int = 0
    calls: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.by_kind.values())


def rows_of(number: int) -> Any:
    """The rows that a function takes, of both shards; some come twice."""
    return np.random.default_rng(number).integers(ROWS, size=TAKEN)


class Sums:
    """Variables of whole numbers, and what they must hold."""

    def __init__(self, strategy: Any) -> None:
        with strategy.scope():
            count = self.count = wb.Variable(0, name="count")
            table = self.table = wb.Variable(np.zeros((ROWS, WIDTH), np.int64), name="table")
            weights = self.weights = wb.Variable(np.zeros((ROWS, WIDTH)), name="weights")
        plus = server_optimizers.SGD(-1.0)  # subtracts minus one times the gradient, so it adds up exactly

        @wb.function
        def step(number: int, former: int = 0) -> int:
            rows = rows_of(number)
            ones = np.ones((TAKEN, WIDTH))
            count.assign_add(1)
            wb.nn.embedding_lookup(table, rows)
            table.scatter_add(wb.IndexedSlices(ones.astype(np.int64), rows))
            server_optimizers.apply_gradients(plus, [(wb.IndexedSlices(ones, rows), weights)])
            count.assign_add(former)
            return number

        self.step = step
        self.due = 0
        self.taken = np.zeros(ROWS, np.int64)

    def expect(self, number: int, former: int) -> None:
        """One more function will run."""
        self.due += 1 + former
        self.taken += np.bincount(rows_of(number), minlength=ROWS)

    def wrong(self) -> str:
        """What is not as it must be; "" if all is."""
        if int(self.count) != self.due:
            return f"count is {int(self.count)}, not {self.due}"
        for name, held in (("table", np.asarray(self.table)), ("weights", np.asarray(self.weights))):
            rows = np.flatnonzero((held != self.taken[:, None]).any(axis=1))
            if rows.size:
                return f"rows {rows.tolist()} of {name} hold {held[rows].tolist()}, not {self.taken[rows].tolist()}"
        return ""


@dataclass(frozen=True, slots=True)
class Kill:
    """One that is planned.

    Attributes:
      role: "worker" or "server".
      service: The service whose process it is.
      moment: One of MOMENTS.
      delay_seconds: Time since the kill before.
      point: Where, for "at a point"; the process gets there `nth` times.
    """

    role: str
    service: Any
    moment: str
    delay_seconds: float
    point: str
    nth: int


class Killer:
    """Kills processes of one strategy, drawn from a seeded generator, one after the other."""

    def __init__(self, strategy: Any, coordinator: Any, draw: random.Random, kills: Kills) -> None:
        self._gang = strategy.hosting.cluster.gang
        self._services = {
            "worker": [lane.service for lane in coordinator._lanes],
            "server": strategy.hosting.servers,
        }
        self._draw = draw
        self._kills = kills
        self._armed: list[tuple[str, int]] = []

    def plan(self) -> list[Kill]:
        """Ends up to three processes: a function that is lost four times is given up, and none should be here."""
        left, plan = self._draw.randint(1, 3), []
        while left > 0:
            kill = self._drawn()
            kills = 2 if kill.moment == "when it is back" else 1
            if kills <= left:
                plan.append(kill)
                left -= kills
        return plan

    def _drawn(self) -> Kill:
        draw = self._draw
        role = draw.choice(tuple(self._services))
        return Kill(
            role,
            draw.choice(self._services[role]),
            draw.choice(MOMENTS),
            draw.random() * 0.05,
            draw.choice(POINTS[role]),
            draw.randint(1, 9),
        )

    def carry_out(self, plan: list[Kill]) -> None:
        """Does what was planned."""
        for kill in plan:
            threading.Event().wait(kill.delay_seconds)
            if kill.moment == "at a point":
                self._arm(kill)
                continue
            killed = self._kill(kill)
            if killed and kill.moment == "when it is back":
                ends = time.monotonic() + PATIENCE_SECONDS
                while self._link(kill).lost or self._link(kill).pid == killed:
                    assert time.monotonic() < ends, f"hang: nobody has replaced {kill.service.name}"
                    threading.Event().wait(0.001)
                threading.Event().wait(kill.delay_seconds)
                self._kill(kill)

    def count_armed(self) -> None:
        """Counts those that have killed themselves; the others may still do so."""
        armed, self._armed = self._armed, []
        for kind, pid in armed:
            if process_state(pid) in ("", "Z"):
                self._kills.by_kind[kind] += 1
            else:
                self._armed.append((kind, pid))

    def _link(self, kill: Kill) -> Any:
        (name,) = kill.service._group.worker_names
        return self._gang.workers[name]

    def _kill(self, kill: Kill) -> int:
        """Returns the pid; 0 if there is no process to kill."""
        link = self._link(kill)
        if link.lost:
            return 0
        with contextlib.suppress(ProcessLookupError):
            os.kill(link.pid, signal.SIGKILL)
            self._kills.by_kind[f"{kill.role}, {kill.moment}"] += 1
        return int(link.pid)

    def _arm(self, kill: Kill) -> None:
        def program(env: Any, rule: dict[str, Any]) -> int:
            from workbench import faults

            faults._RULES.append(rule)
            return os.getpid()

        group, rule = kill.service._group, {"point": kill.point, "nth": kill.nth, "action": "kill"}
        with contextlib.suppress(ReplicaLost), kill.service._lock:
            pid = group.run(group.prepare(program), (rule,)).value(0)
            self._armed.append((f"{kill.role}, {kill.point}", pid))


def run_rounds(kills: int, seed: int, say: Callable[[str], Any]) -> Kills:
    """Runs functions in rounds until so many processes were killed.

    Raises:
      AssertionError: If a variable does not hold what it must, or a function did not return its own result.
    """
    done, draw = Kills(), random.Random(seed)
    partitioner = distribute.experimental.partitioners.FixedShardsPartitioner(SERVERS)
    with (
        wb.connect(replicas=WORKERS + SERVERS, environment=ARMED, replace=True),
        ThreadPoolExecutor(1, "killer") as killers,
    ):
        strategy = distribute.ParameterServerStrategy(None, partitioner, servers=SERVERS)
        coordinator = distribute.coordinator.ClusterCoordinator(strategy)
        sums = Sums(strategy)
        killer = Killer(strategy, coordinator, draw, done)
        while done.total < kills:
            before = done.by_kind.copy()
            killing = killers.submit(killer.carry_out, killer.plan())
            results: list[Any] = []
            while not killing.done() or len(results) < LEAST_CALLS:
                number = done.calls
                former = draw.randrange(len(results)) if results and draw.random() < 0.1 else None
                sums.expect(number, 0 if former is None else number - len(results) + former)
                results.append(
                    coordinator.schedule(sums.step, (number, 0 if former is None else results[former]))
                )
                done.calls += 1
                if len(results) % AHEAD == 0:
                    with contextlib.suppress(CancelledError):  # `schedule` reports why
                        results[-AHEAD // 2].fetch()
            coordinator.join()
            killing.result(PATIENCE_SECONDS)
            killer.count_armed()
            done.rounds += 1
            told = (
                f"round {done.rounds} (seed {seed}), {len(results)} functions: {dict(done.by_kind - before)}"
            )
            say(told)
            numbers = [result.fetch() for result in results]
            assert numbers == list(range(done.calls - len(results), done.calls)), f"{told}: results {numbers}"
            assert not (wrong := sums.wrong()), f"{told}: {wrong}"
        strategy.close()
    return done


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = time.monotonic()
    done = run_rounds(options.kills, options.seed, lambda line: print(line, flush=True))
    seconds = time.monotonic() - began
    print(
        f"{done.total} kills in {done.rounds} rounds, {seconds:.0f} s: {done.calls} functions, each counted once"
    )
    for kind, count in done.by_kind.most_common():
        print(f"{count:5} {kind}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
