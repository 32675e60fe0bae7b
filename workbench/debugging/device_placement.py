"""Whether the log tells what is placed on which devices."""

from __future__ import annotations

import numpy as np

_enabled = False
_times_set = 0


def set_log_device_placement(enabled: bool) -> None:
    """Says whether the log tells what is placed where (as tf.debugging.set_log_device_placement).

    From then on `wb.log()` has a line for each variable that is created, for each dataset that is distributed, and for
    each function that a strategy runs on devices where it did not run before, with what it is given from the notebook
    and what the replicas have already.

    Args:
      enabled: Whether to tell it; False at first.

    Raises:
      TypeError: if it is not a bool or whole number.
    """
    global _enabled, _times_set
    if not isinstance(enabled, int | np.bool_ | np.integer):
        raise TypeError(f"set_log_device_placement takes a bool, got {enabled!r:.60}")
    _enabled = bool(enabled)
    _times_set += 1


def get_log_device_placement() -> bool:
    """Whether the log tells what is placed where (as tf.debugging.get_log_device_placement)."""
    return _enabled


def times_set() -> int:
    """How often `set_log_device_placement` was called: what was told before may be told again then."""
    return _times_set
