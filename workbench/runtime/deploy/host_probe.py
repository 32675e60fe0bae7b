"""Finds out by trying which workers with the same host name can share memory.

Containers may have the name and the kernel of their machine, but not its files or its permission to pass descriptors.
So a worker sends a nonce in unnamed memory over the other worker's Unix socket, and the other one must read it there.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Mapping, Sequence
from hmac import compare_digest

from workbench.communicators.core.shared_memory import SharedFile, mapped
from workbench.errors import UnavailableError, WorkbenchError
from workbench.runtime.comm import unix_endpoint

NONCE_BYTES = 16
PURPOSE = "memory"


def obstacle(path: str, token: str) -> str:
    """Why this process cannot share memory with the worker that listens at `path`; "" if it can."""
    if not path:
        return "it offers no Unix socket"
    nonce = secrets.token_bytes(NONCE_BYTES)
    try:
        memory = SharedFile(NONCE_BYTES)
    except (WorkbenchError, OSError) as error:
        return str(error)
    try:
        mapped(memory.fd, 0, NONCE_BYTES)[:NONCE_BYTES] = list(nonce)
        with unix_endpoint.greeted(path, token, PURPOSE) as sock:
            socket.send_fds(sock, [b"m"], [memory.fd])
            seen = unix_endpoint.read_exactly(sock, NONCE_BYTES)
    except UnavailableError as error:
        return str(error)
    except OSError as error:
        return f"it answers on its Unix socket, but descriptors cannot be passed there: {error}"
    finally:
        memory.close()
    return "" if compare_digest(seen, nonce) else "memory whose descriptor it was sent is not the same there"


def look(sock: socket.socket) -> None:
    """The other end of `obstacle`: answers with the content of the memory that `sock` brings.

    Raises:
      OSError: if it brings none.
    """
    _, descriptors, _, _ = socket.recv_fds(sock, 1, 1)
    try:
        if len(descriptors) != 1:
            raise OSError("no descriptor came")
        seen = bytes(mapped(descriptors[0], 0, NONCE_BYTES)[:NONCE_BYTES])
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    sock.sendall(seen)


def hosts_of(
    names: Mapping[str, str], tried: Callable[[str, Sequence[str]], Mapping[str, str]]
) -> tuple[dict[str, str], dict[str, str]]:
    """Divides workers with the same host name into parts that share memory.

    Args:
      names: Worker -> name of its host.
      tried: (one worker, the others) -> for each of the others why it cannot share memory with the one, or "".

    Returns:
      Worker -> host: the name for the first part, "name.2" for the second. And for the first worker of each further
      part, why it is not on the first host.
    """
    hosts: dict[str, str] = {}
    reasons: dict[str, str] = {}
    for name in dict.fromkeys(names.values()):
        rest = [worker for worker, named in names.items() if named == name]
        part = 0
        why: Mapping[str, str] = {}
        while rest:
            part += 1
            first, *others = rest
            if part > 1:
                reasons[first] = why[first]
            host = name if part == 1 else _unused(f"{name}.{part}", {*names.values(), *hosts.values()})
            why = tried(first, others) if others else {}
            hosts[first] = host
            hosts |= {worker: host for worker in others if not why[worker]}
            rest = [worker for worker in others if why[worker]]
    return hosts, reasons


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "'"
    return name
