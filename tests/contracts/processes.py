"""Processes that hold replicas for a test: each runs one thread per replica and obeys the test over a pipe."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.contracts.converting import Converting, of_gpu, of_library
from tests.telemetry.reading import records
from workbench.communicators import Bootstrap, Communicator, Gpus, Member, Status, Topology
from workbench.errors import WorkbenchError
from workbench.telemetry.recording.ring import Ring

DEADLINE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Layout:
    """Where replicas are: for each process its host and how many replicas it has.

    With `gpus` they are on simulated GPUs: "own" gives each replica one, "shared" all of them the same; "own, real" and
    "shared, real" take NVIDIA's. With `library` their arrays are those of "torch" or "jax".
    """

    processes: tuple[tuple[str, int], ...]
    gpus: str = ""
    library: str = ""

    @property
    def topology(self) -> Topology:
        members: list[Member] = []
        for number, (host, replicas) in enumerate(self.processes):
            members += [Member(len(members) + i, host, f"p{number}") for i in range(replicas)]
        return Topology(members)


class _Replicas:
    """Runs inside a process: the replicas of the present group."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.bootstrap: Bootstrap | None = None
        self.communicators: dict[int, Communicator] = {}
        self.rings: dict[int, Ring] = {}
        self.threads: list[threading.Thread] = []
        self.outcomes: dict[int, Any] = {}
        self.gate, self.last_gate = threading.Event(), threading.Event()
        self.gpus: Gpus | None = None

    def listen(self, topology: Topology, process: str, generation: int, gpus: str = "") -> Any:
        self.gate.clear()
        self.last_gate.clear()
        self.rings = {rank: Ring(replica=rank) for rank in topology.ranks(process)}
        self.gpus = _gpus(topology.ranks(process), process, gpus) if gpus else None
        self.bootstrap = Bootstrap(
            topology,
            process,
            generation=generation,
            group="test",
            rings=self.rings,
            directory=self.directory,
            gpus=self.gpus,
        )
        return self.bootstrap.address

    def connect(self, addresses: dict[str, Any], library: str = "") -> None:
        assert self.bootstrap is not None
        self.communicators = dict(self.bootstrap.connect(addresses, DEADLINE_SECONDS))
        if self.gpus is not None:
            for rank, communicator in self.communicators.items():
                put, get = of_gpu(self.gpus.accelerator, self.gpus.ordinals[rank])
                self.communicators[rank] = Converting(communicator, put, get)
        elif library:
            put, get = of_library(library)
            for rank, communicator in self.communicators.items():
                self.communicators[rank] = Converting(communicator, put, get)

    def start(self, body: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.outcomes = {}
        self.threads = [
            threading.Thread(target=self._run, args=(rank, body, args), daemon=True)
            for rank in self.communicators
        ]
        for thread in self.threads:
            thread.start()

    def _run(self, rank: int, body: Callable[..., Any], args: tuple[Any, ...]) -> None:
        communicator = self.communicators[rank]
        try:
            self.outcomes[rank] = body(communicator, *args)
        except WorkbenchError as error:
            self.outcomes[rank] = error
        except BaseException as error:
            communicator.abort(error)  # as the runtime does when user code raises
            self.outcomes[rank] = error

    def collect(self) -> dict[int, Any]:
        for thread in self.threads:
            thread.join(DEADLINE_SECONDS)
            assert not thread.is_alive(), f"hang: {[c.status() for c in self.communicators.values()]}"
        return self.outcomes

    def statuses(self) -> dict[int, Status]:
        return {rank: communicator.status() for rank, communicator in self.communicators.items()}

    def records(self) -> dict[int, Any]:
        return {rank: records(ring) for rank, ring in self.rings.items()}

    def abort(self, rank: int, error: BaseException) -> None:
        self.communicators[rank].abort(error)

    def await_outcome(self, rank: int) -> bool:
        """Waits until the replica returns or raises, within the test's time limit."""
        thread = self.threads[list(self.communicators).index(rank)]
        thread.join(DEADLINE_SECONDS / 2)
        return not thread.is_alive()

    def close_rank(self, rank: int) -> None:
        self.communicators[rank].close()

    def open_gate(self) -> None:
        self.gate.set()

    def open_last_gate(self) -> None:
        self.last_gate.set()

    def close(self) -> None:
        for communicator in self.communicators.values():
            communicator.close()
        self.communicators = {}
        self.outcomes = {}

    def resources(self) -> tuple[int, int]:
        gc.collect()  # objects that an earlier test's exceptions still refer to are no leak
        return len(os.listdir("/proc/self/fd")), threading.active_count()


def _gpus(ranks: Sequence[int], process: str, kind: str) -> Gpus:
    if kind.endswith("real"):
        from workbench.backends import cupy

        return Gpus({rank: rank if kind.startswith("own") else 0 for rank in ranks}, cupy.accelerator)
    from tests.communicators.simulated_gpu import SimulatedGpus

    ordinals = {rank: 0 if kind == "shared" else index for index, rank in enumerate(ranks)}
    return Gpus(ordinals, SimulatedGpus([f"{process}-{index}" for index in range(len(ranks))]))


_here: _Replicas | None = None


def wait_for_gate() -> None:
    """In a body: waits until the test opens the gate of this process."""
    assert _here is not None
    assert _here.gate.wait(DEADLINE_SECONDS)


def wait_for_last_gate() -> None:
    """As `wait_for_gate`, at a second one."""
    assert _here is not None
    assert _here.last_gate.wait(DEADLINE_SECONDS)


def _serve(pipe: Connection, directory: Path) -> None:
    global _here
    replicas = _here = _Replicas(directory)
    while (command := pipe.recv()) is not None:
        name, args = command
        try:
            pipe.send((True, getattr(replicas, name)(*args)))
        except BaseException as error:
            pipe.send((False, error))


class Process:
    """The test's end of one process."""

    def __init__(self, directory: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, directory), daemon=True)
        self._process.start()
        theirs.close()

    def __call__(self, name: str, *args: Any) -> Any:
        self.send(name, *args)
        return self.receive()

    def send(self, name: str, *args: Any) -> None:
        self._pipe.send((name, args))

    def receive(self) -> Any:
        assert self._pipe.poll(DEADLINE_SECONDS), "the process gives no answer"
        fine, value = self._pipe.recv()
        if not fine:
            raise value
        return value

    def kill(self) -> None:
        os.kill(self._process.pid or 0, signal.SIGKILL)
        self.await_end()

    def await_end(self) -> None:
        self._process.join(DEADLINE_SECONDS)
        assert not self.alive

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def close(self) -> None:
        if self.alive:
            self._pipe.send(None)
            self._process.join(DEADLINE_SECONDS)
        self._pipe.close()
        self._process.close()


class Pool:
    """Processes that are kept from test to test, as starting one takes longer than most tests."""

    def __init__(self) -> None:
        self._idle: list[Process] = []
        self._directory = tempfile.TemporaryDirectory(prefix="contract-")

    def take(self, count: int) -> list[Process]:
        while len(self._idle) < count:
            self._idle.append(Process(Path(self._directory.name)))
        taken, self._idle = self._idle[:count], self._idle[count:]
        return taken

    def give_back(self, processes: Sequence[Process]) -> None:
        for process in processes:
            if process.alive:
                self._idle.append(process)
            else:
                process.close()

    def close(self) -> None:
        for process in self._idle:
            process.close()
        self._directory.cleanup()

    def files(self) -> set[str]:
        """What the processes have left in their directory and in /dev/shm."""
        return {
            str(path)
            for root in (self._directory.name, "/dev/shm")
            for path in Path(root).glob("workbench-*")
        }


class Group:
    """A connected group of replicas in processes of a pool."""

    def __init__(self, layout: Layout, pool: Pool) -> None:
        self.layout = layout
        self.topology = layout.topology
        self.size = self.topology.size
        self.generation = -1
        self.processes = pool.take(len(layout.processes))
        self.connect()

    def connect(self) -> None:
        """Connects the next generation."""
        self.generation += 1
        addresses = {
            f"p{number}": process("listen", self.topology, f"p{number}", self.generation, self.layout.gpus)
            for number, process in enumerate(self.processes)
        }
        self.all("connect", addresses, self.layout.library)

    def all(self, name: str, *args: Any) -> list[Any]:
        """Sends a command to all processes that live, then takes their answers."""
        living = [process for process in self.processes if process.alive]
        for process in living:
            process.send(name, *args)
        answers = []
        for process in living:
            try:
                answers.append(process.receive())
            except (EOFError, ConnectionResetError):
                process.await_end()  # killed before it could answer, as the test intends
        return answers

    def start(self, body: Callable[..., Any], *args: Any) -> None:
        self.all("start", body, args)

    def collect(self) -> list[Any]:
        """What each replica returned or raised, by rank (those of dead processes left out)."""
        outcomes: dict[int, Any] = {}
        for part in self.all("collect"):
            outcomes |= part
        return [outcomes[rank] for rank in sorted(outcomes)]

    def outcomes(self, body: Callable[..., Any], *args: Any) -> list[Any]:
        self.start(body, *args)
        return self.collect()

    def run(self, body: Callable[..., Any], *args: Any) -> list[Any]:
        """As `outcomes`, but raises what a replica raised."""
        outcomes = self.outcomes(body, *args)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return outcomes

    def process_of(self, rank: int) -> Process:
        return self.processes[int(self.topology.members[rank].process[1:])]

    def until_waiting(self, ranks: Sequence[int], number: str = "") -> None:
        """Asks for the status of replicas until all of `ranks` wait in a collective, in the one of that number."""
        for _ in range(100_000):
            statuses: dict[int, Status] = {}
            for part in self.all("statuses"):
                statuses |= part
            there = [statuses[rank] for rank in ranks]
            if all(s.phase == "waiting" and s.op and f"#{s.seq + 1}".startswith(number) for s in there):
                return
        raise AssertionError(f"replicas {ranks} never waited: {statuses}")

    def until_ended(self, ranks: Sequence[int]) -> None:
        """Waits until all of `ranks` have returned or raised, whatever the others do."""
        for rank in ranks:
            assert self.process_of(rank)("await_outcome", rank), f"hang: replica {rank} has not ended"

    def close(self) -> None:
        self.all("close")
