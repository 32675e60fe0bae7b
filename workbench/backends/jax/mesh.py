"""Starts JAX on a worker, and spreads arrays with one row per replica over its devices."""

from __future__ import annotations

import contextlib
import gc
import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.backends.numpy import check_jax_width, view
from workbench.errors import BackendUnavailable, InvalidArgumentError, LibraryMissing, UnavailableError
from workbench.extras import install_command

try:
    import jax
except ImportError as error:
    raise LibraryMissing(
        f"JAX is not installed: {install_command('jax')} (tpu instead of jax on TPU hosts)"
    ) from error

import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

AXIS = "replica"
_started: tuple[int, int, int] | None = None


def start(count: int, *, coordinator: str = "", processes: int = 1, process: int = 0) -> None:
    """Starts JAX in this process; must run before anything else uses it.

    Args:
      count: Number of devices of this host; emulated if the environment says JAX_PLATFORMS=cpu.
      coordinator: The address where the processes meet, as "host:port", if there are several.
      processes: Number of processes, one per host.
      process: The number of this process.

    Raises:
      BackendUnavailable: if the host has fewer devices, or JAX was already started differently.
      UnavailableError: if the processes do not find each other in time.
    """
    global _started
    if _started is not None:
        if _started == (count, processes, process):
            return
        raise BackendUnavailable(
            f"JAX runs in this worker already, as process {_started[2]} of {_started[1]} with {_started[0]} devices; "
            f"connect again with wb.connect(tpu=...)"
        )
    if os.environ.get("JAX_PLATFORMS") == "cpu":
        jax.config.update("jax_num_cpu_devices", count)
        _let_each_other_finish()
    if processes > 1:
        try:
            jax.distributed.initialize(
                coordinator,
                processes,
                process,
                initialization_timeout=30,
                # JAX does not authenticate connections, and would listen on all addresses of the machine.
                coordinator_bind_address=coordinator if process == 0 else None,
            )
        except RuntimeError as error:
            raise UnavailableError(
                f"JAX process {process} of {processes} did not meet the others at {coordinator}: {error}"
            ) from error
    found = len(jax.local_devices())
    if found < count:
        raise BackendUnavailable(
            f"this host has {found} {jax.default_backend()} devices, {count} were asked for; use "
            f"wb.connect(tpu={found}), or set JAX_PLATFORMS=cpu to emulate them"
        )
    _started = (count, processes, process)
    # JAX keeps some hundred thousand objects forever. Each garbage collection that visits them takes 0.1 s.
    gc.collect()
    gc.freeze()


def _let_each_other_finish() -> None:
    """Makes threads started by this one wait for a free core when they wake up, instead of preempting another thread.

    Emulated devices share few cores and wait for each other in collectives, so preempting one of them delays all. This
    makes steps up to a sixth faster.
    """
    if hasattr(os, "SCHED_BATCH"):  # Linux only
        with contextlib.suppress(OSError):  # a sandbox may forbid it
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def namespace() -> Any:
    """`jax.numpy`."""
    return jnp


def device_of(platform: str, index: int) -> Any:
    """A device of this process, by its platform and number.

    Raises:
      BackendUnavailable: if there is none.
    """
    try:
        devices = jax.local_devices(backend=platform)
    except RuntimeError as error:
        raise BackendUnavailable(f"JAX finds no device of {platform}: {error}") from error
    if not 0 <= index < len(devices):
        raise BackendUnavailable(f"there is no {platform}:{index}; JAX finds {len(devices)} of them here")
    return devices[index]


def on_device(value: np.ndarray[Any, Any], device: Any) -> Any:
    """A new array on a JAX device.

    Raises:
      InvalidArgumentError: if JAX would change whole numbers in `value`.
    """
    check_jax_width(np.asarray(value))
    return jax.device_put(value, device)


class Rows:
    """One component per replica, as rows of an array that is spread over the devices.

    Attributes:
      array: Shape `(replicas, ...)`, row r on the device of replica r.
      shape: Shape of a component.
      dtype: Dtype of the components.
      fed: Whether each host, and not a program, put its own components there.
    """

    __slots__ = ("_on_host", "array", "dtype", "fed", "shape")

    def __init__(self, array: Any, *, fed: bool = False) -> None:
        self.array = array
        self.fed = fed
        self.shape: tuple[int, ...] = array.shape[1:]
        self.dtype: np.dtype[Any] = array.dtype
        self._on_host: np.ndarray[Any, Any] | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of one component."""
        return math.prod(self.shape) * self.dtype.itemsize

    def row(self, position: int) -> Row:
        """This process's component number `position`, without a copy."""
        return Row(self, position)

    def component(self, position: int) -> np.ndarray[Any, Any]:
        """A copy of this process's component number `position`; waits until it is computed."""
        if self._on_host is not None:
            return self._on_host[position, ...].copy()
        if not self.array.size:  # every device has the whole of a result without elements
            return np.empty(self.shape, self.dtype)
        component: np.ndarray[Any, Any] = np.asarray(np.array(self._shards()[position].data)[0])
        return component

    def bring_home(self) -> np.ndarray[Any, Any]:
        """This process's components as rows of one array, which is cached if small."""
        if self._on_host is None:
            if self.array.size:
                self._on_host = np.concatenate([np.asarray(shard.data) for shard in self._shards()])
            else:
                count = len(self.array.addressable_shards)
                self._on_host = np.stack([self.component(position) for position in range(count)])
        return self._on_host

    def _shards(self) -> list[Any]:
        """This process's part of the array: one row each, in the order of the replicas."""
        return sorted(self.array.addressable_shards, key=lambda shard: shard.index[0].start or 0)


class Row:
    """One replica's component of `Rows`; sent as a NumPy array.

    Attributes:
      rows: The components of all replicas.
      position: Its number among this process's components.
    """

    __slots__ = ("position", "rows")

    def __init__(self, rows: Rows, position: int) -> None:
        self.rows = rows
        self.position = position

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the component."""
        return self.rows.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of its elements."""
        return self.rows.dtype

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        return self.rows.nbytes

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy on the host."""
        return self.rows.component(self.position)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __reduce__(self) -> Any:
        return self.numpy().__reduce__()


class ReplicaMesh:
    """The devices of a group of replicas, in rank order.

    Args:
      places: Per rank, the number of its process and of its device in the process.
    """

    def __init__(self, places: Sequence[tuple[int, int]]) -> None:
        by_process: dict[int, list[Any]] = {}
        for device in jax.devices():
            by_process.setdefault(device.process_index, []).append(device)
        devices = [
            sorted(by_process[process], key=lambda device: device.id)[index] for process, index in places
        ]
        self.size = len(devices)
        self.mesh = Mesh(np.array(devices), (AXIS,))
        self.by_row = NamedSharding(self.mesh, PartitionSpec(AXIS))
        self.same = NamedSharding(self.mesh, PartitionSpec())
        self._local = [device for device in devices if device.process_index == jax.process_index()]

    def stack(self, components: Sequence[Any]) -> Rows:
        """Places this process's components, of equal shape and dtype, on their devices."""
        arrays = [np.asarray(view(component)) for component in components]
        for array in arrays:
            check_jax_width(array)
        # `device_put` may alias memory that its owner modifies later, so this passes a fresh copy.
        if len(self._local) == self.size:  # one call for all takes a third of the time
            return Rows(jax.device_put(np.stack(arrays), self.by_row), fed=True)
        rows = [
            jax.device_put(np.array(array[np.newaxis]), device)
            for array, device in zip(arrays, self._local, strict=True)
        ]
        shape = (self.size, *arrays[0].shape)
        return Rows(jax.make_array_from_single_device_arrays(shape, self.by_row, rows), fed=True)

    def in_place(self, components: Sequence[Any]) -> Rows | None:
        """The `Rows` that these components form, one per replica in rank order; None if they do not."""
        first = components[0]
        if type(first) is not Row or first.rows.array.sharding != self.by_row:
            return None
        for position, component in enumerate(components):
            if (
                type(component) is not Row
                or component.rows is not first.rows
                or component.position != position
            ):
                return None
        return first.rows

    def placed(self, rows: Rows) -> Any:
        """The array of `rows` as an argument of a program."""
        if 0 not in rows.shape:
            return rows.array
        return self.stack([np.empty(rows.shape, rows.dtype)] * len(self._local)).array

    def share(self, value: Any) -> Any:
        """One value for all replicas, as an argument of a program; a Python number stays without its own dtype.

        Raises:
          InvalidArgumentError: if an integer has more bits than JAX has.
        """
        if isinstance(value, np.ndarray):
            check_jax_width(value)
        weak = type(value) in (bool, int, float, complex)
        if not weak and len(self._local) < self.size:
            # The value comes from the notebook, so all hosts have the same; `device_put` would compare them by a
            # collective per step.
            parts = [jax.device_put(np.array(value), device) for device in self._local]
            return jax.make_array_from_single_device_arrays(np.shape(value), self.same, parts)
        try:
            return jax.device_put(value if weak else np.array(value), self.same)
        except OverflowError as error:
            raise InvalidArgumentError(
                f"the integer {value} does not fit: {error}; connect with "
                f"wb.connect(tpu=..., environment={{'JAX_ENABLE_X64': '1'}}) for 64 bits, or pass a float"
            ) from error
