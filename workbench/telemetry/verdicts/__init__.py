"""A run in one sentence: the most important thing first, with the figures behind it.

`verdicts` judges what a feed has folded, for a live cluster or a recorded run; `Hold` keeps the displayed sentence from
flickering. Causes are named only if they were measured.
"""

from workbench.telemetry.verdicts.hold import Hold
from workbench.telemetry.verdicts.judge import verdicts
from workbench.telemetry.verdicts.verdict import Verdict

__all__ = ["Hold", "Verdict", "verdicts"]
