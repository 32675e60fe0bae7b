"""Checks for courses and users' own tests, which examine what happened, never the clock; faults to learn from.

    with wb.testing.trace(strategy) as steps:
        strategy.run(step, args=(batch,))
    wb.testing.assert_collectives(steps, ["all_reduce"]) wb.testing.assert_in_sync(strategy)

A check that fails raises an `AssertionError` that says what was expected, what was found, and where. `inject` makes a
replica function misbehave on one replica, to show what that looks like. `progress` shows how many exercises of a lab
are done.

A name is imported when it is first used: a worker only needs the faults.
"""

from __future__ import annotations

from workbench import lazy_names

__getattr__, __dir__ = lazy_names.attach(__name__)
