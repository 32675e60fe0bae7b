"""Fuzzes readers; see the docstring of the package."""

from __future__ import annotations

import argparse
import sys
import time

from tests.fuzz.run import TARGETS, Finding, fuzz, replay


def main() -> int:
    """Runs what the command line asks for; 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--reader", choices=["all", *TARGETS], default="all")
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="run this case only, in this process")
    arguments = parser.parse_args()
    names = list(TARGETS) if arguments.reader == "all" else [arguments.reader]
    if arguments.case is not None:
        for name in names:
            replay(name, arguments.seed, arguments.case)
        return 0
    found: list[Finding] = []
    for name in names:
        started = time.monotonic()
        findings, refused = fuzz(name, arguments.seed, arguments.cases)
        seconds = time.monotonic() - started
        print(
            f"{name}: {arguments.cases:,} cases, {refused:,} refused, {len(findings)} findings, {seconds:,.0f} s",
            flush=True,
        )
        for finding in findings:
            print(f"  {finding}", flush=True)
        found += findings
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
