"""Fuzzes readers; see the docstring of the package."""

from __future__ import annotations

import argparse
import datetime
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tests.fuzz.results import Result, load, save
from tests.fuzz.run import MOST_FINDINGS, TARGETS, Finding, fuzz, replay

_SAVED_EVERY = 10_000


def main() -> int:
    """Runs what the command line asks for; 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--reader", choices=["all", *TARGETS], default="all")
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=_positive, default=1, help="how many run cases at the same time")
    parser.add_argument("--case", type=int, help="run this case only, in this process")
    parser.add_argument(
        "--results", type=Path, help="a file to count cases in; cases of this seed in it do not run again"
    )
    arguments = parser.parse_args()
    names = list(TARGETS) if arguments.reader == "all" else [arguments.reader]
    if arguments.case is not None:
        for name in names:
            replay(name, arguments.seed, arguments.case)
        return 0
    found: list[Finding] = []
    stops = {name: threading.Event() for name in names}
    with ThreadPoolExecutor(arguments.processes) as pool:
        try:
            started = {
                name: _start(
                    partial(pool.submit, fuzz, stop=stop),
                    name,
                    arguments.seed,
                    arguments.cases,
                    arguments.results,
                )
                for name, stop in stops.items()
            }
            for name, (result, parts) in started.items():
                found += _count(name, result, parts, arguments.results, stops[name])
        finally:
            for stop in stops.values():
                stop.set()
            pool.shutdown(cancel_futures=True)
    return 1 if found else 0


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


Part = tuple[int, Future[tuple[list[Finding], int]]]
"""How many cases, and what comes of them: what was found, and how many were refused."""


def _start(
    start: Callable[[str, int, int, int], Future[tuple[list[Finding], int]]],
    name: str,
    seed: int,
    cases: int,
    path: Path | None,
) -> tuple[Result, list[Part]]:
    """The known result of a reader, and its missing cases in parts, each in a process of its own.

    Args:
      start: Runs cases of a reader: `fuzz` on a thread.
      name: The name of the reader.
      seed: The seed of the cases.
      cases: How many cases to reach.
      path: The file that counts results; None for none.
    """
    known = load(path).get(name) if path is not None else None
    result = known if known is not None and known.seed == seed else Result(seed, 0, 0, 0, "")
    parts = []
    for first in range(result.cases, cases, _SAVED_EVERY):
        count = min(_SAVED_EVERY, cases - first)
        parts.append((count, start(name, seed, count, first)))
    return result, parts


def _count(
    name: str, result: Result, parts: list[Part], path: Path | None, stop: threading.Event
) -> list[Finding]:
    """Waits for the parts and counts them in order, so that the count has no gaps.

    Args:
      name: The name of the reader.
      result: The known result.
      parts: The cases that follow it.
      path: The file that counts results; None for none.
      stop: Ends those parts that run.
    """
    began = time.monotonic()
    found: list[Finding] = []
    first = result.cases
    for count, part in parts:
        findings, refused = part.result()
        for finding in findings:
            print(f"  {finding}", flush=True)
        found += findings
        if len(findings) >= MOST_FINDINGS:  # the last cases did not run
            for _, later in parts:
                later.cancel()
            stop.set()  # the next part may already be running
            break
        result = Result(
            result.seed,
            result.cases + count,
            result.refused + refused,
            result.findings + len(findings),
            datetime.datetime.now(datetime.UTC).date().isoformat(),
        )
        if path is not None:
            save(path, {**load(path), name: result})
    print(
        f"{name}: {result.cases - first:,} cases, {result.refused:,} of {result.cases:,} refused, "
        f"{len(found)} findings, {time.monotonic() - began:,.0f} s",
        flush=True,
    )
    return found


if __name__ == "__main__":
    sys.exit(main())
