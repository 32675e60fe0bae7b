"""Reads ahead on a thread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from workbench.arguments import whole_number
from workbench.data.background.read_ahead import Limits, ReadAhead
from workbench.data.options import AUTOTUNE
from workbench.data.passes import Pass
from workbench.data.stage import Opener, Stage
from workbench.data.tables import Run
from workbench.errors import InvalidArgumentError


@dataclass(frozen=True)
class Prefetch(Stage):
    """Makes up to `buffer_size` elements ahead of their use, without changing them.

    At the end of a pipeline for replicas, their reading process reads ahead instead, by `HostPipeline.read_ahead`
    elements.
    """

    name: ClassVar[str] = "prefetch"
    keeps_batches: ClassVar[bool] = True
    sees_failures: ClassVar[bool] = True
    buffer_size: int

    @staticmethod
    def of(buffer_size: int | None) -> Prefetch:
        """Checks the argument.

        Raises:
          InvalidArgumentError: if it is below -1.
        """
        size = AUTOTUNE if buffer_size is None else whole_number(buffer_size, "prefetch: buffer_size")
        if size < AUTOTUNE:
            raise InvalidArgumentError(
                f"prefetch: buffer_size is {size}; give a number of elements, or AUTOTUNE (-1)"
            )
        return Prefetch(size)

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over the runs of `upstream()`."""
        if self.buffer_size == 0:
            yield from upstream()
            return
        elements = None if self.buffer_size == AUTOTUNE else self.buffer_size
        limits = Limits(current.most_waiting_bytes, elements)
        ahead = ReadAhead(
            upstream, limits, name="wb-prefetch", provenance=current.provenance, meter=current.meter
        )
        try:
            yield from ahead
        finally:
            ahead.close()

    def describe(self) -> str:
        """The stage as a short text."""
        return "prefetch(AUTOTUNE)" if self.buffer_size == AUTOTUNE else f"prefetch({self.buffer_size})"


def check_parallel_calls(
    stage: str, num_parallel_calls: int | None, argument: str = "num_parallel_calls"
) -> None:
    """Rejects an invalid number of parallel calls.

    Args:
      stage: Name of the stage or function, for errors.
      num_parallel_calls: The number.
      argument: The name of its argument.

    Raises:
      TypeError: if it is not a whole number.
      InvalidArgumentError: unless it is positive, AUTOTUNE or None.
    """
    if num_parallel_calls is None:
        return
    calls = whole_number(num_parallel_calls, f"{stage}: {argument}")
    if calls != AUTOTUNE and calls < 1:
        raise InvalidArgumentError(
            f"{stage}: {argument} is {num_parallel_calls}; give at least 1, AUTOTUNE (-1), or None for "
            "one call after the other"
        )
