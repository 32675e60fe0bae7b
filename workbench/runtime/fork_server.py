"""Where the processes of embedded workers come from: forked off one that has imported what they need.

Each worker that starts Python and imports Dask by itself takes 0.6 s of a core for that, when a cluster starts and when
a lost worker is replaced. The server does it once, while the driver imports Dask too; a fork takes milliseconds, and
shares its memory. It runs no threads, and imports no library that cannot be forked (CUDA, JAX, PyTorch).

It is the one of `multiprocessing`, so it ends with the driver, however that ends. What `multiprocessing` keeps in a
folder under /tmp goes with it (`forked`): a driver that is killed leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any, Final

AVAILABLE: Final = sys.platform == "linux"
"""Elsewhere system libraries do not survive a fork, or there is none: processes are spawned."""
_METHOD: Final = "distributed.worker.multiprocessing-method"
_PRELOADED: Final = (
    "workbench.data",
    "workbench.distribute.mirrored",
    "workbench.telemetry.batches",
    "workbench.runtime.forked",  # the last
)
_KEPT_BYTES: Final = str(64 * 1024 * 1024)
MEMORY_ENVIRONMENT: Final = {"MALLOC_TRIM_THRESHOLD_": _KEPT_BYTES, "MALLOC_MMAP_THRESHOLD_": _KEPT_BYTES}
"""Freed arrays up to 64 MiB stay in the process: taking each one anew from the system costs a page fault per 4 KiB."""
FOLDER: Final = "WB_FORK_SERVER_FOLDER"
"""The variable by which the server knows the driver's folder."""
_lock = threading.Lock()
_before: Any = None
_forking = 0


def start() -> None:
    """Starts the server unless it runs already; returns while it still imports."""
    if not AVAILABLE:
        return
    from multiprocessing import forkserver, parent_process, util

    variables = MEMORY_ENVIRONMENT | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    if parent_process() is None:  # else it may be the parent's folder
        variables[FOLDER] = util.get_temp_dir()
    # One BLAS thread: threads of a pool do not live on in a fork. Each worker makes its own, see `blas`.
    with _environment(variables):
        forkserver.set_forkserver_preload(list(_PRELOADED))
        forkserver.ensure_running()


@contextlib.contextmanager
def forking() -> Iterator[None]:
    """Has Dask's nannies fork meanwhile, where they would spawn. Several may do so at once, on one event loop.

    Dask asks its configuration for the method each time; that of other clusters in this process stays what it is.
    """
    global _before, _forking
    import dask
    from distributed import utils

    with _lock:
        if AVAILABLE and not _forking:
            # Dask would import all libraries that it knows here, only to list them for a server of its own.
            utils._forkserver_preload_set = True
            _before = dask.config.get(_METHOD)
            dask.config.set({_METHOD: "forkserver"})
        _forking += 1
    try:
        yield
    finally:
        with _lock:
            _forking -= 1
            if AVAILABLE and not _forking:
                dask.config.set({_METHOD: _before})


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
