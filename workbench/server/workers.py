"""A process that holds workers for notebooks to drive; the Jupyter server starts one for each cluster of its panel.

`python -m workbench.server.workers --replicas N`. It prints one JSON line when it is ready, or why it cannot be, and
ends when its standard input does: with the Jupyter server, however that ends.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import socket
import sys
import threading
import time
from typing import Any, Final

from workbench.errors import WorkbenchError
from workbench.runtime.comm.unix_listener import UnixListener
from workbench.runtime.deploy import embedded, worker_pool
from workbench.runtime.deploy.registry import Entry, Registry, new_id
from workbench.server.clusters import MAX_REPLICAS
from workbench.server.frames import Requests, encode
from workbench.server.summary import Summary

_SCALE_SECONDS: Final = 60.0
_STOP: Final = None

Job = tuple[socket.socket, int, str, int] | None


class HeldWorkers:
    """An embedded cluster without a driver.

    One thread scales and closes it, those of the connections ask for that.
    """

    def __init__(self, replicas: int) -> None:
        """Starts the workers and announces them.

        Raises:
          OSError: if they cannot be started or announced.
        """
        self._cluster = embedded.start(
            workers=replicas, processes=True, listen="127.0.0.1", memory_limit="auto", environment={}
        )
        self._jobs: queue.Queue[Job] = queue.Queue(maxsize=16)
        self._ending = threading.Event()  # somebody has asked for the end, which scaling must not hold up
        self._lock = threading.Lock()  # guards `_connections`
        self._connections: list[socket.socket] = []
        self._listener = UnixListener(self._accept, thread_name="workbench-announcement")
        id = new_id()
        self.entry = Entry(
            id=id,
            kind="workers",
            name=f"workers {id}",  # how many there are changes
            pid=os.getpid(),
            machine=socket.gethostname(),
            started=time.time(),
            socket=self._listener.path,
            connection=worker_pool.connection(self._cluster),
        )
        self._announced = Registry().announce(self.entry)

    def stop(self) -> None:
        """Ends `serve`. Any thread."""
        self._ending.set()
        self._jobs.put(_STOP)

    def serve(self) -> None:
        """Does what is asked for, until somebody asks it to stop; then closes everything."""
        while (job := self._jobs.get(timeout=threading.TIMEOUT_MAX)) is not _STOP:
            sock, call, action, replicas = job
            if action == "close":
                _send(sock, {"call": call, "problem": ""})
                break
            _send(sock, {"call": call, "problem": self._scale(replicas)})
            self._tell_all()
        self._announced.withdraw()
        self._listener.close()
        with self._lock:
            for sock in self._connections:
                sock.close()
        self._cluster.close()

    def _scale(self, replicas: int) -> str:
        if not 1 <= replicas <= MAX_REPLICAS:
            return f"replicas must be between 1 and {MAX_REPLICAS}, got {replicas}"
        self._cluster.scale(replicas)
        end = time.monotonic() + _SCALE_SECONDS
        while len(self._cluster.scheduler_info["workers"]) != replicas:
            if time.monotonic() > end:
                return f"{replicas} workers were asked for, but did not come within {_SCALE_SECONDS:.0f} s"
            if self._ending.wait(0.1):
                return "they are being stopped"
        return ""

    def _summary(self) -> dict[str, Any]:
        count = len(self._cluster.scheduler_info["workers"])
        text = f"<Workers: {count} of Dask, embedded, live>"
        return Summary(
            status="live",
            text=text,
            replicas=count,
            replicas_live=count,
            hosts=1,
            busbw=None,
            alerts=0,
            nan=0,
            severity="watching",
            sentence="",  # nobody drives them: there is no run to judge
            embedded=True,
            strategies=(),
        ).as_dict()

    def _tell_all(self) -> None:
        with self._lock:
            connections = list(self._connections)
        for sock in connections:
            _send(sock, {"summary": self._summary()})

    def _accept(self, sock: socket.socket) -> None:
        sock.settimeout(None)
        _send(sock, {"summary": self._summary()})
        with self._lock:
            self._connections.append(sock)
        threading.Thread(target=self._listen, args=(sock,), name="workbench-held", daemon=True).start()

    def _listen(self, sock: socket.socket) -> None:
        requests = Requests(sock)
        try:
            while True:
                for request in requests.receive():
                    match request:
                        case {"do": "scale", "call": int(call), "replicas": int(replicas)}:
                            self._jobs.put((sock, call, "scale", replicas), timeout=1.0)
                        case {"do": "close", "call": int(call)}:
                            self._ending.set()
                            self._jobs.put((sock, call, "close", 0), timeout=1.0)
        except (OSError, ValueError, queue.Full):
            with self._lock:
                if sock in self._connections:
                    self._connections.remove(sock)
            sock.close()


def _send(sock: socket.socket, message: dict[str, Any]) -> None:
    try:
        sock.sendall(encode(message))
    except OSError:
        pass  # its own thread notices that it has gone


def main() -> int:
    """Runs until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m workbench.server.workers")
    parser.add_argument("--replicas", type=int, required=True)
    options = parser.parse_args()
    try:
        held = HeldWorkers(options.replicas)
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
