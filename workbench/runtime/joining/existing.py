"""The tasks of an existing Dask cluster, from the names of its workers."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Final

from distributed import Client

from workbench.errors import InvalidArgumentError, UnavailableError
from workbench.runtime.deploy.tasks import tasks_by_name

_ANSWER_SECONDS: Final = 10.0


def scheduler_file_address(path: Path) -> str:
    """The address in a file written by `dask scheduler --scheduler-file`.

    Raises:
      InvalidArgumentError: if it is not such a file.
    """
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["address"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidArgumentError(
            f"{path} is not a scheduler file ({type(error).__name__}: {error}); `dask scheduler "
            f"--scheduler-file` writes one"
        ) from error


def tasks_of_workers(client: Client) -> dict[str, dict[int, str]]:
    """Job -> number -> address "host:port" of the first worker of each task.

    Workers without a task's name belong to the job "worker", numbered after the named ones in the order of their names.

    Raises:
      UnavailableError: if the scheduler does not answer.
    """
    scheduler: Any = client.scheduler

    async def ask() -> dict[str, Any]:
        identity: dict[str, Any] = await asyncio.wait_for(scheduler.identity(n_workers=-1), _ANSWER_SECONDS)
        return identity

    try:
        workers: dict[str, Any] = client.sync(ask)["workers"]
    except (OSError, TimeoutError) as error:
        raise UnavailableError(f"the Dask scheduler at {scheduler.address} does not answer") from error
    places = {str(worker["name"]): address.partition("://")[2] for address, worker in workers.items()}
    jobs: dict[str, dict[int, str]] = {}
    for name, task in tasks_by_name(places).items():
        jobs.setdefault(task.job, {}).setdefault(task.index, places[name])
    return jobs
