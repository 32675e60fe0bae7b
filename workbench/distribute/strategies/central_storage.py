"""CentralStorageStrategy: replicas on several devices of a host, variables on a single one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from workbench import runtime
from workbench.backends.library import Library, checked_library
from workbench.device_names import Device, checked_list, resolve
from workbench.device_spec import DeviceSpec
from workbench.distribute.strategies.mirrored import default_devices
from workbench.distribute.strategies.strategy import Strategy
from workbench.distribute.variables.central_storage import placement_of
from workbench.errors import InvalidArgumentError

_Name = str | DeviceSpec | Device


class CentralStorageStrategy(Strategy):
    """Synchronous computation on several devices of one host, which share one copy of each variable.

    As tf.distribute.experimental.CentralStorageStrategy. A variable lives in memory of the parameter device, where the
    host's processes can read it; a replica that reads it gets a copy. Values that replicas assign are combined by the
    variable's aggregation on one replica, which updates the only copy; without an aggregation this is an error. So
    variables take memory only once, but reading and updating them costs more than with MirroredStrategy.

    Args:
      compute_devices: Names such as ["CPU:0", "CPU:1"], one per replica; None takes all accelerators of the first host,
        else all of its CPU devices.
      parameter_device: The device of variables; None is the device of a single replica, else the CPU.
      backend: Array library of variables and `ctx.xp` on CPU devices: "numpy" or "jax".

    Raises:
      InvalidArgumentError: if a device does not exist or is given twice, devices are on several hosts, or several
        replicas would need the memory of a GPU.

    >>> strategy = wb.distribute.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"])
    >>> with strategy.scope():
    ...     w = wb.Variable([1.0, 2.0], aggregation="SUM")
    >>> def step():
    ...     w.assign_add([1.0, 0.0])
    >>> strategy.run(step)
    >>> w.numpy()
    array([3., 2.], dtype=float32)
    """

    def __init__(
        self,
        compute_devices: Sequence[_Name] | None = None,
        parameter_device: _Name | None = None,
        *,
        backend: Library = "numpy",
    ) -> None:
        library = checked_library(backend)
        count = None if compute_devices is None else len(checked_list(compute_devices))
        on_gpus = compute_devices is not None and any("GPU:" in str(name).upper() for name in compute_devices)
        cluster = runtime.auto_connect(count, kind="GPU" if on_gpus else "CPU")
        chosen = _compute_devices(compute_devices, cluster.devices)
        central = _parameter_device(parameter_device, chosen, cluster.devices)
        super().__init__(
            cluster.group(chosen, label=type(self).__name__),
            library=library,
            parameter_device=central,
            holder=_holder(central, chosen),
            placement_of=placement_of,
        )


def _compute_devices(asked: Sequence[_Name] | None, available: Sequence[Device]) -> tuple[Device, ...]:
    if asked is None:
        candidates = default_devices(available)
        chosen = tuple(device for device in candidates if device.host == candidates[0].host)
    else:
        chosen = resolve(asked, available)
    if chosen[0].kind == "TPU":
        raise InvalidArgumentError(
            "CentralStorageStrategy calls functions on each device, and TPUs run compiled programs: use "
            "wb.TPUStrategy()"
        )
    hosts = dict.fromkeys(device.host for device in chosen)
    if len(hosts) > 1:
        raise InvalidArgumentError(
            f"compute_devices are on {len(hosts)} hosts ({', '.join(hosts)}), and CentralStorageStrategy keeps "
            f"variables in the memory of one; give devices of a single host, or use wb.MultiWorkerMirroredStrategy()"
        )
    return chosen


def _parameter_device(asked: _Name | None, chosen: Sequence[Device], available: Sequence[Device]) -> Device:
    """The device of variables. Every host has a CPU, even if its workers compute on GPUs."""
    first = chosen[0]
    if asked is None and len(chosen) == 1:
        return first
    on_host = [device for device in available if device.host == first.host]
    elsewhere = [device for device in available if device.host != first.host]
    if all(device.kind != "CPU" for device in on_host):
        on_host.append(replace(first, kind="CPU", index=0))
    if asked is None:
        return next(device for device in on_host if device.kind == "CPU")
    (central,) = resolve([asked], [*on_host, *elsewhere])
    if central.host != first.host:
        raise InvalidArgumentError(
            f"parameter_device is {central}, on host {central.host}, and the replicas are on {first.host}; give a "
            f"device of that host, or leave it out to use its CPU"
        )
    if central.kind != "CPU" and tuple(chosen) != (central,):
        raise InvalidArgumentError(
            f"parameter_device is {central.short}, whose memory replicas on other devices cannot read; leave "
            f"parameter_device out to keep variables in the memory of the host, or use wb.MirroredStrategy()"
        )
    return central


def _holder(central: Device, chosen: Sequence[Device]) -> int | None:
    """The replica that keeps the variables: the one on their device, otherwise the first. None if there is only one."""
    if tuple(chosen) == (central,):
        return None
    return chosen.index(central) if central in chosen else 0
