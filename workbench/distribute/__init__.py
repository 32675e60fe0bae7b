"""`wb.distribute`: strategies, their distributed values and variables, and the contexts in which they run."""

from __future__ import annotations

from workbench import lazy_names

__getattr__, __dir__ = lazy_names.attach(__name__)
