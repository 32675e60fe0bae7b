"""The job of the pages as a mesh of two actors of PyTorch Monarch, which find their class in this module."""

from __future__ import annotations

import itertools
from multiprocessing.connection import Connection
from urllib.parse import urlsplit

import numpy as np
import psutil
from monarch.actor import Actor, current_rank, endpoint
from monarch.job import ProcessJob

from tests.benchmarks import page_job
from tests.benchmarks.browser import at_a_fixed_rate


class Replica(Actor):
    """One process of the mesh."""

    @endpoint
    def step(self, weights: np.ndarray, number: int) -> np.ndarray:
        """Its gradient."""
        return page_job.part(weights, number, current_rank().rank)[1]


def work(connection: Connection) -> None:
    """A call of both actors a step."""
    numbers = itertools.count()
    weights = page_job.begin()
    running = ProcessJob({"hosts": 1})
    running.enable_telemetry(include_dashboard=True, dashboard_port=0)
    try:
        state = running.state(cached_path=None)
        mesh = state.hosts.spawn_procs({"replicas": page_job.REPLICAS}).spawn("replicas", Replica)

        def step() -> None:
            found = mesh.step.call(weights, next(numbers)).get()
            weights[:] -= page_job.RATE * np.mean([gradient for _, gradient in found.items()], axis=0)

        step()
        port = urlsplit(state.dashboard_url).port
        connection.send((f"http://127.0.0.1:{port}/", listening(port)))
        at_a_fixed_rate(step, connection)
    finally:
        running.kill()


def listening(port: int | None) -> int:
    """The process that listens at a port of this machine."""
    found = [
        one.pid
        for one in psutil.net_connections("tcp")
        if one.laddr and one.laddr.port == port and one.status == psutil.CONN_LISTEN and one.pid is not None
    ]
    return found[0]
