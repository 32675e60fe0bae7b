"""Elements as arrays in the memory of a device of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from workbench.data.passes import Pass
from workbench.data.stage import Opener, Stage
from workbench.data.tables import Failed, Run, attempts, single
from workbench.device_spec import DeviceSpec
from workbench.errors import InvalidArgumentError

_NO_NUMBERS = "OUSMmV"
"""Kinds of dtypes that no device supports: text, dates, records."""


@dataclass(frozen=True, eq=False)
class ToDevice(Stage):
    """Copies the arrays of each element to a device.

    It is left out at the end of a pipeline for replicas: a replica's arguments are on its device anyway.

    Attributes:
      device: A name such as "GPU:0", or a device of JAX.
    """

    name: ClassVar[str] = "to_device"
    keeps_batches: ClassVar[bool] = True
    sees_failures: ClassVar[bool] = True
    device: Any

    @staticmethod
    def of(device: Any, what: str) -> ToDevice:
        """Checks the argument; whether the device exists is checked in a pass.

        Args:
          device: The device that the user named.
          what: The user's function, for errors.

        Raises:
          InvalidArgumentError: if it is neither a device of JAX nor the name of one of this machine.
        """
        if _is_of_jax(device):
            return ToDevice(device)
        try:
            spec = device if isinstance(device, DeviceSpec) else DeviceSpec.from_string(str(device))
        except ValueError as error:
            raise InvalidArgumentError(f"{what}: {error}") from None
        if spec.device_type not in ("CPU", "GPU", "TPU"):
            raise InvalidArgumentError(
                f"{what}: {str(device)!r} names no device; write 'GPU:0', 'CPU:0' or 'TPU:0', or give one of "
                "jax.devices()"
            )
        if spec.task:
            raise InvalidArgumentError(
                f"{what}: {str(device)!r} is a device of another machine; a strategy copies batches to its replicas: "
                "strategy.distribute_dataset(dataset)"
            )
        return ToDevice(spec)

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over the runs of `upstream()`."""
        copied = self._copying()
        for item in attempts(upstream(), current.provenance):
            if isinstance(item, Failed):
                yield item
                continue
            leaves, structure, ids = item
            try:
                there = [copied(leaf) if _is_numbers(leaf) else leaf for leaf in leaves]
            except Exception as error:  # such as a lack of memory
                yield Failed(error)
            else:
                yield single(there, structure, ids)

    def _copying(self) -> Callable[[Any], Any]:
        """The function that copies an array.

        Raises:
          BackendUnavailable: if CuPy, JAX or the device is missing.
        """
        if not isinstance(self.device, DeviceSpec):
            from workbench.backends.jax import mesh

            return lambda array: mesh.on_device(array, self.device)
        index = self.device.device_index or 0
        match self.device.device_type:
            case "GPU":
                from workbench.backends import cupy

                cupy.check_ordinal(index)
                return lambda array: cupy.on_device(array, index)
            case "TPU":
                from workbench.backends.jax import mesh

                device = mesh.device_of("tpu", index)
                return lambda array: mesh.on_device(array, device)
        return lambda array: array

    def describe(self) -> str:
        """The stage as a short text."""
        device = self.device
        if isinstance(device, DeviceSpec):
            return f"to_device({device.device_type}:{device.device_index or 0})"
        return f"to_device({device})"


def _is_of_jax(device: Any) -> bool:
    return type(device).__module__.partition(".")[0] in ("jax", "jaxlib") and hasattr(device, "platform")


def _is_numbers(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.kind not in _NO_NUMBERS
