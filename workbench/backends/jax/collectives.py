"""Collectives of a traced replica function: the Communicator whose replicas are the rows of a program."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from workbench.backends.jax.mesh import AXIS
from workbench.backends.numpy import accumulator, mean_dtype
from workbench.errors import InvalidArgumentError, TracingError

_REDUCE: dict[str, Any] = {"sum": lax.psum, "mean": lax.psum, "min": lax.pmin, "max": lax.pmax}


class _Reduction(Protocol):
    """The attributes read from the communicators' `Reduction`, which belongs to a higher layer."""

    @property
    def op(self) -> str:
        """The operation, such as "sum"."""


class AxisCommunicator:
    """One replica's end of a group inside a traced program: the methods of `Communicator` as program operations.

    Attributes:
      rank: The rank as a traced value: it differs by replica, so Python cannot branch on it.
      size: Number of replicas.
      generation: Always 0; programs outlive the rebuilding of a group.
      transport: What carries the data.
    """

    generation = 0
    transport = "xla"

    def __init__(self, size: int) -> None:
        self.size = size
        self.rank: Any = lax.axis_index(AXIS)

    def begin(self, step: int, order: int | None = None) -> None:
        """Does nothing: the program is the step."""

    def finish(self) -> None:
        """Does nothing."""

    def all_reduce(self, arrays: Sequence[Any], request: _Reduction) -> list[Any]:
        """Combines each array over all replicas; XLA packs and schedules, so options have no effect."""
        return [_all_reduce(as_traced(array), request.op) for array in arrays]

    def reduce(self, arrays: Sequence[Any], op: str, root: int, **_: Any) -> list[Any]:
        """As `all_reduce`: a program has one structure, so every replica gets the result."""
        return [_all_reduce(as_traced(array), op) for array in arrays]

    def reduce_scatter(self, array: Any, op: str, **_: Any) -> Any:
        """Combines, and keeps this replica's part along axis 0, whose size must divide evenly."""
        array = as_traced(array)
        if array.ndim == 0 or array.shape[0] % self.size:
            raise InvalidArgumentError(
                f"reduce_scatter of shape {array.shape} over {self.size} replicas: under tracing all parts have one "
                f"shape; pad axis 0 to a multiple of {self.size}"
            )
        rows = array.shape[0] // self.size
        return lax.dynamic_slice_in_dim(_all_reduce(array, op), self.rank * rows, rows)

    def all_gather(self, array: Any, axis: int, **_: Any) -> Any:
        """Concatenates along `axis`; all replicas have the same shape."""
        return lax.all_gather(as_traced(array), AXIS, axis=axis, tiled=True)

    def all_gather_arrays(self, arrays: Sequence[Any], axis: int, **_: Any) -> list[Any]:
        """Concatenates each along `axis`."""
        return [self.all_gather(array, axis) for array in arrays]

    def broadcast(self, array: Any, root: int, **_: Any) -> Any:
        """The array of replica `root`."""
        array = as_traced(array)
        bits = array.astype(jnp.uint8) if array.dtype == bool else array
        sent = lax.psum(jnp.where(self.rank == root, bits, jnp.zeros_like(bits)), AXIS)
        return sent.astype(array.dtype)

    def barrier(self, **_: Any) -> None:
        """Does nothing: replicas run in lockstep."""

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> Any:
        """An array of zeros: traced arrays cannot be written to."""
        return jnp.zeros(shape, dtype)

    def record(self, *what: Any) -> NoReturn:
        """Raises: programs cannot record."""
        raise NotImplementedError("a compiled program records no collectives; its worker samples them")

    def internal(self, purpose: str) -> AbstractContextManager[None]:
        """Does nothing: collectives inside a compiled program are not recorded."""
        return nullcontext()

    def paused(self, what: str, site: str = "") -> AbstractContextManager[None]:
        """Does nothing."""
        return nullcontext()

    def status(self) -> NoReturn:
        """Raises: programs have no status."""
        raise NotImplementedError(
            "a compiled program is at no collective; ask the communicator of its worker"
        )

    flight = status

    def abort(self, error: BaseException) -> None:
        """Does nothing: no replica waits while a program is traced."""

    def give_back(self, before: float) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


def as_traced(value: Any) -> Any:
    """`value` as an array in the program.

    Raises:
      TracingError: if it is not an array of numbers.
    """
    try:
        return jnp.asarray(value)
    except (TypeError, ValueError) as error:
        raise TracingError(
            f"a traced program computes with arrays of numbers only, got {type(value).__name__}; do this part outside "
            f"of the replica function: {error}"
        ) from error


def _all_reduce(array: Any, op: str) -> Any:
    kind = np.dtype(array.dtype)
    if kind.kind == "b" and op in ("sum", "prod"):
        combine: Any = lax.pmax if op == "sum" else lax.pmin
        return combine(array.astype(jnp.uint8), AXIS).astype(bool)
    result = mean_dtype(kind) if op == "mean" else kind
    wide = array.astype(jax.dtypes.canonicalize_dtype(accumulator(kind, op)))
    if op == "prod":
        combined = jnp.prod(lax.all_gather(wide, AXIS), axis=0, dtype=wide.dtype)
    elif op not in _REDUCE:
        raise ValueError(f"unknown reduction {op!r}: use one of sum, mean, min, max, prod")
    elif kind.kind == "b":
        combined = _REDUCE[op](wide.astype(jnp.uint8 if op != "mean" else wide.dtype), AXIS)
    else:
        combined = _REDUCE[op](wide, AXIS)
    if op == "mean":
        combined = combined / lax.axis_size(AXIS)
    return combined.astype(jax.dtypes.canonicalize_dtype(result))


def choose(condition: Any, on_true: Any, on_false: Any) -> Any:
    """`on_true` where `condition` holds, else `on_false`: both are computed."""
    return jnp.where(as_traced(condition), as_traced(on_true), as_traced(on_false))
