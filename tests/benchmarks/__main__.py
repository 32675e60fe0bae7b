"""Runs ours and the peers side by side, in the same rounds, and prints ratios.

    python -m tests.benchmarks [--suite dispatch,training] [--rounds 5] [--peers PYTHON] [--tensorflow PYTHON]

Peers are no dependencies of ours: they live in environments of their own, and what is missing is reported as not
measured. The report goes to the terminal and, with all rows, to tests/benchmarks/results/.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import sys
from pathlib import Path
from typing import Any

from tests.benchmarks.environments import environments
from tests.benchmarks.machine import Machine
from tests.benchmarks.report import markdown
from tests.benchmarks.rounds import run_rounds
from tests.benchmarks.suites import INPUT_FILES, SUITES

RESULTS = Path(__file__).parent / "results"


def main() -> int:
    """Runs what was asked for; returns 1 if something failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    everything = ",".join(name for name in SUITES if name != "soak")
    parser.add_argument("--suite", default=everything, help=f"of {', '.join(SUITES)}; default: all but soak")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--peers",
        default="",
        metavar="PYTHON",
        help="has torch, jax, grain and the other peers",
    )
    parser.add_argument("--tensorflow", default="", metavar="PYTHON", help="has tensorflow-cpu")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="multiplies time budgets: 0.1 for a quick look"
    )
    parser.add_argument("--only", default="", help="only jobs whose command contains this")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args()
    suites = options.suite.split(",")
    unknown = [name for name in suites if name not in SUITES]
    if unknown:
        parser.error(f"no such suite: {', '.join(unknown)}; there are {', '.join(SUITES)}")
    found = environments(options.peers, options.tensorflow)
    machine = Machine.this(found)
    jobs = [
        (suite, job)
        for suite in suites
        for job in SUITES[suite]
        if options.only in job.command or job is INPUT_FILES
    ]
    rows: list[dict[str, Any]] = []
    try:
        for row in run_rounds(jobs, found, rounds=options.rounds, scale=options.scale):
            rows.append(row)  # noqa: PERF402 - so that an interrupt keeps those that there are
    except KeyboardInterrupt:
        print("interrupted: what has been measured is kept", flush=True)
    rounds = 1 + max((row["round"] for row in rows if "round" in row), default=0)
    report = markdown(rows, machine, rounds=rounds, scale=options.scale)
    options.out.mkdir(parents=True, exist_ok=True)
    name = "-".join((machine.date, machine.slug, *(suites if options.suite != everything else ())))
    (options.out / f"{name}.md").write_text(report)
    data = {
        "machine": dataclasses.asdict(machine),
        "finished": datetime.datetime.now().isoformat(timespec="seconds"),
        "rounds": rounds,
        "scale": options.scale,
        "rows": rows,
    }
    (options.out / f"{name}.json").write_text(json.dumps(data, indent=1))
    print(f"\n{report}\nwritten to {options.out / name}.md and .json")
    return 1 if any("error" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
