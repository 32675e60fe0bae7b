"""Where the processes of several TPU hosts meet."""

from __future__ import annotations

import socket

import pytest

from workbench.runtime.traced.executor import free_address


@pytest.mark.parametrize(("host", "family"), [("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)])
def test_where_processes_meet_is_an_address_of_either_kind(host: str, family: socket.AddressFamily) -> None:
    try:
        socket.create_server((host, 0), family=family).close()
    except OSError as error:
        if family == socket.AF_INET:
            raise
        pytest.skip(f"this machine has no IPv6: {error}")
    name, _, port = free_address(host).rpartition(":")
    assert name.strip("[]") == host
    assert name.startswith("[") == (family == socket.AF_INET6)  # otherwise its last part could be the port
    socket.create_server((host, int(port)), family=family).close()
