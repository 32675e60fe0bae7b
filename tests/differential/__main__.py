"""Compares random pipelines with TensorFlow's; see the docstring of the package."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tests.differential.differences import accepted, difference
from tests.differential.kinds import KINDS

_ROOT = Path(__file__).parents[2]


def main() -> int:
    """Prints the programs that differ; 1 if any does."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--tensorflow", required=True, help="an interpreter that can import TensorFlow")
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--kind", choices=list(KINDS), default="plain")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=10, help="how many differences of a kind to print")
    parser.add_argument("--accepted", action="store_true", help="also print what only TensorFlow refuses")
    parser.add_argument("--record", type=Path, help="a file for what programs give that TensorFlow accepts")
    arguments = parser.parse_args()
    source = KINDS[arguments.kind](arguments.seed)
    programs = [source.next() for _ in range(arguments.programs)]
    theirs = _outcomes(arguments.tensorflow, "tensorflow", programs)
    if arguments.record:
        found = [
            {"program": program, "gives": one}
            for program, one in zip(programs, theirs, strict=True)
            if "made" not in one  # every outcome here would equal it
        ]
        arguments.record.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    ours = _outcomes(sys.executable, "workbench", programs)
    kinds: Counter[str] = Counter()
    for program, one, other in zip(programs, theirs, ours, strict=True):
        kind = difference(one, other) or ("accepted" if arguments.accepted and accepted(one, other) else "")
        kinds[kind or "same"] += 1
        if kind and kinds[kind] <= arguments.most:
            print(f"{kind}: {program}\n  TensorFlow: {_short(one)}\n  workbench:  {_short(other)}")
    print(", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())))
    return 0 if set(kinds) <= {"same"} else 1


def _outcomes(python: str, library: str, programs: list[str]) -> list[dict[str, Any]]:
    """The outcome of each program.

    A program that ends the process, as some do with TensorFlow, counts as refused by it.
    """
    found: list[dict[str, Any]] = []
    while len(found) < len(programs):
        done = subprocess.run(
            [python, "-m", "tests.differential.evaluate", library],
            cwd=_ROOT,
            input=json.dumps(programs[len(found) :]),
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        found += [json.loads(line) for line in done.stdout.splitlines()]
        if done.returncode > 0:
            raise SystemExit(
                f"{python} -m tests.differential.evaluate {library} ended with {done.returncode}"
            )
        if done.returncode and len(found) < len(programs):  # not by what it does at exit
            print(f"{library} is ended by {programs[len(found)]}")
            found.append({"made": {"error": ["Ended"], "text": "", "file": ""}})
    return found


def _short(outcome: dict[str, Any]) -> str:
    text = json.dumps(outcome, ensure_ascii=False)
    return text if len(text) < 400 else f"{text[:400]}…"


if __name__ == "__main__":
    sys.exit(main())
