"""`workbench dashboard` while a cluster of two processes works at a fixed rate."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

import workbench as wb
from tests.benchmarks import page_job
from tests.benchmarks.browser import at_a_fixed_rate, job, measure_page
from tests.benchmarks.measure import Script

DRAWN = """(() => {
  const within = (root) => [...root.querySelectorAll("*")].some((node) => node.shadowRoot
    ? within(node.shadowRoot) : node.matches(".wb-overview canvas"));
  return within(document);
})()"""


def work(connection: Connection) -> None:
    """A collective of two replicas a step."""
    numbers = itertools.count()
    with wb.connect(replicas=page_job.REPLICAS):
        strategy = wb.MirroredStrategy()
        with strategy.scope():
            weights = wb.Variable(page_job.begin(), name="weights")

        def part(number: int) -> dict[str, Any]:
            context = wb.distribute.get_replica_context()
            assert context is not None
            loss, gradient = page_job.part(np.asarray(weights), number, context.replica_id_in_sync_group)
            weights.assign_sub(page_job.RATE * context.all_reduce("mean", gradient))
            return {"loss": loss}

        def step() -> None:
            strategy.run(part, args=(next(numbers),))

        step()
        connection.send(os.getpid())
        at_a_fixed_rate(step, connection)


def main() -> None:
    """Measures it. The page is served by a process of its own, which the job's process tells what happens."""
    script = Script("views", __doc__, pages=3, picture="", tab="")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WORKBENCH_RUNTIME_DIR"] = folder  # hides this user's other jobs
        command = [sys.executable, "-m", "workbench", "dashboard", "--no-browser"]
        with job(work) as pid, subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            try:
                url = server.stdout.readline().strip()
                measure_page(
                    script,
                    "workbench",
                    url=url,
                    drawn=DRAWN,
                    serving=[server.pid, pid],
                    button="Got it",
                    tab=script.options.tab,
                )
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
