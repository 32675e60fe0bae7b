"""How long a fresh process takes to import a library (`--library`), or to have two workers and a first result."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.benchmarks.measure import Script

REPETITIONS = 4
FIRST_STEP = "connect to first step"
IMPORT = "import time, json; start = time.perf_counter(); import {}; print(json.dumps(time.perf_counter() - start))"
DASK = """
import json, time
from distributed import Client, LocalCluster
start = time.perf_counter()
cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
client = Client(cluster)
client.wait_for_workers(2)
assert client.submit(int, 1).result() == 1
print(json.dumps(time.perf_counter() - start))
client.close(); cluster.close()
"""
IPYPARALLEL = """
import json, logging, time
import ipyparallel
start = time.perf_counter()
cluster = ipyparallel.Cluster(n=2, log_level=logging.ERROR)
cluster.start_and_connect_sync()[:].apply_sync(int)
print(json.dumps(time.perf_counter() - start))
cluster.stop_cluster_sync()
"""
OURS = """
import json, time
import workbench as wb
start = time.perf_counter()
cluster = wb.connect(replicas=2{options})
strategy = wb.MirroredStrategy()
assert strategy.local_results(strategy.run(lambda: 1)) == (1, 1)
print(json.dumps(time.perf_counter() - start))
cluster.close()
"""
CASES = {
    "LocalCluster": (FIRST_STEP, DASK),
    "ipyparallel": (FIRST_STEP, IPYPARALLEL),
    "workbench": (FIRST_STEP, OURS.format(options="")),
    "workbench-threads": (FIRST_STEP, OURS.format(options=", processes=False")),
}

NAMES = {
    "LocalCluster": "Dask LocalCluster",
    "workbench-threads": "workbench, threads",
    "distributed": "Dask",
}


def seconds_of(code: str) -> float:
    """Runs `code` in a fresh interpreter; what it prints last is how long it took."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=90,
        cwd=Path(__file__).parents[2],
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-250:])
    return float(json.loads(done.stdout.strip().splitlines()[-1]))


def main() -> None:
    """Measures one library."""
    script = Script("startup", __doc__, library="", who="")
    library, who = script.options.library, script.options.who
    what, code = ("import", IMPORT.format(library)) if library else CASES[who]
    with script.case(NAMES.get(who, who), what, unit="s", scale=1) as case:
        seconds_of(code)  # loads the files into the page cache
        case.samples = [seconds_of(code) for _ in range(max(1, round(REPETITIONS * script.options.scale)))]


if __name__ == "__main__":
    main()
