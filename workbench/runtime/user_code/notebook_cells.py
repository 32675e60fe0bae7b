"""Names and source lines of notebook cells, which only the notebook's own process knows."""

from __future__ import annotations

import functools
import linecache
import os
import re
import sys
from functools import partial
from typing import Any

from workbench.telemetry.formatting import encodable

_FRAME = re.compile(
    r'^  File "(?P<file>[^"\n]+)", line (?P<line>\d+), in (?P<name>.+)\n(?P<source>    .*\n)?', re.M
)


def running_cell() -> int | None:
    """The number of the cell that the notebook runs, or will run next; None outside of notebooks."""
    shell = _shell()
    return None if shell is None else shell.execution_count


def file_name(path: str) -> str:
    """A file's name for users: "In[5]" for a notebook's cell, else the last part of its path."""
    described = getattr(getattr(_shell(), "compile", None), "format_code_name", lambda _: None)(path)
    return described[1] if described else encodable(os.path.basename(path))


def with_cells(traceback: str) -> str:
    """A replica's traceback with the names and source lines of notebook cells."""
    return _FRAME.sub(_described, traceback if traceback.endswith("\n") else f"{traceback}\n").rstrip("\n")


def last_site(traceback: str) -> str:
    """Where a replica's traceback ends, such as "In[5]:3"; "" if it has no frames."""
    frames = list(_FRAME.finditer(traceback))
    return f"{file_name(frames[-1]['file'])}:{frames[-1]['line']}" if frames else ""


def with_cell_names(text: str) -> str:
    """Replaces call sites such as "12345678.py:3" in a text by the names of notebook cells, such as "In[5]:3"."""
    kernel = sys.modules.get("ipykernel.compiler")
    if kernel is None:
        return text
    directory = kernel.get_tmp_directory()
    return _site(directory).sub(partial(_named, directory), text)


@functools.cache
def _site(directory: str) -> re.Pattern[str]:
    # ipykernel names a cell's file by a hash of its source; warnings include its directory.
    return re.compile(rf"(?:{re.escape(os.path.join(directory, ''))})?\b(?P<file>\d{{4,}}\.py):")


def _named(directory: str, match: re.Match[str]) -> str:
    name = file_name(os.path.join(directory, match["file"]))
    return f"{name}:" if name.startswith("In[") else match[0]


def _shell() -> Any:
    return sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None


def _described(match: re.Match[str]) -> str:
    path, line, name = match["file"], int(match["line"]), match["name"]
    source = match["source"] or ""
    if not source and (text := linecache.getline(path, line).strip()):
        source = f"    {text}\n"
    known = file_name(path)
    place = f"Cell {known}" if known.startswith("In[") else f'File "{path}"'
    return f"  {place}, line {line}, in {name}\n{source}"
