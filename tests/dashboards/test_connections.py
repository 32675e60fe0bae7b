"""Strangers make room for others, and never the other way round."""

from __future__ import annotations

from typing import Any

from workbench.dashboards.connections import Connections


class Stream:
    """As much of a connection as is looked at."""

    def __init__(self) -> None:
        self.ended = False

    def closed(self) -> bool:
        return self.ended

    def close(self) -> None:
        self.ended = True


def opened(connections: Connections, count: int) -> list[Any]:
    streams: list[Any] = [Stream() for _ in range(count)]
    for stream in streams:
        connections.add(stream)
    return streams


def test_the_oldest_stranger_goes_first() -> None:
    connections = Connections(3)
    first, *others = opened(connections, 4)
    connections.add(others[0])  # another request on the same connection

    assert first.ended
    assert [stream.ended for stream in others] == [False] * 3


def test_who_is_trusted_stays() -> None:
    connections = Connections(3)
    known, *_ = opened(connections, 1)
    connections.trust(known)
    strangers = opened(connections, 50)

    assert not known.ended
    assert [stream.ended for stream in strangers] == [True] * 48 + [False] * 2


def test_where_all_are_trusted_the_newcomer_goes() -> None:
    connections = Connections(3)
    known = opened(connections, 3)
    for stream in known:
        connections.trust(stream)
    (newcomer,) = opened(connections, 1)
    assert newcomer.ended
    assert not any(stream.ended for stream in known)

    known[1].close()
    (newcomer,) = opened(connections, 1)
    assert not newcomer.ended


def test_one_that_was_closed_is_not_trusted_any_more() -> None:
    connections = Connections(1)
    (gone,) = opened(connections, 1)
    gone.close()
    (newcomer,) = opened(connections, 1)
    connections.trust(gone)
    opened(connections, 1)

    assert newcomer.ended


def test_closing_ends_all() -> None:
    connections = Connections(8)
    streams = opened(connections, 5)
    connections.trust(streams[2])
    connections.close()

    assert all(stream.ended for stream in streams)
