"""`workbench dashboard` while a cluster of two processes works at a fixed rate."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from multiprocessing.connection import Connection

import numpy as np

import workbench as wb
from tests.benchmarks.browser import at_a_fixed_rate, job, measure_page
from tests.benchmarks.measure import Script

DRAWN = """(() => {
  const within = (root) => [...root.querySelectorAll("*")].some((node) => node.shadowRoot
    ? within(node.shadowRoot) : node.matches(".wb-collective-table td, .wb-collective-table th")
      && node.textContent === "all_reduce");
  return within(document);
})()"""


def work(connection: Connection) -> None:
    """A collective of 1 KB of two replicas a step."""
    ones = np.ones(256, np.float32)

    def add(x: np.ndarray) -> np.ndarray:
        return wb.distribute.get_replica_context().all_reduce("sum", x)

    with wb.connect(replicas=2):
        strategy = wb.MirroredStrategy()
        strategy.run(add, args=(ones,))
        connection.send(os.getpid())
        at_a_fixed_rate(lambda: strategy.run(add, args=(ones,)), connection)


def main() -> None:
    """Measures it. The page is served by a process of its own, which the job's process tells what happens."""
    script = Script("views", __doc__, pages=3)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WORKBENCH_RUNTIME_DIR"] = folder  # no other jobs of this user
        command = [sys.executable, "-m", "workbench", "dashboard", "--no-browser"]
        with job(work) as pid, subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            try:
                url = server.stdout.readline().strip()
                measure_page(script, "workbench", url=url, drawn=DRAWN, serving=[server.pid, pid])
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
