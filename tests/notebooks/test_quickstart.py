"""The quickstart notebook runs from top to bottom, learns, and shows what it promises."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "notebooks" / "01_quickstart.ipynb"


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Executes the notebook; the text output of each code cell, by the cell's id."""
    notebook = nbformat.read(QUICKSTART, as_version=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        folder = str(tmp_path_factory.mktemp("quickstart"))
        client = NotebookClient(notebook, timeout=100, resources={"metadata": {"path": folder}})
        asyncio.run(client.async_execute())  # its `execute` would leave an event loop open
    return {cell.id: text_of(cell) for cell in notebook.cells if cell.cell_type == "code"}


def text_of(cell: nbformat.NotebookNode) -> str:
    return "".join(
        output.get("text", "") or output.get("data", {}).get("text/plain", "") for output in cell.outputs
    )


def test_the_notebook_is_stored_without_outputs() -> None:
    notebook = nbformat.read(QUICKSTART, as_version=4)

    assert [cell.id for cell in notebook.cells if cell.get("outputs") or cell.get("execution_count")] == []


def test_it_reads_more_than_95_percent_of_the_digits(outputs: dict[str, str]) -> None:
    percent = re.match(r"([\d.]+)%", outputs["test"])

    assert percent is not None
    assert float(percent.group(1)) > 95


def test_the_loss_falls(outputs: dict[str, str]) -> None:
    losses = [float(number) for number in re.findall(r"loss (\S+)", outputs["train"])]

    assert len(losses) == 15
    assert losses[-1] < losses[0] / 3


def test_the_copies_of_a_variable_are_shown_in_sync(outputs: dict[str, str]) -> None:
    assert "in sync" in outputs["inspect-variable"]


def test_the_loss_is_shown_by_replica(outputs: dict[str, str]) -> None:
    assert "over 2 replicas" in outputs["inspect-loss"]


def test_the_cost_of_the_collectives_is_shown(outputs: dict[str, str]) -> None:
    assert "all_reduce" in outputs["collectives"]


def test_the_split_of_the_data_is_explained(outputs: dict[str, str]) -> None:
    assert "AUTO" in outputs["sharding"]
