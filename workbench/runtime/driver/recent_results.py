"""Small results of the newest steps, such as losses: what tells since when one of them has been NaN."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Any, Final

from workbench.errors import CaptureError
from workbench.runtime.comm.messages import PickledLeaf, unpickled
from workbench.runtime.driver.step import Step

_MAX_STEPS: Final = 1024
_MAX_PLACES: Final = 16
_MAX_LEAVES: Final = 4
_MAX_BYTES: Final = 64


class RecentResults:
    """Numbers that the newest steps gave back, by the place in the user's code that ran them.

    They came with the steps' completions, so keeping them costs a reference. Of a place whose first result has more
    than four leaves, or large ones, nothing is kept.
    """

    def __init__(self) -> None:
        self._places: OrderedDict[tuple[str, str], deque[tuple[int, list[Any]]]] = OrderedDict()

    def add(self, step: Step) -> None:
        """Takes note of a step that succeeded."""
        place = step.site, step.name
        try:
            steps = self._places[place]
        except KeyError:
            steps = self._places[place] = deque(maxlen=_MAX_STEPS if _are_small(step.leaves[0]) else 0)
            if len(self._places) > _MAX_PLACES:
                self._places.popitem(last=False)
        steps.append((step.number, step.leaves))  # a fifth of the cost of looking at each step's results

    def bad_since(self, step: Step, leaf: int, rank: int) -> tuple[int, bool]:
        """Since when a result has not been finite.

        Args:
          step: In which it is not.
          leaf: Which leaf of the step's result.
          rank: On which replica.

        Returns:
          The first of the steps without interruption, up to `step`, in which it was not; and whether the one before
          is known to have been finite.
        """
        since = step.number
        for number, leaves in reversed(self._places.get((step.site, step.name), ())):
            if number > step.number:
                continue
            held = leaves[rank][leaf] if leaves[rank] is not None and leaf < len(leaves[rank]) else None
            if type(held) not in (tuple, PickledLeaf):
                return since, False
            if is_finite(_value(held)):
                return since, number < step.number
            since = number
        return since, False


def is_finite(value: Any) -> bool:
    """Whether a small result has neither NaN nor infinity in it; what is no number has not."""
    import numpy as np

    try:
        return bool(np.isfinite(value).all())
    except TypeError:
        return True


def _are_small(leaves: Any) -> bool:
    if not leaves or len(leaves) > _MAX_LEAVES:
        return False
    return all(
        type(leaf) in (tuple, PickledLeaf) and getattr(_value(leaf), "nbytes", 8) <= _MAX_BYTES
        for leaf in leaves
    )


def _value(held: Any) -> Any:
    if type(held) is not PickledLeaf:
        return held[0]
    try:
        return unpickled(held.data, "a result")
    except CaptureError:
        return None  # reading the result itself raises
