"""Runs jobs in rounds, A B C A B C …, so that the machine's drift hits all of them alike."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks import input_cases
from tests.benchmarks.environments import Environment
from tests.benchmarks.noise import wait_until_quiet
from tests.benchmarks.scripts import run_script
from tests.benchmarks.suites import Job

_MOST_SECONDS = 900.0
_QUIET_SECONDS = 3.0


def run_rounds(
    jobs: Sequence[tuple[str, Job]], found: dict[str, Environment], *, rounds: int, scale: float
) -> Iterator[dict[str, Any]]:
    """Runs (suite, job) pairs so many times over.

    Yields:
      The rows that the scripts write, each with its "round"; {"suite", "who", "missing"} for jobs that cannot run here.
    """
    able = []
    for suite, job in jobs:
        lacking = found[job.environment].lacks(job.needs)
        if lacking:
            yield {"suite": suite, "who": job.who, "missing": lacking, "environment": job.environment}
        else:
            able.append((suite, job))
    with tempfile.TemporaryDirectory(prefix="wb-benchmarks-") as files:
        for number in range(rounds):
            for suite, job in able:
                print(f"round {number + 1} of {rounds}, {suite}: {job.command}", flush=True)
                wait_until_quiet(_QUIET_SECONDS)
                for row in run_job(suite, job, found[job.environment].python, scale=scale, files=files):
                    yield row | {"round": number}


def run_job(suite: str, job: Job, python: str, *, scale: float, files: str) -> Iterator[dict[str, Any]]:
    """Runs one script and yields its rows; one with an "error" more if the script did not end well.

    Args:
      suite: The script's suite.
      job: The script.
      python: The interpreter.
      scale: Multiplies time budgets.
      files: A folder that all scripts share.
    """
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "rows.jsonl"
        trouble = run_script(
            python, job.command, "--json", str(results), "--scale", str(scale),
            seconds=_MOST_SECONDS, environment={input_cases.FILES: files},
        )  # fmt: skip
        if results.exists():
            yield from map(json.loads, results.read_text().splitlines())
        if trouble:
            yield {"suite": suite, "who": job.who, "what": job.command, "replicas": 0, "error": trouble}
