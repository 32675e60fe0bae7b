"""A notebook on one of the hosts: does what it reads from its input, a word a line, and answers with a line of JSON.

It sums what all replicas have in a variable, so that state that was lost, or counted twice, shows.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from distributed import Client
from distributed.security import Security

import workbench as wb
from workbench.distribute.cluster_resolver import TFConfigClusterResolver


def connect(address: str, minimum: int, files: list[str], workers: int = 2) -> Any:
    """A cluster, and the client that it was attached to, if there is one; see `Driver`."""
    more = {"minimum_replicas": minimum} if minimum else {}
    if not files:  # of `workbench join`
        return wb.connect(address or TFConfigClusterResolver(), stall_seconds=3.0, **more), None
    ca, certificate, key = files
    security = Security(
        tls_ca_file=ca, tls_client_cert=certificate, tls_client_key=key, require_encryption=True
    )
    client = Client(address, security=security, set_as_default=False)
    client.wait_for_workers(workers, timeout=60)
    return wb.connect(client, stall_seconds=3.0, **more), client


def main() -> None:
    """Until the input ends."""
    address, minimum, *files = sys.argv[1:]
    cluster, client = connect(address, int(minimum), files)
    strategy = wb.MirroredStrategy()
    with strategy.scope():
        counter = wb.Variable(0.0, aggregation="MEAN")

    def step() -> Any:
        counter.assign_add(1.0)
        return wb.distribute.get_replica_context().all_reduce("SUM", 1.0)

    def one_step() -> Any:
        count = strategy.reduce("MEAN", strategy.run(step), axis=None)
        return {"replicas": float(count), "steps": float(counter)}

    commands = {
        "step": one_step,
        "size": lambda: strategy.num_replicas_in_sync,
        "hosts": lambda: list(cluster.hosts),
        "diagnose": lambda: list(wb.diagnose().verdict),
        "log": lambda: [event.message for event in cluster.feed.snapshot().events],
    }
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        start = time.monotonic()
        try:
            answer = {"value": commands[line.strip()](), "error": "", "type": ""}
        except Exception as error:
            answer = {"value": None, "error": str(error), "type": type(error).__name__}
        print(json.dumps(answer | {"seconds": time.monotonic() - start}), flush=True)
    cluster.close()
    if client is not None:
        client.close()


if __name__ == "__main__":
    main()
