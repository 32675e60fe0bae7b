"""Records in the form of files, with the names of tf.io: checksums, record files, tensors and examples as bytes.

Names are loaded when they are first used.
"""

from __future__ import annotations

from workbench import lazy_names

__getattr__, __dir__ = lazy_names.attach(__name__)
