"""Executing a notebook of the repository, for the tests of what it shows."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]


def executed(name: str, folder: Path) -> dict[str, str]:
    """Runs the notebook `name` in `folder`; the text output of each code cell, by the cell's id."""
    notebook = nbformat.read(ROOT / "notebooks" / name, as_version=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)  # what this process has, the kernel has
        client = NotebookClient(notebook, timeout=100, resources={"metadata": {"path": str(folder)}})
        asyncio.run(client.async_execute())  # its `execute` would leave an event loop open
    return {cell.id: text_of(cell) for cell in notebook.cells if cell.cell_type == "code"}


def text_of(cell: nbformat.NotebookNode) -> str:
    return "".join(
        output.get("text", "") or output.get("data", {}).get("text/plain", "") for output in cell.outputs
    )


def cells_with_outputs(name: str) -> list[str]:
    """Ids of cells that are stored with outputs, which no notebook should be."""
    notebook = nbformat.read(ROOT / "notebooks" / name, as_version=4)
    return [cell.id for cell in notebook.cells if cell.get("outputs") or cell.get("execution_count")]
