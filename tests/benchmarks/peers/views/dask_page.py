"""The status page of Dask's dashboard while a cluster of two processes works at a fixed rate."""

from __future__ import annotations

import itertools
import os
from multiprocessing.connection import Connection

import numpy as np
from distributed import Client, LocalCluster

from tests.benchmarks import page_job
from tests.benchmarks.browser import at_a_fixed_rate, job, measure_page
from tests.benchmarks.measure import Script

DRAWN = """(() => {
  const page = window.Bokeh?.documents?.[0];
  return page && [...page._all_models.values()].some(
    (model) => model.type === "ColumnDataSource" && model.data.duration?.length && model.data.key?.length);
})()"""


def work(connection: Connection) -> None:
    """Two tasks a step."""
    numbers = itertools.count()
    weights = page_job.begin()
    replicas = range(page_job.REPLICAS)
    with (
        LocalCluster(
            n_workers=len(replicas), threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
    ):

        def step() -> None:
            number = next(numbers)
            tasks = [
                client.submit(page_job.part, weights, number, which, pure=False, workers=[which])
                for which in replicas
            ]
            gradients = [gradient for _, gradient in client.gather(tasks)]
            weights[:] -= page_job.RATE * np.mean(gradients, axis=0)

        step()
        connection.send((cluster.scheduler.http_server.port, os.getpid()))
        at_a_fixed_rate(step, connection)


def main() -> None:
    """Measures it. The scheduler, which serves the page, is in the client's process."""
    script = Script("views", __doc__, pages=3, picture="")
    with job(work) as (port, pid):
        measure_page(
            script, "Dask /status", url=f"http://127.0.0.1:{port}/status", drawn=DRAWN, serving=[pid]
        )


if __name__ == "__main__":
    main()
