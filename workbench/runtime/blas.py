"""Threads of BLAS libraries in worker processes: together no more than there are cores."""

from __future__ import annotations

import os

import threadpoolctl

from workbench.allowance import cores

_VARIABLE = "OPENBLAS_NUM_THREADS"


def environment(workers: int) -> dict[str, str]:
    """What tells libraries that are loaded from now on, in each of so many worker processes.

    Where the user's environment says how many threads, that holds.
    """
    share = os.environ.get("OMP_NUM_THREADS") or str(max(1, cores() // workers))
    return {name: os.environ.get(name) or share for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", _VARIABLE)}


def follow_environment() -> None:
    """Tells those that are loaded already, as NumPy's is in a process that was forked."""
    count = os.environ.get(_VARIABLE, "")
    if count.isdecimal() and int(count):
        threadpoolctl.threadpool_limits(int(count), user_api="blas")
