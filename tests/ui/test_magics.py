"""The magics, in an IPython shell of this process and in a notebook."""

from __future__ import annotations

import asyncio
import doctest
import threading
from pathlib import Path
from typing import Any

import nbformat
import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from nbclient import NotebookClient
from traitlets.config import Config

import workbench as wb
from workbench.errors import ReplicaError
from workbench.ui import magics
from workbench.ui.collectives.sweep import SweepResult
from workbench.ui.collectives.timings import Timings

ROOT = Path(__file__).parents[2]
CONNECT = """
import workbench as wb
cluster = wb.connect(replicas=2)
strategy = wb.MirroredStrategy()
"""


class Shell:
    """Runs cells, and says what came of them."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell

    def run(self, cell: str) -> tuple[Any, str, str]:
        """The value, stdout and stderr of a cell; raises what it raised."""
        with capture_output() as captured:
            result = self._shell.run_cell(cell, store_history=True)
        shown = "".join(str(output.data.get("text/plain", "")) for output in captured.outputs)
        result.raise_error()
        return result.result, captured.stdout + shown, captured.stderr


@pytest.fixture
def shell(strategy: wb.MirroredStrategy) -> Shell:
    interactive = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    magics.register(interactive)
    interactive.user_ns |= {"strategy": strategy, "lock": threading.Lock()}
    return Shell(interactive)


def test_the_examples_hold() -> None:
    assert doctest.testmod(magics).failed == 0


def test_a_cell_runs_on_every_replica_and_the_next_one_goes_on(shell: Shell) -> None:
    shell.run("%%replica\nx = ctx.replica_id_in_sync_group")
    _, shown, _ = shell.run("%%replica\nprint('here')\nx + 5")

    assert shown.split() == ["[replica", "0]", "here", "5", "[replica", "1]", "here", "6"]


def test_a_cell_runs_on_the_replicas_that_are_named(shell: Shell) -> None:
    shell.run("%%replica\nchanged = False")
    shell.run("%%replica 1\nchanged = True")
    _, shown, _ = shell.run("%%replica 0-1 --group stream\nchanged")

    assert "[result of replica 0]\nFalse" in shown
    assert "[result of replica 1]\nTrue" in shown


def test_what_replicas_do_differently_is_shown_as_differences(shell: Shell) -> None:
    _, shown, _ = shell.run("%%replica --group diff\nprint('alike')\nctx.replica_id_in_sync_group")

    assert "[replica 1, compared with 0]\n alike\n-0\n+1" in shown


def test_values_of_the_notebook_are_pushed_by_name(shell: Shell) -> None:
    shell.run("learning_rate = 0.5")
    _, shown, _ = shell.run("%%replica 0 --push learning_rate\nlearning_rate")

    assert shown.split() == ["[replica", "0]", "0.5"]
    with pytest.raises(UsageError, match="there is no variable momentum in this notebook"):
        shell.run("%%replica --push momentum\n1")


def test_an_error_fails_the_cell_in_one_line_and_shows_each_replicas_traceback(shell: Shell) -> None:
    with capture_output() as captured, pytest.raises(ReplicaError) as caught:
        shell.run("%%replica\nx = 1\nif ctx.replica_id_in_sync_group == 1:\n    1 / 0")

    assert isinstance(caught.value, ZeroDivisionError)
    assert str(caught.value).startswith("ZeroDivisionError on replica 1, step ")
    assert str(caught.value).endswith(": division by zero")
    assert caught.value.replica == 1
    assert captured.stdout == ""
    _, shown, _ = shell.run("%%replica\nx")
    assert shown.split() == ["[replica", "0]", "1", "[replica", "1]", "1"]


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("%%replica 7\n1", "there is no replica 7: the strategy has replicas 0 to 1"),
        ("%%replica one\n1", "replicas are numbers such as 2, 0,2 or 0-3, got 'one'"),
        ("%%replica 1-0\n1", "there is no replica in 1-0: write 0-1"),
        (
            "%%replica --push lock\n1",
            r"kwargs\['push'\]\['lock'\] of 'execute' cannot be sent to the workers",
        ),
        ("%%replica\n%timeit 1", "without IPython's magics, ! and \\?: %timeit 1"),
        ("%%replica\n!ls", "without IPython's magics, ! and \\?: !ls"),
        ("%%replica\nx?", "without IPython's magics, ! and \\?: x\\?"),
        ("%collectives --sweep 8 1K --baseline nothing.json", "No such file .*'nothing.json'"),
        ("%%replica --group both\n1", "invalid choice: 'both'"),
        ("%%replica --on other\n1", "--on other: there is no strategy of that name in this notebook"),
        ("%collectives --sweep 8 many", "a size is a number of bytes such as 8, 64K or 128M, got 'many'"),
        ("%collectives --sweep 8 1K --op all_to_all", "op must be one of all_reduce, .*got 'all_to_all'"),
        ("%collectives --sweep 8 1K -f 1", "factor must be a whole number of at least 2, got 1"),
    ],
)
def test_what_is_asked_for_wrongly_is_told_in_one_line(shell: Shell, cell: str, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        shell.run(cell)


@pytest.mark.parametrize(
    ("line", "text"), [("x = = 1", "invalid syntax"), ("await f()", "'await' outside function")]
)
def test_a_cell_that_is_no_python_is_a_syntax_error(shell: Shell, line: str, text: str) -> None:
    with capture_output() as captured, pytest.raises(SyntaxError, match=text) as caught:
        shell.run(f"%%replica\n{line}")

    assert caught.value.lineno == 2  # as the notebook counts, including the magic's line
    assert captured.outputs == []  # it was sent to no replica


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        (
            "%workbench --help",
            ["%workbench [layout|help] [NAME ...]", "Arranges the panes", "such as overview"],
        ),
        ("%workbench help", ["%workbench layout NAME", "%%replica", "%collectives"]),
        ("%%replica -h\n1", ["--push NAMES", "variables to copy to the replicas"]),
        ("%collectives --help", ["--sweep SMALLEST LARGEST", "such as 8 128M"]),
    ],
)
def test_each_magic_has_help(shell: Shell, cell: str, said: list[str]) -> None:
    _, shown, _ = shell.run(cell)

    assert [text for text in said if text not in shown] == []
    assert "::" not in shown


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("%workbench nonsense", r"'nonsense' .*use %workbench \[layout\|help\] \[NAME \.\.\.\]"),
        ("%%replica --gruop diff\n1", r"--gruop.*; use %replica .*\[--group \{replica,stream,diff\}\]"),
        ("%collectives --sweep 8", r"expected 2 arguments; use %collectives .*SMALLEST LARGEST"),
    ],
)
def test_a_wrong_option_is_told_together_with_the_right_ones(shell: Shell, cell: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        shell.run(cell)


def test_collectives_are_shown(shell: Shell) -> None:
    shell.run("%%replica\nimport numpy as np\nctx.all_reduce('sum', np.ones(3))")
    found, _, _ = shell.run("%collectives --on strategy")

    assert isinstance(found, Timings)
    assert ("all_reduce", 24) in {(row.op, row.size_bytes) for row in found.rows}


def test_a_cell_magic_runs_the_cell_and_then_shows_them(shell: Shell) -> None:
    found, _, _ = shell.run(
        "%%collectives --on strategy\n"
        "import numpy as np, workbench as wb\n"
        "done = strategy.run(lambda: wb.distribute.get_replica_context().all_reduce('sum', np.ones(1000)))"
    )

    assert ("all_reduce", 8000) in {(row.op, row.size_bytes) for row in found.rows}
    with pytest.raises(ZeroDivisionError):
        shell.run("%%collectives\n1 / 0")


@pytest.mark.parametrize("magic", ["%collectives", "%%collectives"])
def test_a_sweep_is_measured(shell: Shell, magic: str) -> None:
    found, _, _ = shell.run(f"{magic} --sweep 8 4K -f 8 --rounds 2 --op all_reduce,broadcast")

    assert isinstance(found, SweepResult)
    assert [(row.op, row.size_bytes) for row in found.rows] == [
        (op, size) for op in ("all_reduce", "broadcast") for size in (8, 64, 512, 4096)
    ]


def test_the_magics_are_there_in_a_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = (
        CONNECT,
        "%%replica\nx = ctx.replica_id_in_sync_group\nx",
        "%%replica\n\n1 / x",
        "%%replica\nx + 1",
        "%%collectives --sweep 8 1K -f 4 --rounds 2",
        "cluster.close()",
    )
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    code = [nbformat.v4.new_code_cell(cell.strip()) for cell in cells]
    notebook = nbformat.v4.new_notebook(cells=code)
    client = NotebookClient(
        notebook,
        timeout=100,
        iopub_timeout=60,
        allow_errors=True,
        resources={"metadata": {"path": str(tmp_path)}},
    )
    asyncio.run(client.async_execute())  # its `execute` would leave an event loop open
    _, first, failing, following, sweep, _ = (cell.outputs for cell in notebook.cells)

    assert first[0].data["text/plain"] == "[replica 0]\n0\n[replica 1]\n1"
    assert "Cell In[3], line 3, in <module>\n    1 / x" in failing[0].data["text/plain"]
    assert failing[-1].ename == "ReplicaError[ZeroDivisionError]"
    assert following[0].data["text/plain"] == "[replica 0]\n1\n[replica 1]\n2"
    assert sweep[-1].data["text/plain"].startswith("# all_reduce MirroredStrategy/1 nranks 2")
