"""How elements that cannot be made are handled: each raises once, at its place, and later ones follow.

A generator that raises has ended. So in a pipeline nothing raises: `Failed` stands for the element, and only who reads
the elements (`Elements`, `Reader`) raises. Most stages need not know of it: theirs wait while the stage looks for the
next element, and come before what it gives next. What a stage holds back, such as the buffer of a shuffle, stays.
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
        """Goes through `runs`; what failed is put into `waiting`."""
        self._runs = runs
        self._waiting = waiting

    def __iter__(self) -> Upstream:
        return self

    def __next__(self) -> Run:
        while isinstance(run := next(self._runs), Failed):
            self.fail(run)
        return run

    def fail(self, failed: Failed) -> None:
        """Has an element wait that could not be made.

        Raises:
          Exception: why it could not, if nothing else has come for long: a stage may look for an element for ever.
        """
        if len(self._waiting) >= _MOST_WAITING:
            raise failed.error
        self._waiting.append(failed)


def opened(open_stage: Callable[[_Opener], Iterator[Run]], below: _Opener) -> Iterator[Run]:
    """What a stage gives, which does not know of failures: those below it come at their places.

    Args:
      open_stage: Starts the stage, given what starts its upstream.
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
    """`runs`; what they raise comes as their last element."""
    failed = None
    try:
        # `yield from` would also close the generators, which fails where Python collects both at once: not an
        # element's error.
        for run in runs:  # noqa: UP028
            yield run
    except Exception as error:
        failed = Failed(error)
    if failed is not None:
        yield failed


def raised(runs: Iterator[Run]) -> Iterator[Run]:
    """`runs` for who needs all of them: raises what could not be made."""
    for run in runs:
        if isinstance(run, Failed):
            raise run.taken()
        yield run
