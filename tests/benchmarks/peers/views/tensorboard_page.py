"""TensorBoard's Time Series of a job of two processes that writes its loss and the time of each step, a run a replica.

The scalars are written with TensorBoard's own writer. All settings are the defaults: the server reads the files again
every 5 s, and a page that is open does not ask again.
"""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from tests.benchmarks import page_job
from tests.benchmarks.browser import STEPS_PER_SECOND, at_a_fixed_rate, job, measure_page
from tests.benchmarks.measure import Script

DRAWN = """document.querySelector("scalar-card line-chart canvas, scalar-card line-chart svg")
  && document.querySelector("scalar-card tb-data-table-content-cell")
  && !document.querySelector("scalar-card mat-spinner")"""
BEFORE = 30 * STEPS_PER_SECOND
"""Steps that are there already."""


def work(folder: Path, connection: Connection) -> None:
    """Makes the steps of both replicas, one after the other, and writes what TensorBoard shows."""
    writers = [EventFileWriter(str(folder / f"replica {which}")) for which in range(page_job.REPLICAS)]
    weights = page_job.begin()
    numbers = itertools.count()

    def step() -> None:
        number, gradients = next(numbers), []
        for which, writer in enumerate(writers):
            began = time.perf_counter()
            loss, gradient = page_job.part(weights, number, which)
            found = {"loss": loss, "step, seconds": time.perf_counter() - began}
            gradients.append(gradient)
            values = [Summary.Value(tag=name, simple_value=value) for name, value in found.items()]
            writer.add_event(Event(wall_time=time.time(), step=number, summary=Summary(value=values)))
        weights[:] -= page_job.RATE * np.mean(gradients, axis=0)

    for _ in range(BEFORE):
        step()
    for writer in writers:
        writer.flush()
    connection.send("ready")
    at_a_fixed_rate(step, connection)
    for writer in writers:
        writer.close()


@contextmanager
def serving(folder: Path) -> Iterator[tuple[str, int]]:
    """TensorBoard on a folder: its address, and the id of its process."""
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(folder)]
    command += ["--host", "127.0.0.1", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            for line in server.stderr:
                if found := re.search(r"at (http://[^/\s]+)", line):
                    yield f"{found[1]}/?darkMode=false#timeseries", server.pid
                    break
        finally:
            server.terminate()


def main() -> None:
    """Measures it."""
    script = Script("views", __doc__, pages=3, picture="")
    with (
        tempfile.TemporaryDirectory() as name,
        job(partial(work, Path(name))),
        serving(Path(name)) as (url, pid),
    ):
        measure_page(script, "TensorBoard", url=url, drawn=DRAWN, serving=[pid], polls=True)


if __name__ == "__main__":
    main()
