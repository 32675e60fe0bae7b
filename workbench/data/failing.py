"""How elements that cannot be made are handled: each raises once, at its place, and later ones follow.

A generator that raises has ended. So nothing raises in a pipeline: a `Failed` replaces the element, and only the reader
of the elements (`Elements`, `Reader`) raises. Most stages need not know about this: failures wait while a stage looks
for its next element, and are yielded before the stage's next result. The stage keeps what it has buffered, such as a
shuffle's elements.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from workbench.data.tables import Failed, Run

_MOST_WAITING: Final = 1024
_Opener = Callable[[], Iterator[Run]]


class Upstream:
    """The runs that a stage reads, without those that failed."""

    __slots__ = ("_runs", "_waiting")

    def __init__(self, runs: Iterator[Run], waiting: deque[Failed]) -> None:
        """Reads `runs`; failures go to `waiting`."""
        self._runs = runs
        self._waiting = waiting

    def __iter__(self) -> Upstream:
        return self

    def __next__(self) -> Run:
        while isinstance(run := next(self._runs), Failed):
            self.fail(run)
        return run

    def fail(self, failed: Failed) -> None:
        """Queues an element that could not be made.

        Raises:
          Exception: the element's error, after a long series of nothing but failures: a stage could look for an element
            forever.
        """
        if len(self._waiting) >= _MOST_WAITING:
            raise failed.error
        self._waiting.append(failed)


def opened(open_stage: Callable[[_Opener], Iterator[Run]], below: _Opener) -> Iterator[Run]:
    """The runs of a stage that does not know about failures; those from below it are yielded at their places.

    Args:
      open_stage: Starts the stage; its argument starts the upstream.
      below: Starts the stages below it.
    """
    waiting: deque[Failed] = deque()
    for run in guarded(open_stage(lambda: Upstream(below(), waiting))):
        while waiting:
            yield waiting.popleft()
        yield run
    while waiting:
        yield waiting.popleft()


def guarded(runs: Iterator[Run]) -> Iterator[Run]:
    """`runs`; an error that they raise becomes their last element."""
    failed = None
    try:
        # `yield from` would also close the generators. If Python collects both at once, that fails, without an error of
        # an element.
        for run in runs:  # noqa: UP028
            yield run
    except Exception as error:
        failed = Failed(error)
    if failed is not None:
        yield failed


def raised(runs: Iterator[Run]) -> Iterator[Run]:
    """`runs` for a reader that needs all of them: raises the error of an element that could not be made."""
    for run in runs:
        if isinstance(run, Failed):
            raise run.taken()
        yield run
