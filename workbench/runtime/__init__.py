"""The only part that knows Dask: clusters, the gang of their workers, steps, values, failures.

A name is imported when it is first used: workers need few of these modules, and start sooner without the rest.
"""

from __future__ import annotations

from workbench import lazy_names

__getattr__, __dir__ = lazy_names.attach(__name__)
