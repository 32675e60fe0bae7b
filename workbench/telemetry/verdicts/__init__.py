"""A run in one sentence: the most important thing first, with the figures behind it.

`verdicts` judges what a feed has folded, of a live cluster and of a recorded run alike; `Hold` keeps the sentence that
is shown from flickering. Causes are named only where they were measured.
"""

from workbench.telemetry.verdicts.hold import Hold
from workbench.telemetry.verdicts.judge import verdicts
from workbench.telemetry.verdicts.verdict import Verdict

__all__ = ["Hold", "Verdict", "verdicts"]
