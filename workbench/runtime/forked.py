"""What the fork server imports last for the workers, and what these must not share. Nothing else imports this."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import time

import numpy as np
import numpy.random

import workbench.runtime.plugin  # noqa: F401
from workbench.runtime.fork_server import FOLDER

_PATIENCE_SECONDS = 2.0

# Else all workers would draw the same numbers. The module `random` does this by itself.
os.register_at_fork(after_in_child=np.random.seed)


def _tidy(folder: str, server: int, driver: int) -> None:
    """Removes the folder of a driver that was killed; one that ends does that itself, one that lives needs it."""
    if os.getpid() != server:  # one of the workers
        return
    ends = time.monotonic() + _PATIENCE_SECONDS
    while os.getppid() == driver:  # it closes what the server listens to a moment before it is gone
        if time.monotonic() > ends:
            return
        time.sleep(0.01)
    shutil.rmtree(folder, ignore_errors=True)


if FOLDER in os.environ:
    atexit.register(_tidy, os.environ.pop(FOLDER), os.getpid(), os.getppid())

# Whatever is imported by now stays. No worker has to look through all of it, time and again, for what could go.
gc.freeze()
