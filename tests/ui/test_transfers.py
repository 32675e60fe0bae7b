"""Checkpoints in a notebook: a bar in the cell that saves or restores, also in the background."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from workbench.checkpoint.transfer import Transfer
from workbench.ui import notebook, transfers

Bundle = dict[str, str]
MIB = 1 << 20


@pytest.fixture
def outputs(monkeypatch: pytest.MonkeyPatch) -> list[list[Bundle]]:
    """What each output of a notebook has shown, one after the other."""
    import IPython.display

    outputs: list[list[Bundle]] = []

    def display(bundle: Bundle, *, raw: bool, display_id: bool) -> Any:
        shown = [bundle]
        outputs.append(shown)
        return SimpleNamespace(update=lambda bundle, raw: shown.append(bundle))

    monkeypatch.setattr(IPython.display, "display", display)
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: SimpleNamespace(execution_count=3))
    transfers._bars.clear()
    monkeypatch.setattr("workbench.checkpoint.transfer.listeners", [notebook.show_transfer])
    return outputs


def make(kind: Any = "save", path: str = "checkpoints/<b>-1", **options: Any) -> Transfer:
    return Transfer(kind, path, (), **options)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Lets a second pass."""
    passed = 0.0
    real = time.monotonic

    def one_second() -> None:
        nonlocal passed
        passed += 1.0

    monkeypatch.setattr(time, "monotonic", lambda: real() + passed)
    return one_second


def test_a_bar_shows_bytes_rate_and_shards_and_stays_as_it_was_last(
    outputs: list[list[Bundle]], later: Callable[[], None]
) -> None:
    transfer = make(background=True)
    transfer.begin(64 * MIB, 3)
    later()
    transfer.move(16 * MIB, (0, 2))
    (shown,) = outputs
    assert shown[-1]["text/plain"].startswith("saving 'checkpoints/<b>-1': 16 MiB of 64 MiB, ")
    assert shown[-1]["text/plain"].endswith(" MB/s, shards 0, 2 (1 of 3 complete)")
    assert f'<progress value="{16 * MIB}" max="{64 * MIB}"' in shown[-1]["text/html"]
    assert "&lt;b&gt;" in shown[-1]["text/html"]

    transfer.end()
    assert shown[-1]["text/plain"].startswith("saved 'checkpoints/<b>-1': 64 MiB in 1.")
    assert "in the background" in shown[-1]["text/plain"]
    assert f'<progress value="{64 * MIB}" max="{64 * MIB}"' in shown[-1]["text/html"]


def test_a_failure_is_shown_in_the_bar(outputs: list[list[Bundle]]) -> None:
    transfer = make("restore")
    transfer.begin(64 * MIB, 1)
    transfer.end(OSError("the disk is gone"))
    (shown,) = outputs
    assert "could not restore 'checkpoints/<b>-1', after " in shown[-1]["text/plain"]
    assert shown[-1]["text/plain"].endswith(": OSError: the disk is gone")


def test_a_small_checkpoint_has_a_bar_only_if_it_takes_time(
    outputs: list[list[Bundle]], later: Callable[[], None]
) -> None:
    small = make()
    small.begin(1000, 1)
    small.move(1000, (0,))
    small.end()
    assert not outputs

    slow = make()
    slow.begin(1000, 1)
    later()
    slow.move(500, (0,))
    assert "500 B of 1000 B" in outputs[0][-1]["text/plain"]


def test_a_cell_that_saves_again_and_again_has_one_bar(outputs: list[list[Bundle]]) -> None:
    for number in range(3):
        transfer = make(path=f"checkpoints/ckpt-{number}")
        transfer.begin(64 * MIB, 1)
        transfer.end()
    make("restore", "checkpoints/ckpt-2").begin(64 * MIB, 1)
    assert ["ckpt-2" in shown[-1]["text/plain"] for shown in outputs] == [True, True]


def test_the_bar_is_not_painted_for_every_piece(outputs: list[list[Bundle]]) -> None:
    transfer = make()
    transfer.begin(64 * MIB, 1)
    for piece in range(1000):
        transfer.move(piece, (0,))
    assert len(outputs[0]) < 500


def test_a_notebook_adds_what_shows_checkpoints_once(monkeypatch: pytest.MonkeyPatch) -> None:
    added: list[Any] = []
    shell: Any = SimpleNamespace(
        display_formatter=SimpleNamespace(
            formatters={"text/html": MagicMock()}, mimebundle_formatter=MagicMock()
        ),
        events=MagicMock(),
        kernel=None,
    )
    monkeypatch.setattr(notebook, "listeners", added)
    monkeypatch.setattr(notebook.formatters, "register", MagicMock())
    monkeypatch.setattr(notebook.formatters, "register_live", MagicMock())
    monkeypatch.setattr("workbench.ui.magics.register", MagicMock())
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: shell)
    notebook.install()
    assert not added, "a terminal has no outputs that change"
    shell.kernel = object()
    notebook.install()
    notebook.install()
    assert added == [notebook.show_transfer]
