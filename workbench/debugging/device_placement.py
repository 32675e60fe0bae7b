"""Whether the log reports what is placed on which devices."""

from __future__ import annotations

import numpy as np

_enabled = False
_times_set = 0


def set_log_device_placement(enabled: bool) -> None:
    """Sets whether the log reports what is placed where (as tf.debugging.set_log_device_placement).

    From then on `wb.log()` has a line for each variable that is created, for each dataset that is distributed, and for
    each function that a strategy runs on new devices, with the values that it receives from the notebook and those that
    the replicas already have.

    Args:
      enabled: Whether to report it; initially False.

    Raises:
      TypeError: if it is not a bool or whole number.
    """
    global _enabled, _times_set
    if not isinstance(enabled, int | np.bool_ | np.integer):
        raise TypeError(f"set_log_device_placement takes a bool, got {enabled!r:.60}")
    _enabled = bool(enabled)
    _times_set += 1


def get_log_device_placement() -> bool:
    """Whether the log reports what is placed where (as tf.debugging.get_log_device_placement)."""
    return _enabled


def times_set() -> int:
    """How often `set_log_device_placement` was called; each call allows earlier reports to be repeated."""
    return _times_set
