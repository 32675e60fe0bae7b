"""Input pipelines: `Dataset` with its sources and stages, sharding, and the split of batches among replicas.

A pipeline is a description (a source and a tuple of frozen stages) that is sent to the hosts that read it. Names are
loaded when they are first used.
"""

from __future__ import annotations

from workbench import lazy_names

__getattr__, __dir__ = lazy_names.attach(__name__)
