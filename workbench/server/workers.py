"""A process that holds workers for notebooks to drive; the Jupyter server starts one for each cluster from its panel.

`python -m workbench.server.workers --options '{"replicas": 2}'`. It prints one JSON line when it is ready or has
failed, and ends when its standard input closes: with the Jupyter server, however that ends.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import queue
import socket
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from workbench.errors import WorkbenchError
from workbench.runtime.comm.unix_listener import UnixListener
from workbench.runtime.deploy import embedded, worker_pool
from workbench.runtime.deploy.registry import Entry, Registry, new_id
from workbench.runtime.placement_text import counted
from workbench.runtime.process import gpus, tpu
from workbench.server.frames import Requests, encode
from workbench.server.summary import PoolSummary, Summary
from workbench.server.worker_options import WorkerOptions, check_number, check_range, read

_SCALE_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.25
"""How often a cluster checks how many workers it has, and, if it adapts their number, whether it is used."""
_UNUSED_SECONDS: Final = 30.0
"""How long it stays unused before it shrinks; a notebook that reconnects earlier need not wait for workers."""
_STOP: Final = None

Answer = Callable[[str], None]
"""Called with the reason why something is impossible, or ""."""


class HeldWorkers:
    """An embedded cluster without a driver.

    One thread scales and closes it, at the request of the connections' threads.
    """

    def __init__(self, options: WorkerOptions) -> None:
        """Starts the workers and announces them.

        Raises:
          OSError: if they cannot be started or announced.
          WorkbenchError: if this machine lacks what they need.
        """
        environment: dict[str, str] = {}
        on_gpus: tuple[str, ...] = ()
        if options.kind == "gpu":
            gpus.chosen(options.maximum or options.replicas, None)  # rejects more than there are
            on_gpus = gpus.visible()
        elif options.kind == "tpu":
            environment = tpu.worker_environment(options.replicas)
        self._options = options
        self._cluster = embedded.start(
            workers=options.workers,
            processes=True,
            listen="127.0.0.1",
            memory_limit=options.memory_limit or "auto",
            environment=environment,
            gpus=on_gpus,
            most=options.maximum,
        )
        self._gpus = len(on_gpus)
        self._target = self._settled = options.workers
        self._minimum, self._maximum = options.workers, options.maximum
        self._scaling = False
        self._told = -1  # how many workers all connections know of
        self._last_used = -math.inf
        worker_pool.expect(self._cluster, self._maximum)
        self._jobs: queue.Queue[tuple[Answer, int, int] | None] = queue.Queue(maxsize=16)
        self._ending = threading.Event()  # the end was requested, and scaling must not delay it
        self._lock = threading.Lock()  # guards `_connections`
        self._connections: list[socket.socket] = []
        self._listener = UnixListener(self._accept, thread_name="workbench-announcement")
        id = new_id()
        self.entry = Entry(
            id=id,
            kind="workers",
            name=f"workers {id}",  # the number of them changes
            pid=os.getpid(),
            machine=socket.gethostname(),
            started=time.time(),
            socket=self._listener.path,
            connection=worker_pool.connection(self._cluster, options.devices, options.kind.upper()),
        )
        self._announced = Registry().announce(self.entry)

    def stop(self) -> None:
        """Ends `serve`. Any thread."""
        self._ending.set()
        self._jobs.put(_STOP)

    def stop_unused(self) -> str:
        """Ends `serve`, unless a program is connected to the workers; returns why not, or "". Any thread."""
        if worker_pool.is_used(self._cluster):
            return "a program is connected to them"
        self.stop()
        return ""

    def ask(self, answer: Answer, minimum: int, maximum: int = 0) -> None:
        """Requests that `serve` change the number of replicas, or its range; cancels a change in progress. Any thread.

        Raises:
          queue.Full: if there are too many requests.
        """
        self._jobs.put((answer, minimum, maximum), timeout=1.0)

    def serve(self) -> None:
        """Handles requests until it is stopped; then closes everything."""
        while (job := self._next_job()) is not _STOP:
            answer, minimum, maximum = job
            answer(self._change(minimum, maximum))
        self._announced.withdraw()
        self._listener.close()
        with self._lock:
            for sock in self._connections:
                sock.close()
        self._cluster.close()

    def _next_job(self) -> tuple[Answer, int, int] | None:
        """Waits for the next job, while adapting the number of workers to their use, and telling how many there are."""
        while True:
            try:
                return self._jobs.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                if self._maximum:
                    self._adapt()
                if self._told != self._count():
                    self._tell_all()

    def _adapt(self) -> None:
        now = time.monotonic()
        if worker_pool.is_used(self._cluster):
            self._last_used = now
        wanted = self._maximum if now - self._last_used < _UNUSED_SECONDS else self._minimum
        if wanted != self._target:
            self._scale(wanted)

    def _change(self, minimum: int, maximum: int) -> str:
        """Sets another number of workers, or another range for it; returns why that is impossible, or ""."""
        if not self._options.resizable:
            return "all replicas are in one process: stop it, and start another one"
        try:
            check_number(minimum)
            check_range(minimum, maximum)
        except WorkbenchError as error:
            return str(error)
        most = max(minimum, maximum)
        if self._gpus and most > self._gpus:
            return f"there are {self._gpus} GPUs for {most} replicas"
        self._minimum, self._maximum = minimum, maximum if maximum > minimum else 0
        worker_pool.expect(self._cluster, self._maximum)
        if not self._maximum:
            return self._scale(minimum)
        self._adapt()
        self._tell_all()
        return ""

    def _scale(self, workers: int) -> str:
        """Waits for this many workers, or for the next request; returns why there are fewer, or ""."""
        self._target, self._scaling = workers, True
        self._cluster._i = 0  # Dask then reuses numbers, which workers on GPUs use to find theirs
        self._cluster.sync(self._scale_on_loop, workers)
        self._tell_all()
        try:
            return self._await_workers(workers)
        finally:
            self._scaling = False
            self._tell_all()

    async def _scale_on_loop(self, workers: int) -> None:
        self._cluster.scale(workers)  # iterates over what changes on the loop's thread

    def _await_workers(self, workers: int) -> str:
        end = time.monotonic() + _SCALE_SECONDS
        there = -1
        # Dask finishes opening a connection, and then closes it if it is no longer wanted, so no caller may get it.
        while there != workers or self._cluster._lock.locked() or self._cluster._correct_state_waiting:
            if time.monotonic() > end:
                return f"{workers} workers were asked for, but did not come within {_SCALE_SECONDS:.0f} s"
            if self._ending.wait(0.1):
                return "they are being stopped"
            if not self._jobs.empty():
                return ""
            if there != (there := self._count()):
                self._tell_all()
        self._settled = workers
        return ""

    def _count(self) -> int:
        return len(self._cluster.scheduler_info["workers"])

    def summary(self) -> dict[str, Any]:
        """What the panel says about the workers."""
        devices = self._options.devices
        live = self._count() * devices
        text = f"{counted(live, 'device')} of Dask workers"
        pool = PoolSummary(
            kind=self._options.kind,
            threads=self._options.threads,
            scaling=self._scaling,
            settled=self._settled * devices,
            minimum=self._minimum * devices,
            maximum=self._maximum,
        )
        return Summary(
            status="live",
            text=text,
            replicas=self._target * devices,
            replicas_live=live,
            hosts=1,
            busbw=None,
            alerts=0,
            nan=0,
            severity="watching",
            sentence="",  # they have no driver, so there is no run to judge
            embedded=True,
            strategies=(),
            pool=pool,
        ).as_dict()

    def _tell_all(self) -> None:
        self._told = self._count()
        with self._lock:
            connections = list(self._connections)
        for sock in connections:
            _send(sock, {"summary": self.summary()})

    def _accept(self, sock: socket.socket) -> None:
        sock.settimeout(None)
        with self._lock:  # what is told to all from now on is told to this one, after its first summary
            _send(sock, {"summary": self.summary()})
            self._connections.append(sock)
        threading.Thread(target=self._listen, args=(sock,), name="workbench-held", daemon=True).start()

    def _listen(self, sock: socket.socket) -> None:
        requests = Requests(sock)
        try:
            while True:
                for request in requests.receive():
                    match request:
                        case {
                            "do": "scale",
                            "call": int(call),
                            "replicas": int(replicas),
                            "maximum": int(maximum),
                        }:
                            self.ask(partial(_answer, sock, call), replicas, maximum)
                        case {"do": "close", "call": int(call)}:
                            _answer(sock, call, "")
                            self.stop()
                        case {"do": "close_unused", "call": int(call)}:
                            _answer(sock, call, self.stop_unused())
        except (OSError, ValueError, queue.Full):
            with self._lock:
                if sock in self._connections:
                    self._connections.remove(sock)
            sock.close()


def _answer(sock: socket.socket, call: int, problem: str) -> None:
    _send(sock, {"call": call, "problem": problem})


def _send(sock: socket.socket, message: dict[str, Any]) -> None:
    try:
        sock.sendall(encode(message))
    except OSError:
        pass  # its own thread notices that it has gone


def main() -> int:
    """Runs until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m workbench.server.workers")
    parser.add_argument("--options", required=True, help="JSON, see workbench.server.worker_options")
    try:
        held = HeldWorkers(read(json.loads(parser.parse_args().options)))
    except (OSError, WorkbenchError) as error:
        print(json.dumps({"problem": str(error)}), flush=True)
        return 1
    print(json.dumps({"id": held.entry.id}), flush=True)

    def wait_for_the_end() -> None:
        sys.stdin.read()
        held.stop()

    threading.Thread(target=wait_for_the_end, name="workbench-parent", daemon=True).start()
    held.serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
