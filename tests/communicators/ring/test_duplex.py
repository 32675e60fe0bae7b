"""A host's connections in a ring, after the other end has gone."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Callable, Iterator

import pytest

from workbench.communicators.ring.duplex import Duplex

ENDS = [
    ssl.SSLEOFError(8, "EOF occurred in violation of protocol"),
    ssl.SSLZeroReturnError(6, "TLS/SSL connection has been closed (EOF)"),
    OSError(errno.EHOSTUNREACH, "No route to host"),
    TimeoutError(errno.ETIMEDOUT, "Connection timed out"),
]


class _Ended(socket.socket):
    """A connection on which every call fails, as over TLS or a broken network."""

    error: OSError = ENDS[0]

    def send(self, *_: object) -> int:
        raise self.error

    def recv_into(self, *_: object) -> int:
        raise self.error


@pytest.fixture(params=ENDS, ids=lambda error: type(error).__name__)
def duplex(request: pytest.FixtureRequest) -> Iterator[Duplex]:
    ends = _Ended(socket.AF_UNIX), _Ended(socket.AF_UNIX)
    for end in ends:
        end.error = request.param
    made = Duplex(*ends, look=lambda position: None)
    yield made
    made.close()


@pytest.mark.parametrize(
    "use", [lambda duplex: duplex.complain(b"a replica failed"), lambda duplex: duplex.drain_finished()]
)
def test_telling_a_host_that_is_gone_of_a_failure_is_no_failure(
    duplex: Duplex, use: Callable[[Duplex], None]
) -> None:
    use(duplex)


def test_sending_to_a_host_that_is_gone_is_a_lost_connection(duplex: Duplex) -> None:
    with pytest.raises(ConnectionError, match="the connection has ended"):
        duplex.move(None, memoryview(b"payload"), memoryview(b""))  # type: ignore[arg-type]
