"""`wb.progress`: how far a loop is; a bar in a notebook, a line of text elsewhere."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any, Final, TypeVar

from workbench.distribute.input.distributed_dataset import DistributedDataset
from workbench.telemetry.formatting import printable_lines, significant
from workbench.ui.render import html

_T = TypeVar("_T")
_REPAINT_SECONDS: Final = 0.1
_Paint = Callable[[int, float, bool], None]
"""Called with the count, the seconds since the start, and whether that was the end."""


def progress(iterable: Iterable[_T], *, total: int | None = None, label: str = "") -> Iterator[_T]:
    """Yields the elements of `iterable`, and shows how many there were, how fast, and how long the rest will take.

    Put it around the iterable of a loop, as in `for batch in wb.progress(data, label="epoch 1"):`.

    In a notebook, it shows a bar, which a saved notebook keeps in its last state; elsewhere, a line, drawn by tqdm if
    that is installed.

    Args:
      iterable: An iterable, such as one epoch of a distributed dataset.
      total: Number of elements, if `iterable` has neither a length nor a known cardinality.
      label: Shown in front.
    """
    total = _length(iterable) if total is None else total
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if getattr(shell, "kernel", None) is not None:
        yield from _counted(iterable, _notebook(total, label))
    elif importlib.util.find_spec("tqdm") is not None:
        from tqdm import tqdm  # type: ignore[import-untyped]

        yield from tqdm(iterable, total=total, desc=label or None, unit="step")
    else:
        yield from _counted(iterable, _terminal(total, label))


def _length(iterable: Any) -> int | None:
    """The number of elements, if the iterable knows it."""
    if isinstance(iterable, DistributedDataset):
        return iterable.cardinality if iterable.cardinality >= 0 else None
    try:
        return len(iterable) if isinstance(iterable, Sized) else None
    except TypeError:  # a dataset that does not know its length
        return None


def _counted(iterable: Iterable[_T], paint: _Paint) -> Iterator[_T]:
    start = painted = time.monotonic()
    count = 0
    try:
        for count, element in enumerate(iterable, start=1):
            yield element
            now = time.monotonic()
            if now - painted >= _REPAINT_SECONDS:
                painted = now
                paint(count, now - start, False)
    finally:
        paint(count, time.monotonic() - start, True)


def _notebook(total: int | None, label: str) -> _Paint:
    from IPython.display import display

    def bundle(count: int, seconds: float, ended: bool) -> dict[str, Any]:
        text = _text(total, label, count, seconds, ended=ended)
        return {"text/plain": printable_lines(text), "text/html": html.progress(text, count, total)}

    shown = display(bundle(0, 0.0, False), raw=True, display_id=True)  # type: ignore[no-untyped-call]
    return lambda count, seconds, ended: shown.update(bundle(count, seconds, ended), raw=True)


def _terminal(total: int | None, label: str) -> _Paint:
    def paint(count: int, seconds: float, ended: bool) -> None:
        text = _text(total, label, count, seconds, ended=ended)
        print(f"\r{text:<60}", end="\n" if ended else "", file=sys.stderr, flush=True)

    return paint


def _text(total: int | None, label: str, count: int, seconds: float, *, ended: bool) -> str:
    of = "" if total is None else f"/{total}"
    rate = significant(count / seconds) if seconds > 0 and count else "–"
    left = ""
    if total is not None and count and not ended:
        left = f", {significant(max(0, total - count) * seconds / count)} s left"
    return f"{label + ': ' if label else ''}{count}{of} steps, {rate} steps/s{left}"
