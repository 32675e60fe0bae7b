"""Events for the log about workers: lines of output, and how the driver reaches them."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterable, Iterator, Mapping

from workbench.runtime.deploy.worker_link import WorkerLink
from workbench.telemetry.events import Event


def show(rank: int, stream: str, text: str) -> None:
    """Prints one line of a replica in the notebook. It never raises, because the same messages report steps."""
    file = sys.stderr if stream == "stderr" else sys.stdout
    line = f"[replica {rank}] {text}"
    try:
        print(line, file=file)
    except UnicodeEncodeError as error:
        with contextlib.suppress(OSError, ValueError):
            print(line.encode(error.encoding, "backslashreplace").decode(error.encoding), file=file)
    except (OSError, ValueError):
        pass  # the output has no reader any more


def printed(worker: WorkerLink, rank: int, stream: str, line: str) -> Event:
    """A line that a replica printed on "stdout" or "stderr"."""
    severity = "warning" if stream == "stderr" else "info"
    return Event("log", stream, line, time.monotonic_ns(), severity=severity, replica=rank, host=worker.host)


def links_made(workers: Iterable[WorkerLink], apart: Mapping[str, str]) -> Iterator[Event]:
    """An event for each link with another transport than the host's name suggests.

    Args:
      workers: The workers of a cluster.
      apart: Name of a worker -> why it cannot share memory with others whose host has the same name.
    """
    now = time.monotonic_ns()
    for worker in workers:
        if ", as " in worker.reached:
            message = f"the driver reaches worker {worker.name} over {worker.reached}"
            yield Event("lifecycle", "link", message, now, host=worker.host)
        if why := apart.get(worker.name):
            message = (
                f"worker {worker.name} calls its host as others do, and cannot share memory with them ({why}): it "
                f"counts as on host {worker.host!r}, and collectives between these hosts go over TCP"
            )
            yield Event("lifecycle", "hosts", message, now, host=worker.host)
