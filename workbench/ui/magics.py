"""The magics of notebooks: `%%replica`, `%collectives`, `%%collectives` and `%workbench`.

Each has a function that does the same.

Loaded with the notebook's hooks, so it imports nothing from workbench before a magic is used.
"""

# mypy: disable-error-code="no-untyped-call, untyped-decorator"
# (IPython's decorators have no types)

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_cell_magic, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

_HELP = """%workbench layout NAME   opens a layout of panes in JupyterLab: {layouts}, or one that you have saved
%%replica [0,2 or 0-3]   runs the cell on every replica, or on some
%collectives             shows how long collectives took; --sweep 8 128M measures them by size
%%collectives            runs the cell and then shows them
Add ? or --help for all options, as in %%replica --help"""
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30}


def register(shell: Any) -> None:
    """Registers the magics with an IPython shell; does nothing if called again."""
    shell.register_magics(WorkbenchMagics)
    if _with_body not in shell.input_transformers_cleanup:
        shell.input_transformers_cleanup.insert(0, _with_body)


def _with_body(lines: list[str]) -> list[str]:
    """Adds an empty line, which IPython requires, to a cell with only `%%collectives ...`."""
    if len(lines) == 1 and lines[0].startswith("%%collectives"):
        return [f"{lines[0].rstrip()}\n", "\n"]
    return lines


@contextmanager
def _usage_errors() -> Iterator[None]:
    """Shows a usage error in one line, without workbench's frames."""
    from workbench import errors

    try:
        yield
    except (
        errors.FailedPreconditionError,
        errors.InvalidArgumentError,
        errors.CaptureError,
        errors.ClusterClosed,
        FileNotFoundError,  # a baseline argument
    ) as error:
        raise UsageError(str(error)) from error


@contextmanager
def _plain_python() -> Iterator[None]:
    """Adds a note that replicas do not support IPython syntax, if this makes a cell invalid Python."""
    try:
        yield
    except SyntaxError as error:
        line = (error.text or "").strip()
        if not re.match(r"[%!]|[\w.]+\?", line):
            raise
        raise UsageError(f"replicas run plain Python, without IPython's magics, ! and ?: {line}") from error


def _parsed(magic: Any, line: str) -> Any:
    """The options in a magic's line; None if they request help, which this prints.

    Raises:
      UsageError: if they are wrong; the text names the right ones.
    """
    if {"-h", "--help"} & set(line.split()):
        print(magic.parser.format_help().replace("::\n\n  ", "", 1).strip())
        return None
    try:
        return parse_argstring(magic, line)
    except UsageError as error:
        usage = " ".join(magic.parser.format_usage().split()).removeprefix(":: ")
        raise UsageError(f"{error}; use {usage}, and --help for what each does") from None


def _cell_file() -> str:
    """The file name that tracebacks use for the running cell; "" if unknown."""
    from workbench.runtime.user_code.notebook_cells import file_name

    frame = sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        if file_name(frame.f_code.co_filename).startswith("In["):
            return frame.f_code.co_filename
    return ""


def size_bytes(text: str) -> int:
    """Parses a size in the notation of nccl-tests, in binary units: "8", "64K", "128M", "1G".

    Raises:
      UsageError: if it is something else.

    >>> [size_bytes(text) for text in ("8", "64K", "128m")]
    [8, 65536, 134217728]
    """
    number = text.upper().removesuffix("B")
    unit = number[-1:] if number[-1:] in "KMG" else ""
    number = number.removesuffix(unit)
    if not number.isdecimal():
        raise UsageError(f"a size is a number of bytes such as 8, 64K or 128M, got {text!r}")
    return int(number) << _UNITS[unit]


@magics_class
class WorkbenchMagics(Magics):
    """What `import workbench` adds to a notebook."""

    @magic_arguments()
    @argument("replicas", nargs="*", help="replicas that run the cell, such as 0, 0,2 or 0-3 (default: all)")
    @argument(
        "--group",
        choices=("replica", "stream", "diff"),
        default="replica",
        help="how to group the outputs",
    )
    @argument("--push", default="", metavar="NAMES", help="variables to copy to the replicas, such as a,b")
    @argument("--on", default="", metavar="NAME", help="the variable with the strategy, if there are several")
    @cell_magic
    def replica(self, line: str, cell: str) -> None:
        """Runs the cell on every replica; each replica keeps its own namespace for the next such cell.

        `ctx` is the replica's context. Outputs are text. The function `wb.run_cell` does the same.
        """
        from workbench.ui.cells.replica_cells import named_values, only_strategy, parsed_replicas, run_cell

        options = _parsed(self.replica, line)
        if options is None:
            return
        with _usage_errors(), _plain_python():
            outputs = run_cell(
                f"\n{cell}",  # so that lines count from the magic's own, as the notebook shows them
                only_strategy(self._variables, options.on),
                parsed_replicas(options.replicas),
                group=options.group,
                push=named_values(self._variables, options.push),
                filename=_cell_file(),
            )
        display(outputs)
        if outputs.error is not None:
            raise outputs.error_in_brief() from None

    @magic_arguments()
    @argument(
        "--sweep",
        nargs=2,
        metavar=("SMALLEST", "LARGEST"),
        help="measure sizes in this range, such as 8 128M",
    )
    @argument("-f", "--factor", type=int, default=2, help="ratio of two successive sizes")
    @argument("--op", default="all_reduce", help="the operation to measure, or several separated by commas")
    @argument("--rounds", type=int, default=20, help="number of measurements for each size")
    @argument("--algorithm", default="auto", help="algorithm of all_reduce")
    @argument("--baseline", default="", metavar="FILE", help="a file that --save wrote, to compare with")
    @argument(
        "--save",
        default="",
        metavar="FILE",
        help="the file in which to save the sweep, as a baseline for later ones",
    )
    @argument("--internal", action="store_true", help="also show the collectives of workbench itself")
    @argument("--on", default="", metavar="NAME", help="the variable with the strategy, if there are several")
    @line_cell_magic
    def collectives(self, line: str, cell: str | None = None) -> Any:
        """Shows how long collectives took, or measures them size by size (`--sweep`).

        As `%%collectives`, it runs the cell first. The functions `wb.collectives` and
        `wb.collectives.sweep` do the same.
        """
        from workbench.ui.cells.replica_cells import only_strategy
        from workbench.ui.collectives.sweep import sweep
        from workbench.ui.collectives.view import collectives

        options = _parsed(self.collectives, line)
        if options is None:
            return None
        if cell and cell.strip():
            self._execute(cell)
        with _usage_errors():
            if not options.sweep:
                of = only_strategy(self._variables, options.on) if options.on else None
                return collectives(of, internal=options.internal)
            smallest, largest = map(size_bytes, options.sweep)
            found = sweep(
                only_strategy(self._variables, options.on),
                options.op.split(","),
                smallest_bytes=smallest,
                largest_bytes=largest,
                factor=options.factor,
                rounds=options.rounds,
                algorithm=options.algorithm,
                baseline=options.baseline or None,
            )
            if options.save:
                found.save(options.save)
            return found

    @magic_arguments()
    @argument(
        "action",
        nargs="?",
        choices=("layout", "help"),
        metavar="layout|help",
        help="open a layout of panes in JupyterLab, or list the magics",
    )
    @argument("name", nargs="*", metavar="NAME", help="the name of the layout, such as overview")
    @line_magic
    def workbench(self, line: str) -> None:
        """Arranges the panes of JupyterLab; without arguments, it lists the magics.

        The function `wb.layout` does the same.
        """
        from workbench.ui.layouts import LAYOUTS, layout

        options = _parsed(self.workbench, line)
        if options is None:
            return
        if options.action != "layout" or not options.name:
            print(_HELP.format(layouts=", ".join(LAYOUTS)))
            return
        with _usage_errors():
            layout(" ".join(options.name))

    def _execute(self, cell: str) -> None:
        """Runs a cell in the notebook, but not by `run_cell`, which would drop the result of the running one."""
        assert self.shell is not None
        source = f"\n{self.shell.transform_cell(cell)}"
        exec(compile(source, _cell_file() or "<cell>", "exec"), self.shell.user_global_ns, self.shell.user_ns)

    @property
    def _variables(self) -> dict[str, Any]:
        """The notebook's variables."""
        assert self.shell is not None
        variables: dict[str, Any] = self.shell.user_ns
        return variables
