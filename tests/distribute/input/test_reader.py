"""The thread that reads ahead of the replicas."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

import workbench as wb
from workbench.distribute.input.read_step import LocalStep
from workbench.distribute.input.reader import Reader

_HUGE = np.full(1, 3e38, np.float32)


def _reader(elements: Iterator[Any]) -> Reader:
    pipeline: Any = SimpleNamespace(values_for=lambda replicas, **more: elements)
    return Reader(pipeline, 0, [0], ranks=[0], keep_as=LocalStep, ahead=True)


def test_what_is_read_ahead_warns_at_the_users_line_that_reads() -> None:
    overflowing = wb.Variable(_HUGE)
    # Has no frame of this file: the second element is read on a thread that runs no user code.
    reader = _reader(map(overflowing.__mul__, [np.float32(0), _HUGE]))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        reader.steps(0, 1, keep=0)
        line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
        reader.steps(1, 1, keep=0)
    assert [(one.filename, one.lineno) for one in told] == [(__file__, line)]
