"""Sends parts of the user's script to the workers by value; workers never run it."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from multiprocessing import spawn
from typing import Any, Final

import cloudpickle

MAIN: Final = frozenset({"__main__", "__mp_main__"})
"""The names of the script's module; the second one in a child of `multiprocessing`, which imports it."""
_WORKER = "Dask Worker process (from Nanny)"  # the name that Dask gives its worker processes
_MAIN = ("init_main_from_name", "init_main_from_path")


def carry_main() -> None:
    """Lets the script's functions and classes also travel by value from a child of `multiprocessing`. Idempotent.

    In such a child, cloudpickle would take the script for a module that workers can import.
    """
    script = sys.modules.get("__mp_main__")
    # In other processes, this is another name for `__main__`.
    if script is not None and script.__name__ == "__mp_main__":
        cloudpickle.register_pickle_by_value(script)


def leave_main_out() -> None:
    """Lets worker processes start without importing the script that starts them. Idempotent.

    A spawned process imports the script that started it, because the script may define what has to be unpickled. So the
    script runs again, and without `if __name__ == "__main__":` would try to start a cluster in each worker. Workbench
    sends functions by value, from scripts as from notebooks, so workers do not need the script. Other processes that
    the user starts are unaffected. Dask has no setting for this, so workers are recognised by the process name.
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
