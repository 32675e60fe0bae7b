"""OneDeviceStrategy: everything on one device."""

from __future__ import annotations

from workbench import runtime
from workbench.device_spec import DeviceSpec
from workbench.devices import Device, resolve
from workbench.distribute.strategy import Strategy


class OneDeviceStrategy(Strategy):
    """One replica on the given device (as tf.distribute.OneDeviceStrategy); for trying a program first.

    Args:
      device: Its name, such as "CPU:0" or "GPU:1".

    Raises:
      InvalidArgumentError: If there is no such device.
    """

    def __init__(self, device: str | DeviceSpec | Device) -> None:
        cluster = runtime.auto_connect(1)
        super().__init__(cluster.group(resolve([device], cluster.devices), label=type(self).__name__))
