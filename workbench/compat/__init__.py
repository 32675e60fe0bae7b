"""`wb.compat`: programs for TensorFlow 1 keep their spellings; a warning shows each modern spelling once.

`towers` has the first generation (tf.contrib.distribute), `v1` the strategies of TensorFlow 1.15. Both are thin
adapters over `wb.distribute`.
"""

from __future__ import annotations

from workbench import lazy_names

__getattr__, __dir__ = lazy_names.attach(__name__)
