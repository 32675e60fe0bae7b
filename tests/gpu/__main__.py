"""Runs everything that one GPU can show, prints one table, keeps it with date and hardware.

python -m tests.gpu [--quick] [--only NAME]

It builds nothing and takes under ten minutes, after which it is ended with the stacks of all threads; CuPy compiles a
few kernels. Each line is one check: "ok", "FAILED" with what was found, or "skipped" with the reason. How far it is
goes to stderr. The exit code is 1 if a check failed, 2 if there is no GPU that could be checked.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import sys
import time
import traceback
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from tests.gpu import checks
from tests.gpu.hardware import hardware
from tests.gpu.nccl import allow_sharing
from tests.gpu.results import Row, Skip, table
from workbench.errors import BackendUnavailable

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"
LIMIT_SECONDS = 600.0


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.gpu", description="checks on one NVIDIA GPU")
    parser.add_argument("--quick", action="store_true", help="small arrays, few rounds")
    parser.add_argument("--only", default="", help="checks whose name contains this")
    options = parser.parse_args(argv)
    chosen = {name: check for name, check in checks.ALL.items() if options.only in name}
    if not chosen:
        parser.error(f"no check's name contains {options.only!r}; there are {', '.join(checks.ALL)}")
    try:
        found = hardware()
    except BackendUnavailable as error:
        print(f"no GPU to check: {error}", file=sys.stderr)
        return 2
    allow_sharing()
    faulthandler.dump_traceback_later(LIMIT_SECONDS, exit=True)  # nothing else ends a hang in C code
    print(json.dumps(found, indent=1))
    rows: list[Row] = []
    for name, check in chosen.items():
        print(f"{name} …", file=sys.stderr, flush=True)
        rows += _run(name, check, quick=options.quick)
    faulthandler.cancel_dump_traceback_later()
    print("\n" + table(rows))
    RESULTS.mkdir(parents=True, exist_ok=True)
    when = datetime.now(UTC)
    path = RESULTS / f"gpu-{when:%Y%m%d-%H%M%S}.json"
    kept = {"date": when.isoformat(), "hardware": found, "rows": [asdict(row) for row in rows]}
    path.write_text(json.dumps(kept, indent=1) + "\n")
    print(f"\nkept in {path}")
    return int(any(row.state == "FAILED" for row in rows))


def _run(name: str, check: checks.Check, *, quick: bool) -> list[Row]:
    began = time.monotonic()
    try:
        rows = list(check(quick))
    except Skip as reason:
        rows = [Row(reason.name, "skipped", str(reason))]
    except Exception as error:
        traceback.print_exc()
        rows = [Row(name, "FAILED", f"{type(error).__name__}: {error}"[:300])]
    seconds = time.monotonic() - began
    return [Row(row.name or name, row.state, row.found, row.bar, round(seconds, 1)) for row in rows]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
