"""A port that is free, for servers of TensorFlow."""

from __future__ import annotations

import socket


def free_port() -> int:
    """The number of a port that nobody listened on a moment ago."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port: int = free.getsockname()[1]
        return port
