"""Executing a notebook of the repository, for the tests of what it shows."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from traitlets.config import Config

ROOT = Path(__file__).parents[2]


def stored(name: str) -> nbformat.NotebookNode:
    """The notebook `name`, as it is in the repository."""
    return nbformat.read(ROOT / "notebooks" / name, as_version=4)


def executed(name: str, folder: Path) -> dict[str, str]:
    """Runs the notebook `name` in `folder`; the text output of each code cell, by the cell's id."""
    notebook = stored(name)
    _run(notebook, folder)
    return {cell.id: text_of(cell.outputs) for cell in notebook.cells if cell.cell_type == "code"}


def errors_with(answers: Mapping[str, str], name: str, folder: Path) -> dict[str, str]:
    """Runs a notebook with other sources for some cells, given by id; by id, the errors of cells that fail."""
    notebook = stored(name)
    for cell in notebook.cells:
        cell.source = answers.get(cell.id, cell.source)
    _run(notebook, folder, allow_errors=True)
    return {
        cell.id: f"{output.ename}: {output.evalue}"
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.output_type == "error"
    }


def _run(notebook: nbformat.NotebookNode, folder: Path, *, allow_errors: bool = False) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)  # the kernel gets this process's packages
        resources = {"metadata": {"path": str(folder)}}
        ends = Config({"KernelManager": {"shutdown_wait_time": 2.0}})  # as in `tests/e2e/conftest.py`
        client = NotebookClient(
            notebook, timeout=100, resources=resources, allow_errors=allow_errors, config=ends
        )
        asyncio.run(client.async_execute())  # its `execute` would leave an event loop open


def text_of(outputs: Iterable[Mapping[str, Any]]) -> str:
    """What a cell has printed and shown, as text."""
    return "".join(
        output.get("text", "") or output.get("data", {}).get("text/plain", "") for output in outputs
    )


def cells_with_outputs(name: str) -> list[str]:
    """Ids of cells that are stored with outputs, which no notebook should be."""
    return [cell.id for cell in stored(name).cells if cell.get("outputs") or cell.get("execution_count")]
