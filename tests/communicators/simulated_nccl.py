"""NCCL as `cupy.cuda.nccl` shows it, with its habits, between threads and processes of this machine.

* It gets raw pointers and believes them; a wrong size or a freed array corrupts memory here as there.
* Calls queue work on streams and return; calls between `groupStart` and `groupEnd` start together. Without a group, a
  call for one of several ranks of a thread waits for the others, which never come: that is an error here.
* A call on a communicator that was aborted, and a second abort, are what they are in C: the memory is freed.
* Creating a communicator blocks until every rank has come, for ever if one does not.
* Ranks that ask for different things wait for ever. A peer that dies is not noticed.
* `abort` lets streams go on as if all were well, with garbage in the results; `destroy` waits for the other ranks, for
  ever when one of them is gone.
* One GPU twice in a communicator is refused, with an unhelpful text.

A thread in the process that made the unique id is the network: it collects what the ranks send and computes.
This checks our use of NCCL. It says nothing about NCCL itself.
"""

from __future__ import annotations

import contextlib
import pickle
import secrets
import socket
import struct
import tempfile
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

(NCCL_INT8, NCCL_UINT8, NCCL_INT32, NCCL_UINT32, NCCL_INT64, NCCL_UINT64) = range(6)
(NCCL_FLOAT16, NCCL_FLOAT32, NCCL_FLOAT64, NCCL_BFLOAT16) = range(6, 10)
(NCCL_SUM, NCCL_PROD, NCCL_MAX, NCCL_MIN, NCCL_AVG) = range(5)
available = True

_DTYPES = {
    NCCL_INT8: "i1", NCCL_UINT8: "u1", NCCL_INT32: "i4", NCCL_UINT32: "u4", NCCL_INT64: "i8", NCCL_UINT64: "u8",
    NCCL_FLOAT16: "f2", NCCL_FLOAT32: "f4", NCCL_FLOAT64: "f8",
}  # fmt: skip
# NCCL's minimum and maximum drop NaNs.
_UFUNCS = {NCCL_SUM: np.add, NCCL_PROD: np.multiply, NCCL_MAX: np.fmax, NCCL_MIN: np.fmin}

STREAMS: dict[int, Any] = {}
_group = threading.local()
_waiting: list[_Hub] = []
_ranks: dict[bytes, set[int]] = {}
"""The ranks of this process by the id of their network."""
_aborting: list[threading.Event] = []
faults: dict[str, Any] = {}
"""What a test breaks: "async_error" (a text), "refuse" (a text, by the next call), "refuse_rank" (is not created),
"hang" (nothing ever completes); "while_asked" and "while_aborted" are called with the communicator in those calls."""


def give_up_waiting() -> None:
    """Ends networks whose ranks will never all come, which NCCL itself would not do."""
    while _waiting:
        _waiting.pop().give_up()


class NcclError(RuntimeError):
    """As `cupy.cuda.nccl.NcclError`."""


def get_version() -> int:
    return 22703


def get_unique_id() -> bytes:
    """The address of a new network; its thread ends with the last connection."""
    hub = _Hub()
    _waiting.append(hub)
    hub.start()
    return hub.path.encode().ljust(128, b"\0")


def groupStart() -> None:
    _group.depth = getattr(_group, "depth", 0) + 1


def groupEnd() -> None:
    assert getattr(_group, "depth", 0) > 0, "groupEnd without groupStart"
    _group.depth -= 1
    if _group.depth == 0:
        calls, _group.calls = getattr(_group, "calls", []), []
        failed, _group.failed = getattr(_group, "failed", False), False
        if failed:
            raise NcclError("a call of this group has failed")
        creating = [call for kind, call in calls if kind == "create"]
        threads = [threading.Thread(target=call, daemon=True) for call in creating]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(1.0)
        for kind, call in calls:
            if kind == "move":
                call()


def group_is_open() -> bool:
    """Whether the calling thread has started a group and not ended it."""
    return bool(getattr(_group, "depth", 0))


def _together(kind: str, call: Callable[[], None], unique_id: bytes) -> None:
    if group_is_open():
        _group.__dict__.setdefault("calls", []).append((kind, call))
    elif kind == "move" and len(_ranks.get(unique_id, ())) > 1:
        raise NcclError("outside of a group, one of several ranks of a thread waits for the others for ever")
    else:
        call()


def wait_on_stream(flag: threading.Event) -> None:
    """A stream waits for another one; for ever, if that one never gets there."""
    while not flag.wait(0.5):
        pass


class NcclCommunicator:
    def __init__(self, size: int, unique_id: bytes, rank: int) -> None:
        if faults.get("refuse_rank") == rank:
            _group.failed = group_is_open()
            raise NcclError("unhandled cuda error")
        self._size = size
        self._rank = rank
        self._number = 0
        self._unique_id = unique_id
        self._aborted = threading.Event()
        self._freed = threading.Lock()
        self._answers: dict[int, Any] = {}
        self._arrived = threading.Condition()
        self._socket = socket.socket(socket.AF_UNIX)
        path = unique_id.rstrip(b"\0").decode()
        _ranks.setdefault(unique_id, set()).add(rank)
        _together("create", lambda: self._create(path), unique_id)

    def _create(self, path: str) -> None:
        self._socket.connect(path)
        _send(self._socket, ("hello", self._rank, self._size))
        assert _receive(self._socket) == "welcome"  # blocks until all ranks have come
        threading.Thread(target=self._listen, name="simulated-nccl", daemon=True).start()

    def _listen(self) -> None:
        with contextlib.suppress(OSError, EOFError):
            while True:
                number, result = _receive(self._socket)
                with self._arrived:
                    self._answers[number] = result
                    self._arrived.notify_all()

    def size(self) -> int:
        return self._size

    def rank_id(self) -> int:
        return self._rank

    def check_async_error(self) -> None:
        assert not self._aborted.is_set(), "ncclCommGetAsyncError reads memory that ncclCommAbort has freed"
        pause = faults.get("while_asked")
        if pause is not None:
            pause(self)
        assert not self._aborted.is_set(), "ncclCommAbort frees the memory that ncclCommGetAsyncError reads"
        if faults.get("async_error"):
            raise NcclError(faults["async_error"])

    def abort(self) -> None:
        assert self._freed.acquire(blocking=False), "ncclCommAbort frees the same memory twice"
        aborting = faults.get("while_aborted")
        if aborting is not None:
            aborting(self)
        _ranks.get(self._unique_id, set()).discard(self._rank)
        self._aborted.set()
        with self._arrived:
            self._arrived.notify_all()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def destroy(self) -> None:
        """Waits until all ranks have come here, so also for what they still read."""
        assert not self._freed.locked(), "ncclCommDestroy frees what is freed"
        number, self._number = self._number, self._number + 1
        self._exchange(number, ("destroy", ()), b"")
        self.abort()

    def allReduce(self, send: int, receive: int, count: int, dtype: int, op: int, stream: int) -> None:
        self._queue("all_reduce", (count, dtype, op), send, count, receive, count, dtype, stream)

    def reduce(
        self, send: int, receive: int, count: int, dtype: int, op: int, root: int, stream: int
    ) -> None:
        got = count if root == self._rank else 0
        self._queue("reduce", (count, dtype, op, root), send, count, receive, got, dtype, stream)

    def reduceScatter(self, send: int, receive: int, count: int, dtype: int, op: int, stream: int) -> None:
        what = (count, dtype, op)
        self._queue("reduce_scatter", what, send, count * self._size, receive, count, dtype, stream)

    def allGather(self, send: int, receive: int, count: int, dtype: int, stream: int) -> None:
        what = (count, dtype)
        self._queue("all_gather", what, send, count, receive, count * self._size, dtype, stream)

    def broadcast(self, send: int, receive: int, count: int, dtype: int, root: int, stream: int) -> None:
        sent = count if root == self._rank else 0
        self._queue("broadcast", (count, dtype, root), send, sent, receive, count, dtype, stream)

    def _queue(
        self, op: str, what: Any, send: int, sent: int, receive: int, got: int, dtype: int, stream: int
    ) -> None:
        if faults.get("refuse"):
            raise NcclError(faults["refuse"])
        number, self._number = self._number, self._number + 1
        width = np.dtype(_DTYPES[dtype]).itemsize

        def work() -> None:
            from tests.communicators.simulated_gpu import memory_at

            result = self._exchange(number, (op, what), memory_at(send, sent * width).tobytes())
            target = memory_at(receive, got * width)
            target[:] = 0x5A if result is None else np.frombuffer(result, np.uint8)[: got * width]

        _together("move", lambda: STREAMS[stream].submit(work), self._unique_id)

    def _exchange(self, number: int, asked: Any, data: bytes) -> bytes | None:
        with contextlib.suppress(OSError):
            _send(self._socket, (number, asked, data))
        with self._arrived:
            while number not in self._answers and not self._aborted.is_set():
                self._arrived.wait(0.5)
            return self._answers.pop(number, None)


class _Hub(threading.Thread):
    def __init__(self) -> None:
        super().__init__(name="simulated-network", daemon=True)
        self._directory = tempfile.TemporaryDirectory(prefix="simulated-nccl-")
        self.path = f"{self._directory.name}/{secrets.token_hex(4)}"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen(64)
        self._given_up = threading.Event()
        self._lock = threading.Lock()
        self._waiting: dict[int, dict[int, tuple[Any, bytes]]] = {}

    def give_up(self) -> None:
        self._given_up.set()
        self.join(10.0)

    def run(self) -> None:
        ranks: dict[int, socket.socket] = {}
        size = 1
        self._listener.settimeout(0.1)
        try:
            while len(ranks) < size:
                with contextlib.suppress(TimeoutError):
                    connection, _ = self._listener.accept()
                    connection.settimeout(None)
                    _, rank, size = _receive(connection)
                    ranks[rank] = connection
                if self._given_up.is_set():
                    for connection in ranks.values():
                        connection.close()
                    return
        finally:
            self._listener.close()
            self._directory.cleanup()
        for connection in ranks.values():
            _send(connection, "welcome")
        for rank, connection in ranks.items():
            threading.Thread(
                target=self._serve, args=(rank, connection, ranks), name="simulated-network", daemon=True
            ).start()

    def _serve(self, rank: int, connection: socket.socket, ranks: dict[int, socket.socket]) -> None:
        with contextlib.suppress(OSError, EOFError), connection:
            while True:
                number, asked, data = _receive(connection)
                with self._lock:
                    arrived = self._waiting.setdefault(number, {})
                    arrived[rank] = (asked, data)
                    agree = len(arrived) == len(ranks) and len({a for a, _ in arrived.values()}) == 1
                    if not agree or faults.get("hang"):
                        continue  # a rank that disagrees waits forever
                    del self._waiting[number]
                    parts = [arrived[each][1] for each in range(len(ranks))]
                    for each, other in ranks.items():
                        with contextlib.suppress(OSError):
                            _send(other, (number, _result(asked, parts, each)))


def _result(asked: Any, parts: list[bytes], rank: int) -> bytes:
    op, what = asked
    if op == "destroy":
        return b""
    if op == "broadcast":
        return parts[what[2]]
    if op == "all_gather":
        return b"".join(parts)
    arrays = [np.frombuffer(part, _DTYPES[what[1]]) for part in parts]
    with np.errstate(all="ignore"):
        total = arrays[0]
        for array in arrays[1:]:
            total = _UFUNCS[what[2]](total, array)
    if op == "reduce_scatter":
        total = total[rank * what[0] : (rank + 1) * what[0]]
    return total.tobytes()


def _send(connection: socket.socket, message: Any) -> None:
    data = pickle.dumps(message)
    connection.sendall(struct.pack("<Q", len(data)) + data)


def _receive(connection: socket.socket) -> Any:
    return pickle.loads(_exactly(connection, struct.unpack("<Q", _exactly(connection, 8))[0]))


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        part = connection.recv(min(1 << 20, count - len(data)))
        if not part:
            raise EOFError
        data += part
    return bytes(data)
