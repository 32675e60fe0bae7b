"""Checks of replicas that share the GPU."""

from __future__ import annotations

from collections.abc import Iterator

from tests.gpu.replicas import threads_of
from tests.gpu.results import Row, held


def shared_gpu(quick: bool) -> Iterator[Row]:
    """Logical replicas against NumPy."""
    for size in (1, 2, 4):
        wrong = threads_of(size, dict.fromkeys(range(size), 0))
        yield held(f"{size} replicas on one GPU", not wrong, f"wrong: {wrong[:3] or 'none'}")
