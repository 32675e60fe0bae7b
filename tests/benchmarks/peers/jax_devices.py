"""JAX on N emulated CPU devices of one process; imported before anything else touches JAX."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

SHOWN = 4
"""Devices of the array that pictures show."""


def mesh(replicas: int) -> tuple[Any, Any, Any]:
    """A mesh of so many devices: (mesh, sharding over it, sharding that repeats)."""
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={replicas}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    devices = jax.make_mesh((replicas,), ("i",))
    return devices, NamedSharding(devices, PartitionSpec("i")), NamedSharding(devices, PartitionSpec())


def waves() -> np.ndarray:
    """The array that pictures show, shape `(48, 64)`."""
    row, column = np.mgrid[0:48, 0:64] / 8
    return (np.sin(row) * np.cos(column)).astype(np.float32)
