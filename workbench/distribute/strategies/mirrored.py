"""MirroredStrategy: one replica per device, variables kept equal on all of them."""

from __future__ import annotations

from collections.abc import Sequence

from workbench import runtime
from workbench.backends.library import Library, checked_library
from workbench.device_names import SERVICE_JOBS, Device, checked_list, resolve
from workbench.device_spec import DeviceSpec
from workbench.distribute.replica.cross_device_ops import CrossDeviceOps
from workbench.distribute.strategies.strategy import Strategy
from workbench.errors import InvalidArgumentError


class MirroredStrategy(Strategy):
    """Synchronous computation on several devices (as tf.distribute.MirroredStrategy).

    Args:
      devices: Names such as ["CPU:0", "CPU:1"], one per replica; None takes all accelerators, or all CPU devices if
        there are none. If there is no cluster, the strategy starts one with enough devices.
      cross_device_ops: How replicas combine values; None for the fastest way.
      backend: Array library of variables and `ctx.xp` on CPU devices: "numpy" or "jax".

    Raises:
      InvalidArgumentError: if a device does not exist, or is given twice.
      BackendUnavailable: if `cross_device_ops` cannot work on the devices.

    >>> strategy = wb.MirroredStrategy(["CPU:0", "CPU:1"])
    >>> with strategy.scope():
    ...     w = wb.Variable([1.0, 2.0])
    >>> strategy.num_replicas_in_sync
    2
    """

    def __init__(
        self,
        devices: Sequence[str | DeviceSpec | Device] | None = None,
        cross_device_ops: CrossDeviceOps | None = None,
        *,
        backend: Library = "numpy",
    ) -> None:
        library = checked_library(backend)
        count = None if devices is None else len(checked_list(devices))
        on_gpus = devices is not None and any("GPU:" in str(device).upper() for device in devices)
        cluster = runtime.auto_connect(count, kind="GPU" if on_gpus else "CPU")
        chosen = default_devices(cluster.devices) if devices is None else resolve(devices, cluster.devices)
        check_ops(cross_device_ops)
        if chosen[0].kind == "TPU":
            raise InvalidArgumentError(
                f"{type(self).__name__} calls functions on each device, and TPUs run compiled programs: use "
                f"wb.TPUStrategy()"
            )
        group = cluster.group(chosen, label=type(self).__name__)
        super().__init__(group, cross_device_ops=cross_device_ops, library=library)


def default_devices(available: Sequence[Device]) -> tuple[Device, ...]:
    """All accelerators of the most common kind, or all CPU devices if there are none.

    Omits devices of parameter servers and evaluators.

    Raises:
      InvalidArgumentError: if there are no other devices.
    """
    usable = tuple(device for device in available if device.job not in SERVICE_JOBS)
    if not usable:
        jobs = " and ".join(sorted({device.job for device in available}))
        raise InvalidArgumentError(
            f"all devices of this cluster belong to {jobs} tasks, on which no replicas run by themselves; start tasks "
            f"of the job 'worker', or name devices"
        )
    for kind in ("GPU", "TPU"):
        found = tuple(device for device in usable if device.kind == kind)
        if found:
            return found
    return usable


def check_ops(cross_device_ops: CrossDeviceOps | None) -> None:
    """Refuses values other than CrossDeviceOps objects.

    Raises:
      TypeError: for example for a class instead of an object; it shows how to write it.
    """
    if cross_device_ops is not None and not isinstance(cross_device_ops, CrossDeviceOps):
        raise TypeError(
            f"cross_device_ops must be a CrossDeviceOps object, got {cross_device_ops!r}; write for example "
            f"cross_device_ops=wb.distribute.RingAllReduce()"
        )
