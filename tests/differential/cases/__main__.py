"""Compares random cases with TensorFlow's outcomes; see the docstring of the package."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.differential.cases.comparing import AREAS, difference, random_cases
from tests.reference.interpreter.clusters import Clusters
from tests.reference.interpreter.codec import Json
from tests.reference.interpreter.world import World


def main() -> int:
    """Prints the cases that differ; 1 if any does."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.cases", description=__doc__)
    parser.add_argument("--tensorflow", required=True, help="an interpreter that can import TensorFlow")
    parser.add_argument("--area", choices=sorted(AREAS), required=True)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--exact", action="store_true", help="compare the classes of errors about arguments, too"
    )
    arguments = parser.parse_args()
    cases = random_cases(arguments.area, arguments.seed, arguments.cases)
    differing = 0
    clusters = Clusters()
    with tempfile.TemporaryDirectory() as folder:
        for number, (given, outcome) in enumerate(
            zip(cases, _recorded(arguments.tensorflow, cases), strict=True)
        ):
            scratch = Path(folder, str(number))
            scratch.mkdir()
            if text := difference(given, outcome, World(scratch, clusters), exact=arguments.exact):
                differing += 1
                print(
                    f"{json.dumps(given)}\n  TensorFlow: {json.dumps(outcome)[:600]}\n  workbench:  {text[:400]}"
                )
    clusters.close()
    print(f"{differing} of {len(cases)} cases differ")
    return 1 if differing else 0


def _recorded(python: str, cases: list[Json]) -> list[Any]:
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder, "given.json"), Path(folder, "found.json")
        given.write_text(json.dumps(cases))
        subprocess.run(
            [python, "-m", "tests.differential.cases.tensorflow", str(given), str(found)],
            env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
            check=True,
        )
        return json.loads(found.read_text())  # type: ignore[no-any-return]


if __name__ == "__main__":
    sys.exit(main())
