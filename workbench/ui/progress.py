"""`wb.progress`: a line of text that tells how far a loop has come."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import Final, TypeVar

from workbench.telemetry.formatting import significant

_T = TypeVar("_T")
_REPAINT_SECONDS: Final = 0.1


def progress(iterable: Iterable[_T], *, total: int | None = None, label: str = "") -> Iterator[_T]:
    """Gives the elements of `iterable`, and shows how many came and how fast; with tqdm where that is installed.

    Args:
      iterable: Such as a distributed dataset.
      total: Number of elements, if `len(iterable)` does not tell it.
      label: Shown in front.
    """
    if total is None and isinstance(iterable, Sized):
        try:
            total = len(iterable)
        except TypeError:  # a dataset that does not know its length
            total = None
    if importlib.util.find_spec("tqdm") is not None:
        from tqdm import tqdm  # type: ignore[import-untyped]

        yield from tqdm(iterable, total=total, desc=label or None, unit="step")
        return
    yield from _counted(iterable, total, label)


def _counted(iterable: Iterable[_T], total: int | None, label: str) -> Iterator[_T]:
    start = painted = time.monotonic()
    count = 0
    try:
        for count, element in enumerate(iterable, start=1):
            yield element
            now = time.monotonic()
            if now - painted >= _REPAINT_SECONDS:
                painted = now
                _paint(count, total, label, now - start, end="")
    finally:
        _paint(count, total, label, time.monotonic() - start, end="\n")


def _paint(count: int, total: int | None, label: str, seconds: float, *, end: str) -> None:
    of = "" if total is None else f"/{total}"
    rate = significant(count / seconds) if seconds > 0 else "–"
    text = f"{label + ': ' if label else ''}{count}{of} steps, {rate} steps/s"
    print(f"\r{text:<60}", end=end, file=sys.stderr, flush=True)
