"""What services read from their peers, out of memory instead of sockets."""

from __future__ import annotations

import json
import random
import struct
import time
from typing import Any, cast

import numpy as np

from tests.fuzz.targets import Target, WrongData
from workbench.communicators.core.tcp import TcpListener
from workbench.data.service.blocks import packed, unpacked
from workbench.data.service.wire import Connection, Fields, accepted
from workbench.data.structure import flatten
from workbench.data.tables import Failed, ListTable, Run
from workbench.errors import DataCorruption, UnavailableError, WorkbenchError
from workbench.io.checksums import crc32c
from workbench.runtime.services.frames import HEAD, pack, receive

_STRUCTURE = flatten((np.int64(0), b"", np.zeros(2)))[1]
_TOKEN = "token-of-the-service"


class Wire:
    """A socket whose peer has sent some bytes and has gone."""

    def __init__(self, received: bytes = b"") -> None:
        self._received, self.position = received, 0
        self.sent = b""

    def recv(self, count: int) -> bytes:
        """The next bytes."""
        start, self.position = self.position, min(self.position + count, len(self._received))
        return self._received[start : self.position]

    def recv_into(self, buffer: memoryview) -> int:
        """Puts the next bytes into `buffer`."""
        part = self.recv(len(buffer))
        buffer[: len(part)] = part
        return len(part)

    def sendall(self, data: bytes) -> None:
        """Keeps what is sent."""
        self.sent += data

    def settimeout(self, seconds: float | None) -> None:
        """Nothing is waited for."""

    def setsockopt(self, *option: int) -> None:
        """There is nothing to set."""

    def shutdown(self, how: int) -> None:
        """There is nothing to end."""

    def close(self) -> None:
        """There is nothing to close."""


def _frame(fields: Fields, payload: bytes = b"") -> bytes:
    wire = Wire()
    Connection(cast(Any, wire), "the peer").send(fields, payload)
    return wire.sent


def _elements() -> list[Run]:
    rows: list[Any] = [[np.int64(n), b"text %d" % n, np.arange(2.0) + n] for n in range(9)]
    uneven: list[Any] = [[np.int64(n), b"", np.arange(float(n))] for n in range(3)]
    of_rows, of_uneven = ListTable(rows, _STRUCTURE), ListTable(uneven, _STRUCTURE)
    failed = Failed(ValueError("an element that cannot be computed"))
    return [Run(of_rows, range(9)), failed, Run(of_uneven, range(3))]


class Frames(Target):
    """Frames of a peer that has shown the token: requests, and replies with elements."""

    name = "service-frames"

    def good_inputs(self) -> list[bytes]:
        request = _frame({"method": "take", "lane": 3, "names": ["a", "b"]}, b"payload")
        inputs = [request + _frame({}) + request]
        for compression in ("", "GZIP", "SNAPPY"):
            segments, payload = packed(_elements(), compression)
            reply = _frame({"segments": segments, "first": 0}, payload)
            inputs += [reply, request + reply]
        return inputs

    def check(self, data: bytes) -> None:
        found, error = _frames(data)
        for valid in self.inputs:
            intact = _common(valid, data)
            expected = [frame for end, frame in _frames(valid)[0] if end <= intact]
            if [frame for _, frame in found[: len(expected)]] != expected:
                raise WrongData("a frame before the damage is another one")
        for _, (fields, payload) in found:
            if not isinstance(fields, dict):
                raise WrongData(f"the fields of a frame are {fields!r:.100}")
            if "segments" in fields:
                for run in unpacked(fields["segments"], payload, _STRUCTURE, "worker"):
                    if not isinstance(run, Failed):
                        _check(run)
        if error is not None:
            raise UnavailableError("refused") from error

    def repaired(self, data: bytes, rng: random.Random) -> bytes:
        if rng.random() < 0.2:
            return data
        frames, start = b"", 0
        while start + 20 <= len(data):
            sizes = data[start : start + 12]
            header_bytes, payload_bytes = struct.unpack("<IQ", sizes)
            body = data[start + 20 : start + 20 + header_bytes + payload_bytes]
            frames += sizes + struct.pack("<II", crc32c(sizes), crc32c(body)) + body
            start += 20 + header_bytes + payload_bytes
        return frames + data[start:]


def _frames(data: bytes) -> tuple[list[tuple[int, tuple[Fields, bytes]]], Exception | None]:
    """All frames and the end of each; and how the connection ended, unless between two frames."""
    wire = Wire(data)
    connection, found = Connection(cast(Any, wire), "the peer"), []
    while wire.position < len(data):
        try:
            frame = connection.receive(1.0)
        except (OSError, DataCorruption) as error:
            return found, error
        found.append((wire.position, frame))
    return found, None


def _common(valid: bytes, data: bytes) -> int:
    """The length of the common prefix."""
    different = (place for place, (a, b) in enumerate(zip(valid, data, strict=False)) if a != b)
    return next(different, min(len(valid), len(data)))


def _check(run: Run) -> None:
    for row in run.elements():
        if len(row) != 3 or not all(isinstance(leaf, bytes | np.ndarray | np.generic) for leaf in row):
            raise WrongData(f"an element is {row!r:.200}")


class WorkerFrames(Target):
    """Frames between the notebook, parameter servers and workers: requests and replies with arrays."""

    name = "worker-frames"

    def good_inputs(self) -> list[bytes]:
        arrays = [np.arange(6.0).reshape(2, 3), np.array(["a", "bc"]), np.float32(1).reshape(())]
        requests = [
            ({"method": "update", "key": "w@1", "number": 3}, arrays),
            ({"method": "read", "keys": ["a", "b"]}, []),
            ({"rows": 5}, [np.arange(5), np.empty((0, 4), np.int16)]),
        ]
        frames = [b"".join(pack(*request)) for request in requests]
        return [frames[0] * 2 + frames[1], *frames, b"".join(frames)]

    def check(self, data: bytes) -> None:
        found, error = _received(data)
        for valid in self.inputs:
            intact = _common(valid, data)
            expected = [frame for end, frame in _received(valid)[0] if end <= intact]
            if [frame for _, frame in found[: len(expected)]] != expected:
                raise WrongData("a frame before the damage is another one")
        if error is not None:
            raise UnavailableError("refused") from error

    def repaired(self, data: bytes, rng: random.Random) -> bytes:
        """Sizes that are right, so that headers are read; at times a header that describes other arrays."""
        if rng.random() < 0.2 or len(data) < HEAD.size:
            return data
        header_bytes = min(HEAD.unpack_from(data)[0], len(data) - HEAD.size)
        body = data[HEAD.size :]
        if rng.random() < 0.5:
            header, payload = rng.choice(_STRANGE_HEADERS), body[header_bytes:]
            return HEAD.pack(len(header), len(payload)) + header + payload
        return HEAD.pack(header_bytes, len(body) - header_bytes) + body


_STRANGE_HEADERS = [
    b"[" * 5000,
    b'{"a":' * 5000,
    *(
        b'{"arrays":%s}' % arrays
        for arrays in (
            *(
                b"3",
                b'[["<f8"]]',
                b'[["<f8",3]]',
                b'[["<f8",[-1]]]',
                b'[["<f8",[-2,-3]]]',
                b'[["<f8",[1.5]]]',
            ),
            *(b'[["|O",[1]]]', b'[["nonsense",[1]]]', b"[[null,[1]]]", b'[["(",[1]]]', b'[["<U0",[1]]]'),
            *(
                b'[["<f8",["a"]]]',
                b'[["<f8",[99999999999999999999]]]',
                b'[[["<f8"],[1]]]',
                b'[["<f8",[[1]]]]',
            ),
            *(b"[[{},{}]]", b'[["<f8",[1],2]]', b'{"a":1}', b'[["<f8",[7]]]', b'[["<f8,<f8",[1]]]'),
        )
    ),
]


def _received(data: bytes) -> tuple[list[tuple[int, Any]], Exception | None]:
    """As `_frames`. For each frame, its fields, and the dtype, shape and bytes of its arrays."""
    wire, found = Wire(data), []
    while wire.position < len(data):
        try:
            fields, arrays = receive(cast(Any, wire))
        except OSError as error:
            return found, error
        if not isinstance(fields, dict) or any(array.dtype.hasobject for array in arrays):
            raise WrongData(f"a frame is {fields!r:.100} with {arrays!r:.100}")
        described = [(array.dtype, array.shape, array.tobytes()) for array in arrays]
        found.append((wire.position, (dict(fields), described)))
    return found, None


class Hello(Target):
    """What a stranger says first: only the token opens."""

    name = "service-hello"

    def good_inputs(self) -> list[bytes]:
        hello = {"hello": "workbench data service 2", "token": _TOKEN}
        return [json.dumps(each).encode() + b"\n" + _frame({}) for each in (hello, {**hello, "more": [1, 2]})]

    def repaired(self, data: bytes, rng: random.Random) -> bytes:
        return data if rng.random() < 0.9 else rng.choice(_STRANGE_HELLOS)

    def check(self, data: bytes) -> None:
        try:
            self.let_in(data)
        except WorkbenchError:
            raise
        except OSError as error:
            raise UnavailableError("refused") from error
        line = json.loads(data.partition(b"\n")[0])
        if line["token"] != _TOKEN:
            raise WrongData(f"{line!r:.200} was let in")

    def let_in(self, data: bytes) -> None:
        """Returns if the stranger is let in."""
        accepted(cast(Any, Wire(data)), _TOKEN, None)


class WorkerHello(Hello):
    """What a stranger says first to a worker, or to a parameter server."""

    name = "worker-hello"

    def good_inputs(self) -> list[bytes]:
        hello = {"group": "servers", "token": _TOKEN}
        return [json.dumps(each).encode() + b"\n" for each in (hello, {**hello, "more": [1, 2]})]

    def let_in(self, data: bytes) -> None:
        listener = object.__new__(TcpListener)
        listener._tls, listener._socket = None, cast(Any, _Door(data))
        listener.accept_next("servers", _TOKEN, time.monotonic() + 60)


class _Door:
    """A listening socket with one stranger, whose bytes are there already."""

    def __init__(self, received: bytes) -> None:
        self._received = received

    def settimeout(self, seconds: float | None) -> None:
        """Does nothing, because nothing waits."""

    def accept(self) -> tuple[Wire, None]:
        """The stranger's connection."""
        return Wire(self._received), None


_STRANGE_HELLOS = [
    b"[" * 1000 + b"\n",
    b'{"token":' * 110 + b"\n",
    b'{"token": "\\ud800", "hello": "\\udfff", "group": "\\udfff"}\n',
    b'{"token": ["a"], "group": 3}\n',
    b"3\n",
    b"\xff\xfe\n",
]
