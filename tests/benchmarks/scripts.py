"""Runs a script of the benchmarks in its environment, and leaves no process of it behind."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import psutil

_ROOT = Path(__file__).parents[2]


def run_script(
    python: str,
    command: str,
    *options: str,
    seconds: float,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Runs a script to its end; after that time, ends it with all that it has started.

    Args:
      python: The interpreter.
      command: A module of `tests.benchmarks` and its arguments, as in `Job.command`.
      options: More arguments.
      seconds: How long it may run.
      environment: Variables, besides those of this process.

    Returns:
      Why the script did not end well, or "".
    """
    module, *arguments = command.split()
    process = subprocess.Popen(
        [python, "-m", f"tests.benchmarks.{module}", *arguments, *options],
        cwd=_ROOT,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": ""} | dict(environment or {}),
    )
    try:
        _, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"not done after {seconds:.0f} s"
    finally:
        end(process)
    if process.returncode:
        return f"ended with {process.returncode}: {errors.strip().rpartition(chr(10))[2]}"
    return ""


def end(process: subprocess.Popen[str]) -> None:
    """Ends a process with all that it has started, whatever process group they are in."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in psutil.Process(process.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
    process.kill()
    process.communicate(timeout=30)
