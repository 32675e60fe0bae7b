"""Options of workers that the panel starts: read from a request, and passed to the process that holds them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from workbench.errors import InvalidArgumentError
from workbench.runtime.layout import check_limits

MAX_REPLICAS: Final = 256
"""The most workers that a cluster of the panel can have."""
KINDS: Final = ("cpu", "gpu", "tpu")


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """The workers of a cluster without a driver.

    Attributes:
      replicas: Number of replicas; with `maximum`, while no notebook uses them.
      maximum: Number of replicas while a notebook uses them; 0 for a fixed number.
      kind: What replicas run on: "cpu", "gpu" (one each) or "tpu" (emulated if there are no chips).
      threads: Whether all replicas are threads of one process.
      memory_limit: Memory of a worker process, in Dask's notation; "" divides the machine's memory among them.
    """

    replicas: int
    maximum: int = 0
    kind: str = "cpu"
    threads: bool = False
    memory_limit: str = ""

    @property
    def resizable(self) -> bool:
        """Whether their number can change: each replica has its own process."""
        return not self.threads and self.kind != "tpu"

    @property
    def workers(self) -> int:
        """How many worker processes hold the replicas."""
        return self.replicas if self.resizable else 1

    @property
    def devices(self) -> int:
        """Devices of a worker process."""
        return 1 if self.resizable else self.replicas

    def to_json(self) -> str:
        """The input of `read`."""
        return json.dumps(asdict(self))


def read(body: dict[str, Any]) -> WorkerOptions:
    """Checks a request.

    Raises:
      InvalidArgumentError: if it is impossible; the message says what is possible.
    """
    known = {part.name: type(part.default) for part in fields(WorkerOptions)} | {"replicas": int}
    for name, value in body.items():
        if name not in known:
            raise InvalidArgumentError(f"workers have no option {name[:40]!r}; there are: {', '.join(known)}")
        if type(value) is not known[name]:
            words = {int: "a whole number", str: "a text", bool: "true or false"}
            raise InvalidArgumentError(f"{name} must be {words[known[name]]}, got {str(value)[:40]!r}")
    if "replicas" not in body:
        raise InvalidArgumentError('how many replicas? The request reads {"replicas": 2}')
    options = WorkerOptions(**body)
    check_number(options.replicas)
    if options.kind not in KINDS:
        raise InvalidArgumentError(f"kind must be one of {', '.join(KINDS)}, got {options.kind[:40]!r}")
    if options.threads and options.kind == "gpu":
        raise InvalidArgumentError("replicas on GPUs have a process each: leave threads out")
    check_range(options.replicas, options.maximum)
    if options.maximum and not options.resizable:
        raise InvalidArgumentError("the number of replicas of one process stays: leave maximum out")
    check_limits(1.0, None, options.memory_limit or None)
    return options


def check_number(replicas: int) -> None:
    """Rejects an impossible number of replicas."""
    if not 1 <= replicas <= MAX_REPLICAS:
        raise InvalidArgumentError(f"replicas must be between 1 and {MAX_REPLICAS}, got {replicas}")


def check_range(minimum: int, maximum: int) -> None:
    """Rejects an impossible maximum number of replicas; 0 means none."""
    if maximum and not minimum <= maximum <= MAX_REPLICAS:
        raise InvalidArgumentError(f"maximum must be between {minimum} and {MAX_REPLICAS}, got {maximum}")
