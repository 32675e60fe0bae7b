"""The devices, hosts and worker processes that the arguments of `connect` request."""

from __future__ import annotations

from numbers import Real
from typing import Any, Literal, NamedTuple

from workbench import allowance
from workbench.arguments import count
from workbench.errors import InvalidArgumentError, WrongType
from workbench.runtime.process.gpus import chosen, default
from workbench.runtime.process.tpu import devices_here
from workbench.runtime.process.tpu import worker_environment as tpu_environment

Layout = dict[str, tuple[str, int]]
"""Worker name -> (host label, devices), in the order of the hosts."""

REPLICA_BYTES = 512 << 20
"""Memory of the machine or container that each worker process needs by default: at least a tenth of it for the process
itself, the rest for values.
"""


def check_gpus(address: Any, otherwise: bool, per_worker: int) -> None:
    """Refuses arguments that exclude numbers of GPUs."""
    if address is not None:
        raise InvalidArgumentError(
            "gpus and gpu_replicas describe an embedded cluster; workers of a cluster given by address are on GPUs if "
            "CUDA_VISIBLE_DEVICES is set for them: start them with dask-cuda, or one per GPU with that variable"
        )
    if otherwise or per_worker != 1:
        raise InvalidArgumentError(
            "gpus=n gives n GPUs one replica each, gpu_replicas=n one GPU n replicas; leave out replicas, hosts, "
            "replicas_per_host, replicas_per_worker and tpu"
        )


def gpus_asked(
    gpus: int | None, gpu_replicas: int | None, otherwise: bool, processes: bool
) -> tuple[str, ...]:
    """The GPUs of the embedded cluster; empty for CPU devices."""
    if gpus or gpu_replicas is not None:
        if not processes and gpu_replicas is None:
            raise InvalidArgumentError(
                "with processes=False all replicas are in this process; use gpu_replicas to put them on its GPU"
            )
        return chosen(gpus or None, gpu_replicas)
    return () if gpus == 0 or otherwise or not processes else default()


def check_tpu(tpu: Any, replicas: int | None, per_host: int | None, per_worker: int, processes: bool) -> None:
    """Refuses invalid numbers of TPU cores, and arguments that exclude them."""
    if not (isinstance(tpu, str) and tpu == "auto"):
        count(tpu, "tpu", otherwise=", the TPU cores of a host, or 'auto' for all there are")
    if replicas is not None or per_host is not None or per_worker != 1 or not processes:
        raise InvalidArgumentError(
            "tpu=n gives each host n devices in a process of its own; leave out replicas, replicas_per_host, "
            "replicas_per_worker and processes, and use hosts for more of them"
        )


def check_limits(
    stall_seconds: float, timeout_seconds: float | None, memory_limit: str | int | float | None
) -> None:
    """Refuses invalid times, and memory limits that Dask cannot read."""
    if not isinstance(memory_limit, str | Real | None):
        raise WrongType(
            f"memory_limit must be bytes, or a text such as '4 GiB', got {type(memory_limit).__name__} "
            f"{memory_limit!r:.60}"
        )
    for name, value in (("stall_seconds", stall_seconds), ("timeout_seconds", timeout_seconds)):
        if value is None and name == "timeout_seconds":
            continue
        if not isinstance(value, Real) or isinstance(value, bool) or not value > 0:
            raise InvalidArgumentError(f"{name} must be a number of seconds above 0, got {value!r}")
    if isinstance(memory_limit, str) and memory_limit != "auto":
        from dask.utils import parse_bytes

        try:
            limit = parse_bytes(memory_limit)
        except (ValueError, OverflowError) as error:
            raise InvalidArgumentError(
                f"memory_limit must be bytes, or a text such as '4 GiB', got {memory_limit!r}"
            ) from error
        if limit < 0:
            raise InvalidArgumentError(f"memory_limit cannot be negative, got {memory_limit!r}")


def check_minimum(minimum: int | None, replicas: int | None = None) -> int | None:
    """Refuses a `minimum_replicas` that is not a number of replicas, or too large if their number is known.

    Returns:
      The number as a Python int, even if it was one of NumPy's.
    """
    if minimum is None:
        return None
    minimum = count(minimum, "minimum_replicas")
    if replicas is not None and minimum > replicas:
        raise InvalidArgumentError(
            f"minimum_replicas={minimum} is more than the {replicas} that there are; use at most {replicas}, or leave "
            f"it out for a strategy that needs all of its replicas"
        )
    return minimum


class EmbeddedDevices(NamedTuple):
    """The devices of an embedded cluster.

    Attributes:
      kind: "CPU", "GPU" or "TPU".
      layout: See `Layout`.
      environment: Variables that their worker processes need.
      gpus: The GPU of each worker, as CUDA_VISIBLE_DEVICES names it.
    """

    kind: str
    layout: Layout
    environment: dict[str, str]
    gpus: tuple[str, ...] = ()


def embedded_devices(
    replicas: int | None,
    hosts: int | None,
    per_host: int | None,
    per_worker: int,
    processes: bool,
    *,
    tpu: int | Literal["auto"] | None,
    gpus: int | None,
    gpu_replicas: int | None,
) -> EmbeddedDevices:
    """The devices that arguments of `connect` request; the arguments must be consistent."""
    if tpu is not None:
        cores = devices_here() if tpu == "auto" else int(tpu)
        return EmbeddedDevices("TPU", layout(None, hosts, cores, cores, processes), tpu_environment(cores))
    laid_out = per_worker > 1 or any(value is not None for value in (replicas, hosts, per_host))
    if on := gpus_asked(gpus, gpu_replicas, laid_out, processes):
        workers = {str(index): ("a", int(gpu_replicas or 1)) for index in range(len(on))}
        return EmbeddedDevices("GPU", workers, {}, on)
    return EmbeddedDevices("CPU", layout(replicas, hosts, per_host, per_worker, processes), {})


def layout(
    replicas: int | None, hosts: int | None, per_host: int | None, per_worker: int, processes: bool
) -> Layout:
    """Worker name -> (host label, devices).

    Args:
      replicas: Number of replicas; None for the default.
      hosts: Number of hosts; None for one.
      per_host: Replicas on each host; None for an equal share.
      per_worker: Replicas in each worker process.
      processes: Whether workers are processes.
    """
    replicas = None if replicas is None else count(replicas, "replicas")
    host_count = 1 if hosts is None else count(hosts, "hosts")
    per_host = None if per_host is None else count(per_host, "replicas_per_host")
    per_worker = count(per_worker, "replicas_per_worker")
    if replicas is not None and per_host is not None and replicas != host_count * per_host:
        raise InvalidArgumentError(
            f"replicas={replicas} is not hosts × replicas_per_host = {host_count} × {per_host}; leave one of them out"
        )
    if replicas is not None and replicas % host_count:
        raise InvalidArgumentError(
            f"{replicas} replicas cannot be laid out evenly on {host_count} hosts; use a multiple of {host_count}"
        )
    on_host = per_host or (
        replicas // host_count if replicas is not None else max(1, default_replicas(processes) // host_count)
    )
    in_worker = on_host if not processes else per_worker
    if on_host % in_worker:
        raise InvalidArgumentError(
            f"{on_host} replicas per host cannot be divided over workers of {in_worker}; use a divisor of {on_host}"
        )
    workers: Layout = {}
    for host in range(host_count):
        label = chr(ord("a") + host) if host_count <= 26 else f"host{host}"
        for _ in range(on_host // in_worker):
            workers[str(len(workers))] = (label, in_worker)
    return workers


def default_replicas(processes: bool) -> int:
    """One per core that this process may use; for worker processes, no more than fit in its memory."""
    cores = allowance.cores()
    return max(1, min(cores, allowance.memory_bytes() // REPLICA_BYTES)) if processes else cores
