"""Fuzzes readers; see the docstring of the package."""

from __future__ import annotations

import argparse
import datetime
import sys
import time
from pathlib import Path

from tests.fuzz.results import Result, load, save
from tests.fuzz.run import MOST_FINDINGS, TARGETS, Finding, fuzz, replay

_SAVED_EVERY = 20_000


def main() -> int:
    """Runs what the command line asks for; 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--reader", choices=["all", *TARGETS], default="all")
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
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
    for name in names:
        found += _fuzz(name, arguments.seed, arguments.cases, arguments.results)
    return 1 if found else 0


def _fuzz(name: str, seed: int, cases: int, path: Path | None) -> list[Finding]:
    started = time.monotonic()
    known = load(path).get(name) if path is not None else None
    result = known if known is not None and known.seed == seed else Result(seed, 0, 0, 0, "")
    found: list[Finding] = []
    first = result.cases
    while result.cases < cases:
        count = min(_SAVED_EVERY, cases - result.cases)
        findings, refused = fuzz(name, seed, count, result.cases)
        for finding in findings:
            print(f"  {finding}", flush=True)
        found += findings
        if len(findings) >= MOST_FINDINGS:  # the last cases did not run
            break
        result = Result(
            seed,
            result.cases + count,
            result.refused + refused,
            result.findings + len(findings),
            datetime.datetime.now(datetime.UTC).date().isoformat(),
        )
        if path is not None:
            save(path, {**load(path), name: result})
    print(
        f"{name}: {result.cases - first:,} cases, {result.refused:,} of {result.cases:,} refused, "
        f"{len(found)} findings, {time.monotonic() - started:,.0f} s",
        flush=True,
    )
    return found


if __name__ == "__main__":
    sys.exit(main())
