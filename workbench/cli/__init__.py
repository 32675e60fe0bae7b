"""The command `workbench` and its parts: `lab`, `demo`, `dashboard`, `docs`, `course`, `data-dispatcher` and so on.

Each command lives in a file of its own, which is imported when the command is used.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections.abc import Sequence
from typing import Any

from workbench import __version__

_JOB = re.compile("[a-z][a-z0-9_]*")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status: 0 for success, 1 for a failure, 2 for wrong usage.

    Args:
      argv: The arguments after the program's name; those of the process by default.
    """
    options = _parser().parse_args(sys.argv[1:] if argv is None else argv)
    command = importlib.import_module(f"workbench.cli.{options.command.replace('-', '_')}")
    try:
        status: int = command.run(options)
    except KeyboardInterrupt:
        return 130
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="workbench", description="Drive many devices from a notebook, and see what happens there."
    )
    parser.add_argument("--version", action="version", version=f"workbench {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)

    lab = commands.add_parser("lab", help="open JupyterLab on the quickstart notebook")
    lab.add_argument("--port", type=int, default=8888, help="the first port to try (default: %(default)s)")
    lab.add_argument("--no-browser", action="store_true", help="print the address instead of opening it")

    demo = commands.add_parser("demo", help="train on handwritten digits, in this terminal")
    demo.add_argument("--replicas", type=_positive, default=2, help="how many (default: %(default)s)")
    demo.add_argument(
        "--epochs", type=_positive, default=15, help="passes over the data (default: %(default)s)"
    )

    dashboard = commands.add_parser(
        "dashboard", help="the views of a job or of a recorded run, as a web page"
    )
    dashboard.add_argument(
        "what",
        nargs="?",
        metavar="ADDRESS | RUN.parquet",
        help="name, id or scheduler address of one of your jobs on this machine, a recorded run, or a folder of runs "
        "(default: the jobs that run now)",
    )
    dashboard.add_argument("--port", type=int, default=0, help="default: a free one")
    dashboard.add_argument(
        "--address",
        default="127.0.0.1",
        help="where to listen; off loopback it needs TLS (default: %(default)s)",
    )
    dashboard.add_argument("--certificate", default="", metavar="FILE", help="the TLS certificate")
    dashboard.add_argument("--key", default="", metavar="FILE", help="its key, without a passphrase")
    dashboard.add_argument(
        "--without-tls",
        action="store_true",
        help="allow other addresses without TLS, behind a proxy that provides it",
    )
    dashboard.add_argument(
        "--origin",
        action="append",
        default=[],
        metavar="NAME:PORT",
        help="the name by which browsers reach it, or https://NAME behind a proxy; once for each name",
    )
    dashboard.add_argument(
        "--no-browser", action="store_true", help="print the address instead of opening it"
    )

    _add_data_service(commands)
    _add_join(commands)
    docs = commands.add_parser("docs", help="open the guide: tutorials, how-to, reference; works offline")
    docs.add_argument("--no-browser", action="store_true", help="print where it is instead of opening it")
    _add_course(commands)
    commands.add_parser("doctor", help="what is installed, which devices there are, what is missing")
    return parser


def _add_course(commands: Any) -> None:
    course = commands.add_parser(
        "course",
        help="write the labs as a course: for students without solutions, for instructors with notes",
        description="Name one folder or both. The student's version of a lab has no solutions and keeps the checks. "
        "The instructor's has the solutions and, below each check, how to mark the exercise and which errors are "
        "typical. A second run replaces what the first one wrote. If a file changed since or came from elsewhere, "
        "the command writes nothing.",
    )
    course.add_argument("--student", metavar="DIR", help="write the student's version there")
    course.add_argument("--instructor", metavar="DIR", help="write the instructor's version there")


def _add_data_service(commands: Any) -> None:
    dispatcher = commands.add_parser(
        "data-dispatcher", help="a dispatcher of the data service (wb.data.service), until Ctrl-C"
    )
    dispatcher.add_argument(
        "--work-dir",
        metavar="FOLDER",
        help="keep a journal and the token there; a restart with the same folder and port continues",
    )
    dispatcher.add_argument(
        "--address-file",
        metavar="FILE",
        help="write the address there, for `workbench data-worker FILE`; only you can read it",
    )
    dispatcher.add_argument(
        "--worker-timeout",
        type=_positive,
        default=10,
        metavar="SECONDS",
        help="how long a worker may be silent before others take its work (default: %(default)s)",
    )
    worker = commands.add_parser("data-worker", help="a worker of the data service, until Ctrl-C")
    worker.add_argument(
        "dispatcher",
        metavar="ADDRESS | FILE",
        help="what data-dispatcher printed, or the file that it wrote; everybody on the machine can see an ADDRESS "
        "given here, token included",
    )
    worker.add_argument(
        "--dispatcher-timeout",
        type=_positive,
        default=3600,
        metavar="SECONDS",
        help="how long to try to reach the dispatcher (default: %(default)s)",
    )
    worker.add_argument(
        "--worker-address",
        metavar="HOST:PORT",
        help="the address by which consumers reach it; %%port%% stands for its port",
    )
    for parser in (dispatcher, worker):
        parser.add_argument("--port", type=int, default=0, help="default: a free one")
        parser.add_argument(
            "--host",
            default="127.0.0.1",
            help="where to listen; off loopback it needs TLS (default: %(default)s)",
        )
        parser.add_argument(
            "--authority", default="", metavar="FILE", help="certificate of the TLS authority"
        )
        parser.add_argument(
            "--certificate", default="", metavar="FILE", help="the TLS certificate of this server"
        )
        parser.add_argument("--key", default="", metavar="FILE", help="its key, without a passphrase")


def _add_join(commands: Any) -> None:
    join = commands.add_parser(
        "join",
        help="make this process one task of a Dask cluster, until Ctrl-C",
        description="Start it once for each task: under srun, with TF_CONFIG, in pods or in terminals. The tasks "
        "become one Dask cluster with TLS, to which wb.connect attaches. All tasks need the same secret. By default it "
        "is kept in ~/.local/share/workbench/join-secret; WORKBENCH_SECRET_FILE names another file, WORKBENCH_SECRET "
        "the secret itself.",
    )
    join.add_argument(
        "task",
        nargs="?",
        default="",
        metavar="TASK",
        help="chief, worker:1, ps:0 …, by hand (default: what TF_CONFIG, Slurm or --pods say)",
    )
    join.add_argument(
        "--chief",
        default="127.0.0.1:8786",
        metavar="HOST:PORT",
        help="where the chief listens, by hand (default: %(default)s, this machine only)",
    )
    join.add_argument(
        "--jobs",
        type=_counts,
        metavar="worker=2,ps=1",
        help="how many tasks each job has; under srun all are workers by default, by hand the chief waits for these "
        "tasks",
    )
    join.add_argument(
        "--pods",
        action="append",
        type=_selector,
        default=[],
        metavar="worker=LABELS",
        help="which pods are the tasks of a job, such as worker=job-name=train; once for each job",
    )
    join.add_argument(
        "--replicas",
        type=_positive,
        default=1,
        help="CPU devices of this task, a process each, where it has no GPUs (default: %(default)s)",
    )
    join.add_argument(
        "--timeout",
        type=_positive,
        default=300,
        metavar="SECONDS",
        help="how long to wait for the chief and, as the chief, for the others (default: %(default)s)",
    )


def _counts(text: str) -> dict[str, int]:
    """Reads "worker=2,ps=1"."""
    counts: dict[str, int] = {}
    for part in text.split(","):
        job, _, count = part.partition("=")
        if not _JOB.fullmatch(job) or not count.isdecimal() or int(count) < 1:
            raise argparse.ArgumentTypeError(f"jobs read like worker=2,ps=1, got {text}")
        counts[job] = int(count)
    return counts


def _selector(text: str) -> tuple[str, str]:
    """Reads "worker=job-name=train"."""
    job, _, labels = text.partition("=")
    if not _JOB.fullmatch(job) or not labels:
        raise argparse.ArgumentTypeError(f"pods read like worker=job-name=train, got {text}")
    return job, labels


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1, got {text}")
    return number
