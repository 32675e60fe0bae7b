"""Checks whether a Dask scheduler answers at an address, before a client is made for it.

A `distributed.Client` that fails to connect leaves an event loop behind, retries refused connections, and waits forever
if another program listens but sends nothing. This check avoids that.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from typing import Any

from distributed.comm.addressing import parse_host_port
from distributed.comm.core import connect as connect_comm
from distributed.comm.registry import backends
from distributed.security import Security

from workbench.errors import InvalidArgumentError, UnavailableError

_ANSWER_SECONDS = 10.0
_RETRY_SECONDS = 0.2
_PORTS = range(1, 1 << 16)
_SCHEDULER_PORT = 8786


def reachable_scheduler(address: str, timeout_seconds: float | None, security: Security | None = None) -> str:
    """The complete address of the scheduler that answers at `address`.

    Args:
      address: Such as "tcp://10.0.0.5:8786"; the default protocol is TCP.
      timeout_seconds: How long to wait until one is up and answers. With None, a refused connection raises at once, and
        an answer may take ten seconds.
      security: The TLS settings; by default those of Dask's configuration.

    Raises:
      InvalidArgumentError: if it is not an address, or needs certificates that are missing.
      UnavailableError: if no scheduler answers there.
    """
    whole = address if "://" in address else f"tcp://{address}"
    if (place := _place(address, whole)) is None:
        return whole
    ends = time.monotonic() + (_ANSWER_SECONDS if timeout_seconds is None else timeout_seconds)
    while True:
        try:
            socket.create_connection(place, timeout=max(0.001, ends - time.monotonic())).close()
            break
        except OSError as error:
            if timeout_seconds is None or time.monotonic() + _RETRY_SECONDS > ends:
                raise UnavailableError(
                    f"no Dask scheduler answers at {address!r}: {_why(error, place)}"
                ) from error
        time.sleep(_RETRY_SECONDS)
    _require_scheduler(
        address, _identity(whole, _arguments(whole, security), max(1.0, ends - time.monotonic()))
    )
    return whole


def _place(address: str, whole: str) -> tuple[str, int] | None:
    """Host and port; None for an address within one process."""
    protocol, _, rest = whole.partition("://")
    if protocol not in backends:
        raise InvalidArgumentError(
            f"{address!r} is not an address of a Dask scheduler: its protocol is {protocol!r}, and Dask has "
            f"{', '.join(sorted(backends))}; it reads like 'tcp://127.0.0.1:8786'"
        )
    if protocol == "inproc":
        return None
    try:
        host, port = parse_host_port(rest, _SCHEDULER_PORT)
        if port not in _PORTS:
            raise ValueError(f"a port is a number from 1 to {_PORTS[-1]}, got {port}")
        if not host:
            raise ValueError("it names no host")
    except ValueError as error:
        raise InvalidArgumentError(
            f"{address!r} is not an address of a Dask scheduler: {error}; it reads like 'tcp://127.0.0.1:8786'"
        ) from error
    return host, port


def _arguments(address: str, security: Security | None) -> dict[str, Any]:
    """The arguments with which Dask connects."""
    arguments: dict[str, Any] = (security or Security()).get_connection_args("client")
    if address.startswith(("tls:", "wss:")) and arguments.get("ssl_context") is None:
        raise InvalidArgumentError(
            f"connecting to {address!r} needs certificates, and Dask's configuration (distributed.comm.tls) names "
            f"none. For a cluster of `workbench join` give this notebook the secret of its tasks (WORKBENCH_SECRET, or "
            f"the file that WORKBENCH_SECRET_FILE names); else pass a client that has certificates: "
            f"wb.connect(distributed.Client({address!r}, security=distributed.Security(tls_ca_file=..., "
            f"tls_client_cert=..., tls_client_key=...)))"
        )
    return arguments


def _why(error: OSError, place: tuple[str, int]) -> str:
    host, port = place
    if isinstance(error, ConnectionRefusedError):
        return (
            f"the connection was refused, so nothing listens on port {port} of {host}. Start one with `dask scheduler "
            f"--port {port}`, give timeout_seconds=60 to wait for one that is coming up, or leave the address out for "
            f"an embedded cluster"
        )
    if isinstance(error, socket.gaierror):
        return f"there is no host {host!r} ({error.strerror}); correct the name, or give its IP address"
    if isinstance(error, TimeoutError):
        return (
            f"{host} has not answered in time. It is down, or a firewall is in between: try `nc -vz {host} {port}`, or "
            f"give a longer timeout_seconds"
        )
    return f"{error.strerror or error}; check the address and the network"


def _identity(address: str, arguments: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Asks the server at `address` to describe itself within `seconds`; {"error": ...} if it does not."""
    found: dict[str, Any] = {}

    async def ask() -> None:
        comm = await connect_comm(address, timeout=seconds, **arguments)
        try:
            await comm.write({"op": "identity", "reply": True})
            answer = await comm.read()
        finally:
            comm.abort()
        found.update(answer if isinstance(answer, dict) else {"error": f"it said {answer!r:.80}"})

    async def bounded() -> None:
        try:
            await asyncio.wait_for(ask(), seconds)
        except TimeoutError:
            found["error"] = f"it accepts connections, and has said nothing for {seconds:.0f} s"
        except Exception as error:  # a stranger's bytes may confuse Dask; a huge length becomes a MemoryError
            found["error"] = f"{type(error).__name__}: {error}"

    # On another thread, because in a notebook the calling one already runs an event loop.
    thread = threading.Thread(target=lambda: asyncio.run(bounded()), name="workbench-reach", daemon=True)
    thread.start()
    thread.join(2 * seconds)
    return found or {"error": f"no answer within {seconds:.0f} s"}


def _require_scheduler(address: str, identity: dict[str, Any]) -> None:
    kind = identity.get("type")
    if kind == "Scheduler":
        return
    if kind is not None:
        raise UnavailableError(
            f"no Dask scheduler answers at {address!r}, but a {kind}; give the address that `dask scheduler` prints"
        )
    if "certificate" in identity["error"].lower():
        raise UnavailableError(
            f"the scheduler at {address!r} has certificates that this notebook does not accept; a cluster of "
            f"`workbench join` needs the secret of its tasks here, too (WORKBENCH_SECRET, or the file that "
            f"WORKBENCH_SECRET_FILE names): compare `workbench join`'s first line there and here"
        )
    raise UnavailableError(
        f"what listens at {address!r} does not answer as a Dask scheduler ({identity['error']}); check the port, and "
        f"whether it is a tls:// address"
    )
