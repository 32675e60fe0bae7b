"""Progress bars in a notebook for checkpoints that are restored or saved, even in the background."""

from __future__ import annotations

import os
import time
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from workbench.runtime.user_code.notebook_cells import running_cell
from workbench.telemetry.formatting import printable_lines
from workbench.ui.render import html

if TYPE_CHECKING:
    from workbench.checkpoint.transfer import Transfer

_REPAINT_SECONDS: Final = 0.1
_AT_ONCE_BYTES: Final = 8 << 20
_SHORT_SECONDS: Final = 0.5
_bars: dict[tuple[int | None, str, str], Any] = {}


@dataclass(slots=True)
class _Painted:
    """The display of a transfer.

    Attributes:
      bar: IPython's handle for the output.
      at: When it was last drawn, on the clock of `time.monotonic`.
    """

    bar: Any
    at: float = 0.0


_painted: weakref.WeakKeyDictionary[Transfer, _Painted] = weakref.WeakKeyDictionary()


def show(transfer: Transfer) -> None:
    """Draws a bar in the cell that saves or restores, except for small checkpoints that take no time.

    A cell that saves repeatedly in one folder has one bar, which shows the newest checkpoint.
    """
    painted = _painted.get(transfer)
    if painted is None:
        if transfer.total_bytes < _AT_ONCE_BYTES and transfer.seconds < _SHORT_SECONDS:
            return
        painted = _painted[transfer] = _Painted(_bar_of(transfer))
    now = time.monotonic()
    if transfer.state == "running" and now - painted.at < _REPAINT_SECONDS:
        return
    painted.at = now
    painted.bar.update(_bundle(transfer), raw=True)


def _bar_of(transfer: Transfer) -> Any:
    from IPython.display import display

    cell = running_cell()
    for key in [key for key in _bars if key[0] != cell]:
        del _bars[key]
    key = cell, transfer.kind, os.path.dirname(transfer.path)
    if key not in _bars:
        _bars[key] = display(_bundle(transfer), raw=True, display_id=True)  # type: ignore[no-untyped-call]
    return _bars[key]


def _bundle(transfer: Transfer) -> dict[str, str]:
    text = transfer.text()
    total = transfer.total_bytes or None
    return {
        "text/plain": printable_lines(text),
        "text/html": html.progress(text, transfer.done_bytes, total),
    }
