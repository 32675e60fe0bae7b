"""What happens in a notebook by itself: HTML, and errors of pipelined steps in the cell that sent them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from workbench.runtime.user_code.notebook_cells import with_cells

ROOT = Path(__file__).parents[2]
CONNECT = """
import workbench as wb
cluster = wb.connect(replicas=1, processes=False)
strategy = wb.MirroredStrategy()
"""
DISAGREE = """
import numpy as np
replica = wb.distribute.get_replica_context

def disagree():
    return replica().all_reduce("sum", np.ones(2 + replica().replica_id_in_sync_group))

strategy.run(disagree)
"""
FAIL = """
@wb.function
def divide(x):
    return 1 / x

for x in (1, 2, 0, 3):
    value = strategy.run(divide, args=(x,))
print("all sent")
"""


@pytest.fixture
def execute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs cells in a kernel of their own; the notebook with its outputs."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def run(*cells: str, allow_errors: bool = True) -> nbformat.NotebookNode:
        code = [nbformat.v4.new_code_cell(cell.strip()) for cell in (*cells, "cluster.close()")]
        notebook = nbformat.v4.new_notebook(cells=code)
        client = NotebookClient(
            notebook,
            timeout=100,
            iopub_timeout=60,  # on a busy machine, outputs come later than the reply
            allow_errors=allow_errors,
            resources={"metadata": {"path": str(tmp_path)}},
        )
        asyncio.run(client.async_execute())  # its `execute` would leave an event loop open
        return notebook

    return run


def test_objects_are_drawn_as_html_beside_their_text(execute) -> None:
    notebook = execute(CONNECT + "strategy")
    (output,) = notebook.cells[0].outputs

    assert output.data["text/plain"].startswith("<MirroredStrategy: 1 replica on 1 host")
    assert "<table" in output.data["text/html"]


def test_the_error_of_a_pipelined_step_shows_in_the_cell_that_sent_it(execute) -> None:
    notebook = execute(CONNECT, FAIL, "strategy.run(lambda: 5).values")
    _, failing, following, _ = notebook.cells
    (error,) = [output for output in failing.outputs if output.output_type == "error"]
    text = "\n".join(error.traceback)

    assert error.ename == "ReplicaError[ZeroDivisionError]"
    assert "return 1 / x" in text
    assert "in 'divide', which In[2]:6 ran" in text
    assert "wait_for_steps" not in text
    assert [output.output_type for output in following.outputs] == ["execute_result"]
    assert following.outputs[0].data["text/plain"] == "(5,)"


def test_wrong_arguments_name_the_cell_of_the_function(execute) -> None:
    notebook = execute(CONNECT, "def step(x):\n    return x\nstrategy.run(step)")
    (error,) = [output for output in notebook.cells[1].outputs if output.output_type == "error"]

    assert "missing 1 required positional argument: 'x'; it is step(x) (In[2]:1)" in error.evalue


def test_running_all_cells_stops_at_that_cell(execute) -> None:
    with pytest.raises(CellExecutionError, match="division by zero"):
        execute(CONNECT, FAIL, allow_errors=False)


def test_an_error_that_was_raised_already_is_not_shown_again(execute) -> None:
    notebook = execute(CONNECT, FAIL + "\nstrategy.local_results(value)")

    assert [output.output_type for output in notebook.cells[1].outputs].count("error") == 1


def test_the_next_cell_is_not_blamed(execute) -> None:
    notebook = execute(CONNECT, FAIL, "1 + 1")

    assert [output.output_type for output in notebook.cells[2].outputs] == ["execute_result"]


def test_a_traceback_keeps_the_sources_it_has_and_gets_those_the_driver_knows() -> None:
    here = Path(__file__)
    gone = '  File "/gone.py", line 3, in'
    text = f'{gone} one\n    kept\n  File "{here}", line 1, in two\n{gone} three'
    first = here.read_text(encoding="utf-8").splitlines()[0]

    assert with_cells(text) == (
        f'{gone} one\n    kept\n  File "{here}", line 1, in two\n    {first}\n{gone} three'
    )


def test_call_sites_in_errors_are_the_cells(execute) -> None:
    notebook = execute(CONNECT.replace("replicas=1", "replicas=2"), DISAGREE)
    (error,) = [output for output in notebook.cells[1].outputs if output.output_type == "error"]

    assert error.ename == "CollectiveMismatch"
    assert "[3] (In[2]:5)" in error.evalue


@pytest.mark.parametrize("processes", [False, True])
def test_an_overflow_on_a_replica_names_the_line_of_its_cell(execute, processes: bool) -> None:
    overflow = """
import numpy as np

def step():
    huge = np.full(3, 3e38, np.float32)
    return wb.distribute.get_replica_context().all_reduce("sum", huge)

value = strategy.run(step)
"""
    cell = execute(
        CONNECT.replace("replicas=1, processes=False", f"replicas=2, {processes=}"), overflow
    ).cells[1]
    shown = [line for output in cell.outputs for line in output.get("text", "").splitlines()]
    warned = {line.partition("] ")[2] for line in shown if "RuntimeWarning" in line}
    assert warned == {"In[2]:5: RuntimeWarning: overflow encountered in add"}
