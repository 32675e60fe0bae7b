"""Threads of BLAS libraries in worker processes: together no more than there are cores."""

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
    """What tells libraries that are loaded from now on, in each of so many worker processes.

    Where the user's environment says how many threads, that holds.
    """
    wishes = {name: os.environ[name] for name in _NAMES if os.environ.get(name) and not _left_behind(name)}
    share = wishes.get("OMP_NUM_THREADS") or str(max(1, cores() // workers))
    threads = {name: wishes.get(name, share) for name in _NAMES}
    if not fork_server.AVAILABLE:
        _left_by_ours.update(threads)
    return threads


def follow_environment() -> None:
    """Tells those that are loaded already, as NumPy's is in a process that was forked."""
    count = os.environ.get(_VARIABLE, "")
    if count.isdecimal() and int(count):
        threadpoolctl.threadpool_limits(int(count), user_api="blas")


def _left_behind(name: str) -> bool:
    """Whether a nanny, rather than the user, has set this variable.

    Nannies set variables for spawned workers in their own process, and leave them set; Dask's default configuration
    says one thread. They set all of them at once. So a variable without the others is the user's, and so is one that
    this process was started with.
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
    """The environment that this process was started with."""
    try:
        return dict(psutil.Process().environ())
    except (psutil.Error, OSError):  # not every system shows it
        return {}
