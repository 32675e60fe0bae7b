"""Runs cases in a process of their own, and goes on behind one that ended it."""

from __future__ import annotations

import json
import mmap
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.folders import Images, OldZarr, Zarr
from tests.fuzz.messages import Examples, SequenceExamples, Tensors
from tests.fuzz.mutate import mutated
from tests.fuzz.remote import RemoteCsv, RemoteLines, RemoteParquet, RemoteRecords
from tests.fuzz.service import Frames, Hello, WorkerFrames, WorkerHello
from tests.fuzz.targets import (
    Arrow,
    Csv,
    Database,
    GzipLines,
    GzipPieces,
    GzipRecords,
    Lines,
    Npy,
    Parquet,
    Pieces,
    Position,
    Records,
    Stored,
    Target,
    ZlibRecords,
)
from workbench.errors import WorkbenchError

TARGETS: dict[str, type[Target]] = {
    target.name: target
    for target in (
        Records, GzipRecords, ZlibRecords, Examples, SequenceExamples, Tensors, Lines, GzipLines, Pieces, GzipPieces,
        Database, Csv, Parquet, Arrow, Npy, Images, Zarr, OldZarr, Stored, Position,
        RemoteRecords, RemoteLines, RemoteCsv, RemoteParquet, Frames, Hello,
        WorkerFrames, WorkerHello,
    )
}  # fmt: skip
# The command that runs the cases.
CHILD = ["-m", "tests.fuzz.run"]
CASE_SECONDS = 60
MEMORY_BYTES = 2 << 30
MOST_FINDINGS = 20
_LOOK_SECONDS = 0.2
_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Finding:
    """What went wrong.

    Attributes:
      reader: Which reader.
      case: Number of the case.
      text: What happened.
    """

    reader: str
    case: int
    text: str

    def __str__(self) -> str:
        return f"{self.reader} case {self.case}: {self.text}"


def fuzz(
    name: str, seed: int, cases: int, first: int = 0, stop: threading.Event | None = None
) -> tuple[list[Finding], int]:
    """Runs cases.

    Args:
      name: The name of the reader.
      seed: From which, with their numbers, cases follow.
      cases: How many.
      first: Number of the first one.
      stop: Ends them, and the process that runs them, once it is set.

    Returns:
      What was found, at most 20, and how many inputs were refused as they should be.
    """
    stop = stop or threading.Event()
    findings: list[Finding] = []
    refused = 0
    end = first + cases
    with tempfile.TemporaryDirectory(prefix="workbench-fuzz-") as folder:
        progress = Path(folder) / "progress"
        while first < end and len(findings) < MOST_FINDINGS and not stop.is_set():
            progress.write_bytes(struct.pack("<QQ", first, 0))
            scratch = Path(folder) / "scratch"
            scratch.mkdir(exist_ok=True)
            command = [sys.executable, *CHILD, name, str(seed), str(first), str(end)]
            done = _child_ended([*command, str(progress), str(scratch)], stop)
            if stop.is_set():
                break
            case, part = struct.unpack("<QQ", progress.read_bytes())
            refused += part
            findings += [Finding(name, *json.loads(line)) for line in done.stdout.splitlines()]
            if done.returncode == 0:
                break
            what = "took too long" if done.returncode == -signal.SIGALRM else f"ended with {done.returncode}"
            findings.append(Finding(name, case, f"the process {what}: {done.stderr[-800:]}"))
            first = case + 1
    return findings, refused


def _child_ended(command: list[str], stop: threading.Event) -> subprocess.CompletedProcess[str]:
    with subprocess.Popen(
        command, cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        while True:
            try:
                output, errors = process.communicate(timeout=_LOOK_SECONDS)
            except subprocess.TimeoutExpired:
                if stop.is_set():
                    process.kill()
            else:
                return subprocess.CompletedProcess(command, process.returncode, output, errors)


def replay(name: str, seed: int, case: int) -> None:
    """Runs one case in this process.

    Raises:
      Exception: What the case raises, if that is not right.
    """
    with tempfile.TemporaryDirectory(prefix="workbench-fuzz-") as folder:
        target = TARGETS[name](Path(folder))
        try:
            _run(target, seed, case)
        except WorkbenchError as error:
            print(f"refused: {type(error).__name__}: {error}")


def _run(target: Target, seed: int, case: int) -> None:
    rng = random.Random(f"{target.name} {seed} {case}")
    good = rng.choice(target.inputs)
    target.check(target.repaired(mutated(good, rng), rng))


def _child(name: str, seed: int, first: int, end: int, progress: str, scratch: str) -> None:
    warnings.simplefilter("ignore")
    target = TARGETS[name](Path(scratch))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    refused = told = 0
    with open(progress, "r+b") as file, mmap.mmap(file.fileno(), 16) as page:
        for case in range(first, end):
            page[:] = struct.pack("<QQ", case, refused)
            signal.setitimer(signal.ITIMER_REAL, CASE_SECONDS)  # an alarm's default action ends the process
            try:
                _run(target, seed, case)
            except WorkbenchError:
                refused += 1
            except Exception as error:
                last = traceback.format_exception_only(error)[-1].strip()
                frames = traceback.extract_tb(error.__traceback__)
                text = f"{last[:400]} at {frames[-1].filename}:{frames[-1].lineno}"
                print(json.dumps([case, text]), flush=True)
                told += 1
                if told == MOST_FINDINGS:
                    break
        page[:] = struct.pack("<QQ", end, refused)
    sys.stdout.flush()
    os._exit(0)  # how libraries shut down at their memory limit is not tested


if __name__ == "__main__":
    _child(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5], sys.argv[6])
