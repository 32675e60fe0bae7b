"""JAX on N emulated CPU devices of one process; imported before anything else touches JAX."""

from __future__ import annotations

import os
from typing import Any


def mesh(replicas: int) -> tuple[Any, Any, Any]:
    """A mesh of so many devices: (mesh, sharding over it, sharding that repeats)."""
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={replicas}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    devices = jax.make_mesh((replicas,), ("i",))
    return devices, NamedSharding(devices, PartitionSpec("i")), NamedSharding(devices, PartitionSpec())
