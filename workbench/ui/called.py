"""What `wb.collectives` is to users: when called, the view of what ran; beside it what measures and predicts."""

from __future__ import annotations

from workbench.telemetry.cost_model import LinkCost
from workbench.ui.collectives import collectives as timings
from workbench.ui.sweep import sweep
from workbench.ui.what_if import what_if


class Collectives:
    """`wb.collectives(…)` shows the timings; `.sweep` and `.what_if` measure and predict them."""

    LinkCost = LinkCost
    __call__ = staticmethod(timings)
    sweep = staticmethod(sweep)
    what_if = staticmethod(what_if)


collectives = Collectives()
