"""Runs jobs in rounds, A B C A B C …, so that the machine's drift hits all of them alike."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

from tests.benchmarks import input_cases
from tests.benchmarks.environments import Environment
from tests.benchmarks.noise import wait_until_quiet
from tests.benchmarks.suites import Job

_ROOT = Path(__file__).parents[2]
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
        module, *arguments = job.command.split()
        command = [python, "-m", f"tests.benchmarks.{module}", *arguments]
        process = subprocess.Popen(
            [*command, "--json", str(results), "--scale", str(scale)],
            cwd=_ROOT,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": "", input_cases.FILES: files},
        )
        started, trouble = time.monotonic(), ""
        try:
            _, errors = process.communicate(timeout=_MOST_SECONDS)
            if process.returncode:
                trouble = f"ended with {process.returncode}: {errors.strip().splitlines()[-1:]}"
        except subprocess.TimeoutExpired:
            trouble = f"not done after {time.monotonic() - started:.0f} s"
        finally:
            _end(process)
        if results.exists():
            yield from map(json.loads, results.read_text().splitlines())
        if trouble:
            yield {"suite": suite, "who": job.who, "what": job.command, "replicas": 0, "error": trouble}


def _end(process: subprocess.Popen[str]) -> None:
    """Ends a script with all processes that it has started, whatever process group they are in."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in psutil.Process(process.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
    process.kill()
    process.communicate(timeout=30)
