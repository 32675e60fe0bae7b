"""Names of devices: what a user's names mean, and the `device` scope."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, ContextDecorator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from workbench.device_spec import DeviceSpec
from workbench.errors import InvalidArgumentError, WrongType

SERVICE_JOBS: Final = ("ps", "evaluator")
"""Jobs whose devices get replicas only on request: parameter servers and evaluators."""


@dataclass(frozen=True, slots=True)
class Device:
    """A concrete device of a cluster, on which one replica can run.

    Attributes:
      kind: "CPU", "GPU" or "TPU".
      index: Position among the devices of that kind on its host.
      host: Name of the host, such as "a" or "node-17".
      worker: Address of the worker process that owns it.
      task: Number of the host in the cluster.
      job: Job of its worker, usually "worker"; "ps" on a parameter server.
    """

    kind: str
    index: int
    host: str
    worker: str
    task: int
    job: str = "worker"

    @property
    def string(self) -> str:
        """The full name, such as '/job:worker/replica:0/task:0/device:CPU:0'."""
        return f"/job:{self.job}/replica:0/task:{self.task}/device:{self.kind}:{self.index}"

    @property
    def short(self) -> str:
        """The name on its host, such as 'CPU:0'."""
        return f"{self.kind}:{self.index}"

    @property
    def spec(self) -> DeviceSpec:
        """The full name as a DeviceSpec."""
        return DeviceSpec(self.job, 0, self.task, self.kind, self.index)

    def __str__(self) -> str:
        return self.string


_around: ContextVar[tuple[DeviceSpec, ...]] = ContextVar("workbench.device", default=())


def device(device_name: str | DeviceSpec | Device | None) -> DeviceScope:
    """Sets the device for objects created inside the block (as tf.device).

    Scopes nest: fields of the inner one take precedence, and others are kept. None ignores the outer scopes. An index
    without a type names no device, and is ignored. A scope can be used repeatedly, and as a decorator.

    Args:
      device_name: A full or partial name, such as "/job:worker/task:1" or "GPU:0".

    Returns:
      A context manager, whose value is the merged description inside the block.

    Raises:
      ValueError: when the block is entered, if the name cannot be read, or is not a name at all, such as a function.
    """
    return DeviceScope(device_name)


class DeviceScope(ContextDecorator, AbstractContextManager[DeviceSpec, None]):
    """The scope from `device`, for a `with` block; reusable, also inside itself and by other threads."""

    def __init__(self, name: str | DeviceSpec | Device | None) -> None:
        self._name = name

    def __enter__(self) -> DeviceSpec:
        merged = DeviceSpec()
        if self._name is not None:
            inner = _as_spec(self._name)
            inner = inner.replace(device_index=None) if inner.device_type is None else inner
            merged = current_device().make_merged_spec(inner)
        _around.set((*_around.get(), merged))
        return merged

    def __exit__(self, *raised: object) -> None:
        _around.set(_around.get()[:-1])


def current_device() -> DeviceSpec:
    """The merged description of the `device` scopes around the caller; empty outside any."""
    around = _around.get()
    return around[-1] if around else DeviceSpec()


def place(spec: DeviceSpec, available: Sequence[Device]) -> Device:
    """Picks the device for an object created under `spec` from those `available`.

    As in the reference's eager mode, this is soft: without a type, it is the CPU; without an index, or with one that
    does not exist, the first device of the type; and without a device of that type, the first of all.

    Raises:
      InvalidArgumentError: if no device has the job, replica and task that `spec` names.
    """
    there = [item for item in available if _is_at(spec, item)]
    if not there:
        raise InvalidArgumentError(
            f"there is no device at {spec.to_string()!r}; there are {_listing(available)}"
        )
    same_kind = [item for item in there if item.kind == (spec.device_type or "CPU").upper()]
    exact = [item for item in same_kind if item.index == spec.device_index]
    return (exact or same_kind or there)[0]


def checked_list(devices: Any) -> Sequence[Any]:
    """`devices` itself, if it is a list of them.

    Raises:
      TypeError: if it is a single device, or a number; the message says what to write.
    """
    if isinstance(devices, str | DeviceSpec | Device):
        raise TypeError(f"devices must be a list, got {devices!r}; write [{str(devices)!r}]")
    if not isinstance(devices, Sequence):
        raise TypeError(
            f"devices must be a list of names, got {devices!r}; write ['CPU:0', 'CPU:1'], or leave it out to use all "
            f"that there are"
        )
    return devices


def resolve(devices: Sequence[str | DeviceSpec | Device], available: Sequence[Device]) -> tuple[Device, ...]:
    """Finds the devices requested for a strategy, in the requested order.

    A name without a task means the first host that has the device, one without an index means index 0.

    Args:
      devices: Names such as "CPU:0" or "/job:worker/task:1/device:GPU:0".
      available: The devices of the cluster, host by host.

    Raises:
      InvalidArgumentError: if `devices` is empty, names a device that does not exist, or one device twice.
      TypeError: if `devices` is not a list.
    """
    checked_list(devices)
    if not devices:
        raise InvalidArgumentError(
            f"devices is empty; leave it out to use all that there are: {_listing(available)}"
        )
    found: dict[Device, int] = {}
    for position, name in enumerate(devices):
        match = _find(_as_spec(name), available)
        if match is None:
            raise InvalidArgumentError(_missing(position, name, len(devices), available))
        if match in found:
            raise InvalidArgumentError(
                f"devices[{found[match]}] and devices[{position}] are both {match.string}; "
                f"each replica needs a device of its own, of {_listing(available)}"
            )
        found[match] = position
    return tuple(found)


def _find(spec: DeviceSpec, available: Sequence[Device]) -> Device | None:
    kind, index = (spec.device_type or "CPU").upper(), spec.device_index or 0
    return next((d for d in available if _is_at(spec, d) and (d.kind, d.index) == (kind, index)), None)


def _is_at(spec: DeviceSpec, candidate: Device) -> bool:
    """Whether the host of `candidate` matches. Programs for a single host use "localhost"."""
    return (
        spec.job in (None, candidate.job, "localhost")
        and spec.replica in (None, 0)
        and spec.task in (None, candidate.task)
    )


def _as_spec(name: str | DeviceSpec | Device) -> DeviceSpec:
    match name:
        case DeviceSpec():
            return name
        case Device():
            return name.spec
        case str():
            return DeviceSpec.from_string(name)
    raise WrongType(f"a device is a name such as 'CPU:0' or a DeviceSpec, got {name!r}")


def _missing(position: int, name: str | DeviceSpec | Device, asked: int, available: Sequence[Device]) -> str:
    spec = _as_spec(name)
    kind = (spec.device_type or "CPU").upper()
    count = sum(item.kind == kind for item in available)
    text = f"devices[{position}] is {str(name)!r}, which this cluster does not have"
    if impossible := _impossible(spec, available):
        return f"{text}: {impossible}; there are {_listing(available)}"
    if kind == "CPU":
        wanted = spec.device_index or 0
        remedy = f"wb.connect(replicas={max(asked, count + 1, wanted + 1)}) gives more CPU devices"
    else:
        remedy = f"`workbench doctor` says which {kind}s are found and what is missing"
    count_text = "1 device was" if asked == 1 else f"{asked} devices were"
    return f"{text}: {count_text} asked for, and there are {_listing(available)}; {remedy}"


def _impossible(spec: DeviceSpec, available: Sequence[Device]) -> str:
    """What makes a name invalid for any number of replicas; "" if nothing does."""
    if spec.device_index is not None and spec.device_index < 0:
        return f"indices count from 0, and {spec.device_index} is below"
    if not available or any(_is_at(spec, item) for item in available):
        return ""
    if not any(_is_at(DeviceSpec(job=spec.job), item) for item in available):
        return f"its devices are of /job:{available[0].job}, not of /job:{spec.job}; leave the job out"
    if spec.replica not in (None, 0):
        return (
            f"/replica:{spec.replica} is part of a device's full name that is always /replica:0 here; leave it out, "
            f"and name devices by their index"
        )
    hosts = len({item.task for item in available})
    return (
        f"/task:{spec.task} would be host {spec.task}, and they count from 0 to {hosts - 1}; wb.connect(hosts=…) gives "
        f"more, and without the task a name means the first that has the device"
    )


def _listing(available: Sequence[Device]) -> str:
    """The devices in words, such as "CPU:0 to CPU:3 on a": at most one short text per host and kind."""
    ranges: dict[tuple[str, str], list[int]] = {}
    for item in available:
        ranges.setdefault((item.host, item.kind), []).append(item.index)
    texts = []
    for (host, kind), indices in ranges.items():
        span = f"{kind}:{indices[0]}" if len(indices) == 1 else f"{kind}:{indices[0]} to {kind}:{indices[-1]}"
        texts.append(f"{span} on {host}")
    shown = ", ".join(texts[:8])
    return f"{shown} and {len(texts) - 8} more" if len(texts) > 8 else shown or "no devices"
