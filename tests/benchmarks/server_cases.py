"""What the suite "servers" measures: names of its cases, and sizes.

Ours and the peer read it, so a case has one name. Standard library only: interpreters without our dependencies import
it too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.benchmarks.measure import Script, time_calls

SCHEDULED = "scheduled functions, 1 server"
ROUND_TRIP = "schedule and fetch, 1 server"
LOOKUP = "lookup of 1,024 rows of 64, 2 servers"
SCATTER = "scatter to 1,024 rows of 64, 2 servers"
STEP = "Adam's step on 16 numbers, 1 server"

PEERS = {"processes": "TF", "inprocess": "TF, servers in one process"}
"""Where the peer's servers run: what it is called."""
WORKERS = 2
ROWS, WIDTH, BATCH = 1_000_000, 64, 1024
IN_ONE = 50
"""So many look-ups, or steps, are made by one function, so that scheduling it hardly counts."""
_FUNCTIONS, _BURSTS, _TRIPS, _SECONDS = 1500, 5, 500, 2.0


def measure_functions(
    script: Script,
    who: str,
    schedule: Callable[[], Any],
    join: Callable[[], Any],
    fetch: Callable[[Any], Any],
) -> None:
    """Measures functions that each add to a variable and read it.

    Args:
      script: The script whose case it is.
      who: The program whose figure it is.
      schedule: Schedules one, and gives its remote value.
      join: Waits for all.
      fetch: What a remote value holds.
    """
    fetch(schedule())
    scale = script.options.scale
    with script.case(who, SCHEDULED, unit="functions/s", scale=1.0) as case:
        for _ in range(_BURSTS):
            count, start = max(50, int(_FUNCTIONS * scale)), time.perf_counter()
            for _ in range(count):
                schedule()
            join()
            case.samples.append(count / (time.perf_counter() - start))
    with script.case(who, ROUND_TRIP) as case:
        for _ in range(max(20, int(_TRIPS * scale))):
            start = time.perf_counter()
            fetch(schedule())
            case.samples.append(time.perf_counter() - start)


def measure_rows(script: Script, who: str, what: str, run: Callable[[], Any]) -> None:
    """Measures look-ups, scatter updates or steps that a worker makes one after the other.

    Args:
      script: The script whose case it is.
      who: The program whose figure it is.
      what: One of the names above.
      run: Has a worker make `IN_ONE` of them, and waits for that.
    """
    with script.case(who, what, scale=1e6 / IN_ONE) as case:
        case.samples = time_calls(run, seconds=_SECONDS * script.options.scale, warm_up=2)
