"""The command line: `workbench lab`, `workbench demo`, `workbench dashboard` and `workbench doctor`.

Each command lives in a file of its own, which is imported when the command is used.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from workbench import __version__


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status: 0 for success, 1 for a failure, 2 for wrong usage.

    Args:
      argv: The arguments after the program's name; those of the process by default.
    """
    options = _parser().parse_args(sys.argv[1:] if argv is None else argv)
    command = importlib.import_module(f"workbench.cli.{options.command}")
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
        help="name, id or scheduler address of a job of yours on this machine, or a recorded run or a folder of them "
        "(default: the jobs there are)",
    )
    dashboard.add_argument("--port", type=int, default=0, help="default: one that is free")
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
        help="listen off loopback without it all the same, behind a proxy that speaks TLS",
    )
    dashboard.add_argument(
        "--origin",
        action="append",
        default=[],
        metavar="NAME:PORT",
        help="how browsers reach it, if otherwise, or https://NAME behind a proxy",
    )
    dashboard.add_argument(
        "--no-browser", action="store_true", help="print the address instead of opening it"
    )

    commands.add_parser("doctor", help="what is installed, which devices there are, what is missing")
    return parser


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1, got {text}")
    return number
