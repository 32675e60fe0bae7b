"""Runs everything that one GPU can show, prints one table, keeps it with date and hardware.

python -m tests.gpu [--quick] [--only NAME]

It builds nothing and takes under ten minutes; CuPy compiles a few kernels. Each line is one check: "ok", "FAILED" with
what was found, or "skipped" with the reason. The exit code is the number of failures.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from tests.gpu import checks
from tests.gpu.hardware import hardware
from tests.gpu.results import Row, Skip, table

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.gpu", description="checks on one NVIDIA GPU")
    parser.add_argument("--quick", action="store_true", help="small arrays, few rounds")
    parser.add_argument("--only", default="", help="checks whose name contains this")
    options = parser.parse_args(argv)
    try:
        found = hardware()
    except Exception as error:
        print(f"no GPU to test: {error}")
        return 1
    print(json.dumps(found, indent=1))
    rows: list[Row] = []
    for name, check in checks.ALL.items():
        if options.only in name:
            rows += _run(name, check, quick=options.quick)
            print(rows[-1].line(), flush=True)
    print("\n" + table(rows))
    RESULTS.mkdir(parents=True, exist_ok=True)
    when = datetime.now(UTC)
    path = RESULTS / f"gpu-{when:%Y%m%d-%H%M%S}.json"
    kept = {"date": when.isoformat(), "hardware": found, "rows": [asdict(row) for row in rows]}
    path.write_text(json.dumps(kept, indent=1) + "\n")
    print(f"\nkept in {path}")
    return sum(row.state == "FAILED" for row in rows)


def _run(name: str, check: checks.Check, *, quick: bool) -> list[Row]:
    began = time.monotonic()
    try:
        rows = list(check(quick))
    except Skip as reason:
        rows = [Row(name, "skipped", str(reason))]
    except Exception as error:
        traceback.print_exc()
        rows = [Row(name, "FAILED", f"{type(error).__name__}: {error}"[:300])]
    seconds = time.monotonic() - began
    return [Row(row.name or name, row.state, row.found, row.bar, round(seconds, 1)) for row in rows]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
