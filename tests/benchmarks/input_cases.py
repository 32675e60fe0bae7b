"""What the suite "input" measures: names of its cases, sizes of its data, and how fast a pipeline is gone through.

Ours and all peers read it, so a case has one name. Standard library only: interpreters without our dependencies
import it too.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.benchmarks.measure import Script, time_calls

FILES = "WB_BENCHMARK_FILES"
"""The environment variable that names the folder of the files; the runner sets it to one that it removes."""

RANGE = "range, shuffle, batch, map"
RANGE_MAP = "range, map, batch"
SHUFFLED = "shuffled batches in memory"
SMALL_BUFFER = "shuffled batches in memory, buffer of 10,000"
FIRST = "first shuffled batch"
LINES, LINES_SINGLE = "text lines, batch(1024)", "text lines, one by one"
RECORDS, RECORDS_SINGLE = "TFRecord, batch(128)", "TFRecord, one by one"
TABLE, TABLE_COLUMNS = "Parquet, four columns", "Parquet, two of four columns"
PARSED_VIEWS = "parse images of 100 kB, as views"
PARSED = {
    "parse 784 floats": "floats",
    "parse images of 100 kB": "images",
    PARSED_VIEWS: "images",  # peers copy these functions
    "parse 26 scalars": "scalars",
}
"""The cases that parse examples, and the file of each."""
AHEAD = "producer and consumer of 2 ms, prefetch(4)"
SOURCES = "eight sources of 2 ms, interleaved"
PARALLEL = "map that waits 2 ms, 8 in parallel"
PYTHON_BOUND = "map of 2 ms of Python, 2 in parallel"
ITERATED, RUN = "distribute 256x784, iterate", "distribute 256x784, iterate and run"
SERVICE_SINGLE, SERVICE_BATCHED = "data service, single elements", "data service, batch(128)"
MEMORY = "memory for a file of 1 GiB, 256 MiB allowed"

NUMBERS, EXAMPLES, BATCH = 1_000_000, 60_000, 128
LINE_COUNT, ROW_COUNT, RECORD_COUNT = 1_678_000, 4_000_000, 200_000
SLOW_SECONDS = 0.002
DISTRIBUTED_ROWS, GLOBAL_BATCH = 25_600, 256
PARSED_BATCH = 128
STARTED = 20
"""So many elements are not counted where threads and processes have to be started first."""
_SECONDS, _PASSES = 1.2, 3


def file(name: str) -> str:
    """The path of one of the suite's files.

    Raises:
      FileNotFoundError: if nobody has made it.
    """
    folder = os.environ.get(FILES, "")
    path = Path(folder) / name
    if not folder or not path.exists():
        raise FileNotFoundError(
            f"there is no {name!r} in {folder!r}; set {FILES} to a folder and run tests.benchmarks.ours.input.files"
        )
    return str(path)


def record_files() -> list[str]:
    """Eight files of 25,000 records of about 1 kB."""
    return [file(f"part-{number}.tfrecord") for number in range(8)]


def measure_rate(
    script: Script,
    who: str,
    what: str,
    make: Callable[[], Iterable[Any]],
    *,
    per_item: int = 1,
    unit: str,
    skip: int = 0,
) -> None:
    """Measures how many elements a second `make()` gives, from the opening of an iterator on.

    Args:
      script: The script whose case it is.
      who: The program whose figure it is.
      what: One of the names above.
      make: Makes the pipeline; its items are dropped.
      per_item: Elements per item, such as the rows of a batch.
      unit: Such as "records/s".
      skip: Items at the start of each pass that do not count, and their time neither.
    """
    if not script.wants(what, who):
        return
    with script.case(who, what, unit=unit, scale=1, replicas=0) as case:
        seconds = _SECONDS * script.options.scale / _PASSES
        case.samples = [per_item * _rate(make, seconds, skip) for _ in range(_PASSES)]


def measure_first(script: Script, who: str, make: Callable[[], Iterable[Any]]) -> None:
    """Measures how long the first item of `make()` takes, in ms."""
    if not script.wants(FIRST, who):
        return
    with script.case(who, FIRST, unit="ms", scale=1e3, replicas=0) as case:
        case.samples = time_calls(
            lambda: next(iter(make())), seconds=0.8 * script.options.scale, most=30, warm_up=2
        )


def _rate(make: Callable[[], Iterable[Any]], seconds: float, skip: int) -> float:
    start = time.perf_counter()
    iterator = iter(make())
    if skip:
        for _ in itertools.islice(iterator, skip):
            pass
        start = time.perf_counter()
    count, passed = 0, 0.0
    while passed < seconds:
        before = count
        for _ in itertools.islice(iterator, 64):
            count += 1
        passed = time.perf_counter() - start
        if count - before < 64:
            break
    del iterator
    return count / passed
