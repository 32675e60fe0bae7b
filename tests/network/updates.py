"""A notebook with a coordinator on one of the hosts: "work" runs functions that update variables."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

import workbench as wb
from tests.network.driver import connect
from workbench.distribute import ParameterServerStrategy
from workbench.distribute.coordinator import ClusterCoordinator

CALLS, SECONDS, ROWS = 400, 0.005, 8


def main() -> None:
    """Until the input ends."""
    address, minimum, *files = sys.argv[1:]
    cluster, client = connect(address, int(minimum), files, workers=3)
    strategy = ParameterServerStrategy(servers=1)
    coordinator = ClusterCoordinator(strategy)
    with strategy.scope():
        count = wb.Variable(0)
        table = wb.Variable(np.zeros(ROWS, np.int64))
    due = 0

    @wb.function
    def step(number: int) -> int:
        count.assign_add(1)
        time.sleep(SECONDS)  # the network is cut during many of them
        table.scatter_add(wb.IndexedSlices(np.ones(2, np.int64), [number % ROWS, (number + 1) % ROWS]))
        return number

    def work() -> Any:
        nonlocal due
        results = [coordinator.schedule(step, (number,)) for number in range(CALLS)]
        due += CALLS
        coordinator.join()
        assert [result.fetch() for result in results] == list(range(CALLS))
        seen = {coordinator.schedule(lambda: int(count)).fetch() for _ in range(40)}
        return {
            "right": int(count) == due and np.asarray(table).tolist() == [2 * due // ROWS] * ROWS,
            "held": [int(count), due, np.asarray(table).tolist()],
            "seen by workers": sorted(seen - {due}),
            "restarts": strategy.hosting.servers[0].restarts,
        }

    places = [device.host for device in (*strategy.hosting.workers, strategy.hosting.servers[0].device)]
    commands = {"work": work, "places": lambda: places}
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        try:
            answer = {"value": commands[line.strip()](), "error": "", "type": ""}
        except Exception as error:
            answer = {"value": None, "error": str(error), "type": type(error).__name__}
        print(json.dumps(answer), flush=True)
    cluster.close()
    if client is not None:
        client.close()


if __name__ == "__main__":
    main()
