"""What the fork server imports for the workers, and what these must not share. Nothing else imports this module."""

from __future__ import annotations

import os

import numpy as np
import numpy.random

import workbench.runtime.plugin  # noqa: F401

# Else all workers would draw the same numbers. The module `random` does this by itself.
os.register_at_fork(after_in_child=np.random.seed)
