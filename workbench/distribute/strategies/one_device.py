"""OneDeviceStrategy: everything on one device."""

from __future__ import annotations

from workbench import runtime
from workbench.backends.library import Library, checked_library
from workbench.device_names import Device, resolve
from workbench.device_spec import DeviceSpec
from workbench.distribute.strategies.strategy import Strategy


class OneDeviceStrategy(Strategy):
    """One replica on the given device (as tf.distribute.OneDeviceStrategy); to try out a program first.

    Args:
      device: Its name, such as "CPU:0" or "GPU:1".
      backend: Array library of variables and `ctx.xp` on a CPU device: "numpy" or "jax".

    Raises:
      InvalidArgumentError: if there is no such device.

    >>> strategy = wb.OneDeviceStrategy("CPU:0")
    >>> strategy.run(lambda x: x + 1, args=(1,)).values
    (2,)
    """

    def __init__(self, device: str | DeviceSpec | Device, *, backend: Library = "numpy") -> None:
        library = checked_library(backend)
        cluster = runtime.auto_connect(1)
        group = cluster.group(resolve([device], cluster.devices), label=type(self).__name__)
        super().__init__(group, library=library)
