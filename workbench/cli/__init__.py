"""The command `workbench` and its parts: `lab`, `demo`, `dashboard`, `docs`, `course`, `data-dispatcher` and so on.

Each command has its own file, which is imported when the command is used.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from workbench.cli.command_line import parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status: 0 for success, 1 for a failure, 2 for wrong usage.

    Args:
      argv: The arguments after the program's name; by default those of the process.
    """
    known = parser()
    options = known.parse_args(sys.argv[1:] if argv is None else argv)
    if options.command is None:
        known.print_help(sys.stderr)
        return 2
    command = importlib.import_module(f"workbench.cli.{options.command.replace('-', '_')}")
    try:
        status: int = command.run(options)
    except KeyboardInterrupt:
        return 130
    return status
