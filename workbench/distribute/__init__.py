"""`wb.distribute`: strategies, the values and variables that they distribute, and the contexts that they run in."""

from __future__ import annotations

from workbench import lazy_names

__getattr__, __dir__ = lazy_names.attach(__name__)
