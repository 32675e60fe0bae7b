"""The arguments of each command, and their help."""

from __future__ import annotations

import argparse
import re
from typing import Any

from workbench import __version__

_JOB = re.compile("[a-z][a-z0-9_]*")


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line; `command` in its result names the file that runs."""
    workbench = argparse.ArgumentParser(
        prog="workbench",
        description="Drive many devices from a notebook as if they were one machine, and see what happens on each.",
    )
    workbench.add_argument("--version", action="version", version=f"workbench {__version__}")
    commands = workbench.add_subparsers(dest="command", title="commands", metavar="COMMAND")
    _add_lab(commands)
    _add_demo(commands)
    _add_dashboard(commands)
    _add_data_dispatcher(commands)
    _add_data_worker(commands)
    _add_join(commands)
    _add_browser(_add(commands, "docs", "open the guide in a browser; works offline"))
    _add_course(commands)
    _add(commands, "doctor", "show what is installed, which devices exist, and how to get what is missing")
    return workbench


def _add(commands: Any, name: str, does: str) -> argparse.ArgumentParser:
    """Adds a command; its own help starts with its line in the list of commands."""
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=does, description=f"{does[0].upper()}{does[1:]}."
    )
    return command


def _add_lab(commands: Any) -> None:
    lab = _add(commands, "lab", "open JupyterLab on the quickstart notebook")
    lab.add_argument("--port", type=int, default=8888, help="the first port to try (default: %(default)s)")
    _add_browser(lab)


def _add_demo(commands: Any) -> None:
    demo = _add(commands, "demo", "train a network on handwritten digits in this terminal")
    demo.add_argument(
        "--replicas", type=_positive, default=2, help="number of replicas (default: %(default)s)"
    )
    demo.add_argument(
        "--epochs", type=_positive, default=15, help="passes over the data (default: %(default)s)"
    )


def _add_dashboard(commands: Any) -> None:
    dashboard = _add(commands, "dashboard", "serve the views of a job or of a recorded run as a web page")
    dashboard.add_argument(
        "what",
        nargs="?",
        metavar="ADDRESS | RUN.parquet",
        help="the name, id or scheduler address of one of your jobs on this machine, a recorded run, or a folder of "
        "runs (default: the jobs that run now)",
    )
    _add_listening(dashboard, "--address")
    _add_certificate(dashboard, "the TLS certificate")
    dashboard.add_argument(
        "--without-tls",
        action="store_true",
        help="listen on other addresses without TLS, behind a proxy that provides it",
    )
    dashboard.add_argument(
        "--origin",
        action="append",
        default=[],
        metavar="NAME:PORT",
        help="a name by which browsers reach the dashboard, or https://NAME behind a proxy; repeat it for each name",
    )
    _add_browser(dashboard)


def _add_data_dispatcher(commands: Any) -> None:
    dispatcher = _add(
        commands, "data-dispatcher", "run a dispatcher of the data service (wb.data.service) until Ctrl-C"
    )
    dispatcher.add_argument(
        "--work-dir",
        metavar="FOLDER",
        help="a folder for the journal and the token; a restart with the same folder and port continues",
    )
    dispatcher.add_argument(
        "--address-file",
        metavar="FILE",
        help="a file for the address, for `workbench data-worker FILE`; only you can read it",
    )
    dispatcher.add_argument(
        "--worker-timeout",
        type=_positive,
        default=10,
        metavar="SECONDS",
        help="how long a worker may be silent before others take over its work (default: %(default)s)",
    )
    _add_data_server(dispatcher)


def _add_data_worker(commands: Any) -> None:
    worker = _add(commands, "data-worker", "run a worker of the data service until Ctrl-C")
    worker.add_argument(
        "dispatcher",
        metavar="ADDRESS | FILE",
        help="the address that data-dispatcher printed, or the file that it wrote; other users of this machine can see "
        "an ADDRESS on the command line, including its token",
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
        help="the address by which consumers reach this worker; %%port%% stands for its port",
    )
    _add_data_server(worker)


def _add_join(commands: Any) -> None:
    join = commands.add_parser(
        "join",
        help="make this process one task of a Dask cluster until Ctrl-C",
        description="Run this command once for each task: under srun, with TF_CONFIG, in pods or in terminals. The "
        "tasks become one Dask cluster with TLS, to which wb.connect attaches. All tasks need the same secret: the "
        "content of ~/.local/share/workbench/join-secret, of the file that WORKBENCH_SECRET_FILE names, or of the "
        "variable WORKBENCH_SECRET.",
    )
    join.add_argument(
        "task",
        nargs="?",
        default="",
        metavar="TASK",
        help="the task, such as chief, worker:1 or ps:0 (default: from TF_CONFIG, Slurm or --pods)",
    )
    join.add_argument(
        "--chief",
        default="127.0.0.1:8786",
        metavar="HOST:PORT",
        help="the address of the chief for tasks that you name (default: %(default)s, this machine only)",
    )
    join.add_argument(
        "--jobs",
        type=_counts,
        metavar="worker=2,ps=1",
        help="the number of tasks in each job, for which the chief waits; under srun, all tasks are workers by default",
    )
    join.add_argument(
        "--pods",
        action="append",
        type=_selector,
        default=[],
        metavar="worker=LABELS",
        help="the labels of the pods of a job, such as worker=job-name=train; repeat it for each job",
    )
    join.add_argument(
        "--replicas",
        type=_positive,
        default=1,
        help="the number of CPU devices, each in its own process, if the task has no GPUs (default: %(default)s)",
    )
    join.add_argument(
        "--timeout",
        type=_positive,
        default=300,
        metavar="SECONDS",
        help="how long to wait for the chief, or as the chief for the other tasks (default: %(default)s)",
    )


def _add_course(commands: Any) -> None:
    course = commands.add_parser(
        "course",
        help="write the labs as a course: without solutions for students, with notes for instructors",
        description="Name one folder or both. The student's version has no solutions, but all hints and checks. "
        "The instructor's version has the solutions and, below each check, how to mark the exercise and which errors "
        "are typical. A second run replaces the files of the first one. If one of them has changed, or another file is "
        "in the way, the command writes nothing.",
    )
    course.add_argument("--student", metavar="DIR", help="the folder for the student's version")
    course.add_argument("--instructor", metavar="DIR", help="the folder for the instructor's version")


def _add_browser(command: argparse.ArgumentParser) -> None:
    command.add_argument("--no-browser", action="store_true", help="print the address instead of opening it")


def _add_data_server(command: argparse.ArgumentParser) -> None:
    _add_listening(command, "--host")
    command.add_argument(
        "--authority", default="", metavar="FILE", help="the certificate of the TLS authority"
    )
    _add_certificate(command, "the TLS certificate of this server")


def _add_listening(command: argparse.ArgumentParser, host: str) -> None:
    command.add_argument("--port", type=int, default=0, help="the port to listen on (default: a free one)")
    command.add_argument(
        host,
        default="127.0.0.1",
        help="the address to listen on; any address other than loopback needs TLS (default: %(default)s)",
    )


def _add_certificate(command: argparse.ArgumentParser, certificate: str) -> None:
    command.add_argument("--certificate", default="", metavar="FILE", help=certificate)
    command.add_argument("--key", default="", metavar="FILE", help="its key, without a passphrase")


def _counts(text: str) -> dict[str, int]:
    """Reads "worker=2,ps=1"."""
    counts: dict[str, int] = {}
    for part in text.split(","):
        job, _, count = part.partition("=")
        if not _JOB.fullmatch(job) or not count.isdecimal() or int(count) < 1:
            raise argparse.ArgumentTypeError(f"write jobs like worker=2,ps=1, got {text}")
        if job in counts:
            raise argparse.ArgumentTypeError(f"job {job} occurs twice in {text}")
        counts[job] = int(count)
    return counts


def _selector(text: str) -> tuple[str, str]:
    """Reads "worker=job-name=train"."""
    job, _, labels = text.partition("=")
    if not _JOB.fullmatch(job) or not labels:
        raise argparse.ArgumentTypeError(f"write pods like worker=job-name=train, got {text}")
    return job, labels


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1, got {text}")
    return number
