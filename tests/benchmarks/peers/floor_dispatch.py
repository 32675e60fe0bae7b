"""What a controller cannot beat: pickled calls over bare Unix sockets to two processes.

The all_reduce of 1 KB goes through shared memory, spinning. Pipelined: 64 calls in flight.
"""

from __future__ import annotations

import mmap
import multiprocessing
import os
import pickle
import socket
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.measure import Script, time_calls

WHO = "floor: pickle over bare sockets"
IN_FLIGHT = 64


def send(sock: socket.socket, message: Any) -> None:
    """Sends one message behind its length."""
    body = pickle.dumps(message, 5)
    sock.sendall(struct.pack("<I", len(body)) + body)


def reader(sock: socket.socket) -> Callable[[], Any]:
    """A function that reads the next message, or None at the end."""
    file = sock.makefile("rb", buffering=1 << 16)

    def read() -> Any:
        header = file.read(4)
        return pickle.loads(file.read(struct.unpack("<I", header)[0])) if header else None

    return read


def serve(rank: int, sock: socket.socket, memory: mmap.mmap) -> None:
    """A worker: calls the function of each message."""
    words = np.frombuffer(memory, np.int64)[:16]
    slots = np.frombuffer(memory, np.float32)[1024 : 1024 + 512].reshape(2, 256)
    vector, turn = np.full(256, rank + 1, np.float32), 0

    def barrier() -> None:
        nonlocal turn
        turn += 1
        words[rank * 8] = turn
        spins = 0
        while words[(1 - rank) * 8] < turn:
            spins += 1
            if spins > 50:
                os.sched_yield()

    def all_reduce() -> float:
        slots[rank] = vector
        barrier()
        total = slots[0] + slots[1]
        barrier()
        return float(total[0])

    functions, read = [lambda: 1.0, all_reduce], reader(sock)
    while (message := read()) is not None:
        send(sock, functions[message[0]]())


def main() -> None:
    """Measures single and pipelined steps."""
    script = Script("dispatch", __doc__)
    context = multiprocessing.get_context("fork")
    memory = mmap.mmap(-1, 1 << 16)
    pairs = [socket.socketpair() for _ in range(2)]
    workers = [
        context.Process(target=serve, args=(rank, pairs[rank][1], memory), daemon=True) for rank in range(2)
    ]
    for worker in workers:
        worker.start()
    sockets = [ours for ours, _ in pairs]
    readers = [reader(sock) for sock in sockets]

    def steps(function: int, count: int) -> list[float]:
        for _ in range(count):
            for sock in sockets:
                send(sock, (function, 1))
        return [[read() for read in readers] for _ in range(count)][-1]

    for function, (what, value) in enumerate((("noop", 1.0), ("1 KB", 3.0))):
        assert steps(function, 1) == [value, value]
        with script.case(WHO, what) as case:
            case.samples = time_calls(lambda f=function: steps(f, 1), seconds=1.5 * script.options.scale)
        with script.case(WHO, f"{what}, pipelined", scale=1e6 / IN_FLIGHT) as case:
            case.samples = time_calls(
                lambda f=function: steps(f, IN_FLIGHT), seconds=script.options.scale, warm_up=5
            )
    for worker in workers:
        worker.kill()
        worker.join(10)


if __name__ == "__main__":
    main()
