"""`wb.compat.v1`: the spellings of TensorFlow 1.15 (as tf.compat.v1)."""

from __future__ import annotations

from workbench import lazy_names

__getattr__, __dir__ = lazy_names.attach(__name__)
