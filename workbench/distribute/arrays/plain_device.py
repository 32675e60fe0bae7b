"""The device of a plain object, according to the `wb.device` scopes around its creation."""

from __future__ import annotations

from dataclasses import replace

from workbench import runtime
from workbench.device_names import Device, current_device, place

HERE = Device(kind="CPU", index=0, host="localhost", worker="", task=0, job="localhost")


def device_here() -> str:
    """Full name of the device that the scopes around the caller choose, CPU:0 outside scopes.

    It is a device of the cluster, or this process's CPU without a cluster; devices of the first host are called
    "localhost", as in programs for a single host.

    Raises:
      InvalidArgumentError: if no device has the job, replica and task that the scopes name.
    """
    cluster = runtime.current_cluster()
    available = (HERE,) if cluster is None or cluster.closed else cluster.devices
    chosen = place(current_device(), available)
    return (replace(chosen, job="localhost") if chosen.task == 0 else chosen).string
