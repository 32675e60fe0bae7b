"""The command line: `workbench lab`, `workbench demo` and `workbench doctor`.

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

    commands.add_parser("doctor", help="what is installed, which devices there are, what is missing")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number
