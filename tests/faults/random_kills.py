"""Loops over distributed datasets while workers are killed at random moments: what must come of it is nothing at all.

`python -m tests.faults.random_kills --kills 200 --seed 1` prints how many there were of each kind. Each round trains on
one dataset, in one of the ways in which people write such loops, and must end with the bits of an undisturbed round,
and with every element used once. A survivor is drawn for each round: where nobody is left the weights are gone,
whatever becomes of the batches.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import workbench as wb
from workbench import faults
from workbench.data import Dataset
from workbench.errors import ReplicaLost, ReplicaStalled

ROWS, BATCH, SIZE = 160, 4, 64
PATIENCE_SECONDS = 60.0
MOMENTS = ("prefetched", "idle", "user code", "all_reduce", "reading", "recovery", "any time")
LOSSES = (ReplicaLost, ReplicaStalled)


def datasets(folder: Path) -> dict[str, Callable[[Any], Any]]:
    """Ways to feed the rows 0 to ROWS - 1, by name; each distributes with the strategy that it gets."""
    numbers = np.arange(ROWS)
    texts = [folder / f"rows{part}.txt" for part in range(4)]  # because a host reads whole files
    for text, rows in zip(texts, np.split(numbers, len(texts)), strict=True):
        text.write_text("".join(f"{row}\n" for row in rows))

    token = folder / "reading"

    def read(row: Any) -> Any:
        with contextlib.suppress(FileNotFoundError, ValueError):
            if int(token.read_text()) == os.getpid():
                token.unlink()
                os.kill(os.getpid(), signal.SIGKILL)
        return row

    def count() -> Iterator[int]:
        yield from range(ROWS)

    in_memory = Dataset.from_tensor_slices(numbers).shuffle(ROWS).batch(BATCH)  # a seed that nobody chose
    mapped = Dataset.range(ROWS).shuffle(64).map(read).batch(BATCH)
    generated = Dataset.from_generator(count, output_types=np.int64, output_shapes=()).map(read).batch(BATCH)
    lines = (
        wb.data.TextLineDataset([str(text) for text in texts])
        .map(lambda line: np.int64(int(line)))
        .map(read)
        .batch(BATCH)
    )

    def made(context: Any) -> Any:
        pipelines, number = context.num_input_pipelines, context.input_pipeline_id
        mine = Dataset.range(ROWS).shard(pipelines, number).map(read)
        return mine.batch(context.get_per_replica_batch_size(BATCH), drop_remainder=True)

    return {
        "arrays": lambda strategy: strategy.distribute_dataset(in_memory),
        "map": lambda strategy: strategy.distribute_dataset(mapped),
        "generator": lambda strategy: strategy.distribute_dataset(generated),
        "files": lambda strategy: strategy.distribute_dataset(lines),
        "function": lambda strategy: strategy.distribute_datasets_from_function(made),
    }


def patiently(action: Callable[[], Any]) -> Any:
    """What `action` returns, tried again while replicas are lost."""
    ends = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return action()
        except LOSSES:
            if time.monotonic() > ends:
                raise


def same_batch(run: Callable[[Any], Any], batches: Any) -> int:
    """Tries again with the batch whose step was lost; returns how often it was."""
    lost = 0
    for batch in batches:
        while True:
            try:
                run(batch)
                break
            except LOSSES:
                lost += 1
    return lost


def next_batch(run: Callable[[Any], Any], batches: Any) -> int:
    """Goes on with whatever batch comes next."""
    lost = 0
    for batch in batches:
        try:
            run(batch)
        except LOSSES:
            lost += 1
    return lost


LOOPS = {"same batch": same_batch, "next batch": next_batch}


@dataclass
class Kills:
    """What was done to the workers, and what the loops saw of it.

    Attributes:
      by_moment: Number of processes killed, by the moment.
      told: How often a loop got ReplicaLost or ReplicaStalled.
      rounds: Number of rounds.
    """

    by_moment: Counter[str] = field(default_factory=Counter)
    told: int = 0
    rounds: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.by_moment.values())


class Killer:
    """Kills replicas of one strategy, never the survivor of the round, at moments drawn from a seeded generator."""

    def __init__(self, strategy: Any, folder: Path, random: random.Random, kills: Kills) -> None:
        self._group = strategy.group
        self._folder = folder
        self._random = random
        self._kills = kills
        self._threads: list[threading.Thread] = []
        self._armed: list[tuple[str, int]] = []

    @contextlib.contextmanager
    def round(self, batches: int, *, reads: bool) -> Iterator[Callable[[], None]]:
        """Gives what the loop calls with each batch that it gets; some of these calls kill.

        Args:
          batches: How many there are.
          reads: A process reads for all replicas of its host, and can be killed while it does.
        """
        draw = self._random
        survivor = draw.randrange(self._group.size)
        moments = {at: draw.choice(MOMENTS) for at in draw.sample(range(batches), draw.randint(2, 5))}
        if not reads:
            moments = {at: "user code" if moment == "reading" else moment for at, moment in moments.items()}
        elif "reading" in moments.values():
            survivor = self._group.size - 1
        given = 0

        def inject() -> None:
            nonlocal given
            moment = moments.get(given)
            given += 1
            if moment is not None:
                self._inject(moment, draw.choice([r for r in range(self._group.size) if r != survivor]))

        try:
            yield inject
        finally:
            for thread in self._threads:
                thread.join(PATIENCE_SECONDS)
            self._threads.clear()
            self._count_armed()
            for token in self._folder.glob("*-[0-9]*"):
                token.unlink(missing_ok=True)
            (self._folder / "reading").unlink(missing_ok=True)

    def _inject(self, moment: str, rank: int) -> None:
        if moment in ("user code", "all_reduce"):
            point = self._random.choice(("all_reduce.enter", "all_reduce.after_send", "all_reduce.waiting"))
            (self._folder / f"{moment}-{rank}").write_text(point)
            self._armed.append((moment, self._pid(rank)))
        elif moment == "reading":
            rank = 0
            (self._folder / "reading").write_text(str(self._pid(rank)))
            self._armed.append((moment, self._pid(rank)))
        elif moment == "any time":
            delay = self._random.random() * 0.05
            thread = threading.Thread(target=self._kill_later, args=(delay, rank))
            thread.start()
            self._threads.append(thread)
        else:
            if moment == "recovery":
                self._kill_again(rank)
            self._kill(moment, self._pid(rank))
            link, _ = self._group.place(rank)
            ends = time.monotonic() + PATIENCE_SECONDS
            while moment != "prefetched" and not link.lost:
                assert time.monotonic() < ends, "hang: nobody has noticed the loss"
                self._group.gang.receive_some()

    def _pid(self, rank: int) -> int:
        return int(self._group.place(rank)[0].pid)

    def _kill(self, moment: str, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self._kills.by_moment[moment] += 1

    def _kill_later(self, delay: float, rank: int) -> None:
        threading.Event().wait(delay)
        self._kill("any time", self._pid(rank))

    def _kill_again(self, rank: int) -> None:
        """Kills the process that replaces the next lost one."""
        gang = self._group.gang
        replace = gang.replace
        name = self._group.place(rank)[0].name

        def replace_and_kill(replaced: str) -> None:
            replace(replaced)
            if replaced == name:
                gang.replace = replace
                self._kill("recovery", gang.workers[name].pid)

        gang.replace = replace_and_kill

    def _count_armed(self) -> None:
        """The workers that killed themselves: their processes are gone."""
        for moment, pid in self._armed:
            if not Path(f"/proc/{pid}").exists() or "Z (zombie)" in Path(f"/proc/{pid}/status").read_text():
                self._kills.by_moment[moment] += 1
        self._armed.clear()


class Training:
    """Weights that depend on the order of all batches, and how often each row was used."""

    def __init__(self, strategy: Any, folder: Path) -> None:
        self.strategy = strategy
        with strategy.scope():
            weights = self.weights = wb.Variable(np.zeros(SIZE, np.float32))
            used = self.used = wb.Variable(np.zeros(ROWS, np.int64))

        def may_die(moment: str, rank: int) -> str:
            token = folder / f"{moment}-{rank}"
            try:
                point = token.read_text()
                token.unlink()
            except FileNotFoundError:
                return ""
            return point

        def step(rows: Any) -> None:
            context = wb.distribute.get_replica_context()
            rank = context.replica_id_in_sync_group
            if may_die("user code", rank):
                os.kill(os.getpid(), signal.SIGKILL)
            if point := may_die("all_reduce", rank):
                faults._RULES.append({"point": point, "replica": rank, "action": "kill"})
            angles = np.asarray(rows, np.float32)[:, None] + np.arange(SIZE, dtype=np.float32)
            mean = context.all_reduce("mean", np.sin(angles).sum(0) + weights.numpy() / 3)
            count = np.bincount(np.asarray(rows), minlength=ROWS)
            weights.assign_sub(mean / 10)
            used.assign_add(context.all_reduce("sum", count))

        self.step = step
        self.pipelined = wb.function(step)

    def reset(self) -> None:
        """Begins anew."""
        patiently(lambda: self.weights.assign(np.zeros(SIZE, np.float32)))
        patiently(lambda: self.used.assign(np.zeros(ROWS, np.int64)))

    def outcome(self) -> tuple[list[bytes], list[int]]:
        """The weights' bits on each replica, and how often each row was used."""
        parts = patiently(lambda: [part.numpy() for part in self.weights.values])
        return [part.tobytes() for part in parts], patiently(lambda: self.used.numpy()).tolist()


def run_rounds(strategy: Any, folder: Path, kills: int, seed: int, say: Callable[[str], Any]) -> Kills:
    """Trains in rounds until so many processes were killed.

    Raises:
      AssertionError: If a round does not end as an undisturbed one, or does not end.
    """
    random_ = random.Random(seed)
    training = Training(strategy, folder)
    feeds = datasets(folder)
    undisturbed = {}
    done = Kills()
    killer = Killer(strategy, folder, random_, done)
    for name, feed in feeds.items():
        training.reset()
        for batch in feed(strategy):
            strategy.run(training.step, args=(batch,))
        undisturbed[name] = training.outcome()
        assert undisturbed[name][1] == [1] * ROWS
    while done.total < kills:
        name, loop = random_.choice(list(feeds)), random_.choice(list(LOOPS))
        pipelined = random_.random() < 0.5
        told = f"round {done.rounds} (seed {seed}): {name}, {loop}, {'pipelined' if pipelined else 'plain'}"
        before = done.by_moment.copy()
        training.reset()
        step = training.pipelined if pipelined else training.step
        with killer.round(ROWS // BATCH, reads=name != "arrays") as inject:

            def run(batch: Any, step: Any = step) -> None:
                strategy.run(step, args=(batch,))

            def batches(feed: Any = feeds[name], inject: Any = inject) -> Iterator[Any]:
                for batch in patiently(lambda: feed(strategy)):
                    inject()
                    yield batch

            done.told += LOOPS[loop](run, batches())
            found = training.outcome()
        say(f"{told}: {dict(done.by_moment - before)}")
        assert found[1] == [1] * ROWS, f"{told}: used {[(r, n) for r, n in enumerate(found[1]) if n != 1]}"
        assert found == undisturbed[name], f"{told}: other weights"
        done.rounds += 1
    return done


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hosts", type=int, default=1, help="two replicas on each; default 1")
    options = parser.parse_args()
    armed = {"WB_FAULTS": '[{"point": "never", "action": "raise"}]'}
    with (
        tempfile.TemporaryDirectory() as folder,
        wb.connect(hosts=options.hosts, replicas_per_host=2, environment=armed),
    ):
        began = time.monotonic()
        strategy = wb.MultiWorkerMirroredStrategy() if options.hosts > 1 else wb.MirroredStrategy()
        done = run_rounds(strategy, Path(folder), options.kills, options.seed, print)
        seconds = time.monotonic() - began
    print(f"{done.total} kills in {done.rounds} rounds, {seconds:.0f} s; errors seen by loops: {done.told}")
    for moment, count in done.by_moment.most_common():
        print(f"{count:5} {moment}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
