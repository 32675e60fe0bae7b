"""Keeps worker processes from running the user's script again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from multiprocessing import spawn
from typing import Any

_WORKER = "Dask Worker process (from Nanny)"  # the name that Dask gives the processes of its workers
_MAIN = ("init_main_from_name", "init_main_from_path")


def leave_main_out() -> None:
    """Lets worker processes start without importing the script that starts them. Idempotent.

    A spawned process imports the script that it was started from, as it could hold what has to be unpickled: the script
    runs again, and without `if __name__ == "__main__":` it would try to start a cluster in each of its own workers. Our
    functions travel by value, in a script as in a notebook, so workers need nothing of it. Other processes that the
    user starts are left as they are. Dask offers no setting for this: the name of the process tells.
    """
    prepared = spawn.get_preparation_data
    if not hasattr(prepared, "__wrapped__"):
        spawn.get_preparation_data = _without_main(prepared)  # type: ignore[assignment]


def _without_main(prepared: Callable[[str], dict[str, Any]]) -> Callable[[str], dict[str, Any]]:
    @functools.wraps(prepared)
    def get_preparation_data(name: str) -> dict[str, Any]:
        data = prepared(name)
        if name == _WORKER:
            for key in _MAIN:
                data.pop(key, None)
        return data

    return get_preparation_data
