"""Checks for courses and for one's own tests, which look at what happened, never at the clock; faults to learn from.

    with wb.testing.trace(strategy) as steps:
        strategy.run(step, args=(batch,))
    wb.testing.assert_collectives(steps, ["all_reduce"])
    wb.testing.assert_in_sync(strategy)

A check that fails raises an `AssertionError` that says what was expected, what was found, and where. `inject` makes a
replica function misbehave on one replica, to see what that looks like.

A name below is imported when it is first used: a worker needs the faults only.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.testing.collectives import Collective as Collective
    from workbench.testing.collectives import Trace as Trace
    from workbench.testing.collectives import assert_collectives as assert_collectives
    from workbench.testing.collectives import trace as trace
    from workbench.testing.faults import Killed as Killed
    from workbench.testing.faults import NaNInput as NaNInput
    from workbench.testing.faults import OtherCollective as OtherCollective
    from workbench.testing.faults import SkippedCollective as SkippedCollective
    from workbench.testing.faults import Slow as Slow
    from workbench.testing.faults import inject as inject
    from workbench.testing.sharding import assert_every_element_once as assert_every_element_once
    from workbench.testing.sharding import assert_sharding as assert_sharding
    from workbench.testing.values import assert_finite as assert_finite
    from workbench.testing.values import assert_in_sync as assert_in_sync
    from workbench.testing.values import assert_same_on_all as assert_same_on_all

_EXPORTS = {
    "assert_in_sync": "values",
    "assert_same_on_all": "values",
    "assert_finite": "values",
    "trace": "collectives",
    "Trace": "collectives",
    "Collective": "collectives",
    "assert_collectives": "collectives",
    "assert_every_element_once": "sharding",
    "assert_sharding": "sharding",
    "inject": "faults",
    "Slow": "faults",
    "NaNInput": "faults",
    "SkippedCollective": "faults",
    "OtherCollective": "faults",
    "Killed": "faults",
}

__all__ = [
    "assert_in_sync",
    "assert_same_on_all",
    "assert_finite",
    "trace",
    "Trace",
    "Collective",
    "assert_collectives",
    "assert_every_element_once",
    "assert_sharding",
    "inject",
    "Slow",
    "NaNInput",
    "SkippedCollective",
    "OtherCollective",
    "Killed",
]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'workbench.testing' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"workbench.testing.{_EXPORTS[name]}"), name)
    globals()[name] = value  # the next use finds it at once
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
