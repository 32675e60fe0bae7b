"""Limits the threads of BLAS libraries in worker processes, together, to the number of cores."""

from __future__ import annotations

import functools
import os

import dask
import psutil
import threadpoolctl

from workbench.allowance import cores
from workbench.runtime.process import fork_server

_VARIABLE = "OPENBLAS_NUM_THREADS"
_NAMES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", _VARIABLE)
# Variables that workbench's nannies have left in the environment of this process.
_left_by_ours: dict[str, str] = {}


def environment(workers: int) -> dict[str, str]:
    """The environment that limits libraries loaded later, in each of this many worker processes.

    A number of threads in the user's environment has priority.
    """
    wishes = {name: os.environ[name] for name in _NAMES if os.environ.get(name) and not _left_behind(name)}
    share = wishes.get("OMP_NUM_THREADS") or str(max(1, cores() // workers))
    threads = {name: wishes.get(name, share) for name in _NAMES}
    if not fork_server.AVAILABLE:
        _left_by_ours.update(threads)
    return threads


def follow_environment() -> None:
    """Limits libraries that are already loaded, such as NumPy's in a forked process."""
    count = os.environ.get(_VARIABLE, "")
    if count.isdecimal() and int(count):
        threadpoolctl.threadpool_limits(int(count), user_api="blas")


def _left_behind(name: str) -> bool:
    """Whether a nanny, rather than the user, has set this variable.

    For spawned workers, nannies set variables in their own process and leave them set; by default Dask sets one
    thread. They set all variables at once, so a variable without the others is the user's, as is one with which this
    process was started.
    """
    value = os.environ[name]
    if _at_start().get(name) == value:
        return False
    configured = dask.config.get("distributed.nanny.pre-spawn-environ", default={})
    left_by_dasks = {key: str(said) for key, said in configured.items() if said is not None}
    return any(
        value == left.get(name) and all(key in os.environ for key in left)
        for left in (left_by_dasks, _left_by_ours)
    )


@functools.cache
def _at_start() -> dict[str, str]:
    """The environment with which this process was started."""
    try:
        return dict(psutil.Process().environ())
    except (psutil.Error, OSError):  # not every system provides it
        return {}
