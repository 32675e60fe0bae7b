"""The arguments of a traced program: arrays with a row per replica, and values that are the same for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from workbench.backends.numpy import require_unmasked
from workbench.errors import InvalidArgumentError, TracingError
from workbench.runtime.comm.messages import Ref
from workbench.runtime.traced.slices import Slices

if TYPE_CHECKING:
    from workbench.backends.jax.mesh import ReplicaMesh, Rows
    from workbench.runtime.replica.executor import DeviceExecutor

PartialBatch = Literal["recompile", "pad"]
_NUMBERS = (bool, int, float, complex)


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments of one step.

    Attributes:
      structure: The structure of (args, kwargs), or None without arguments.
      kinds: For each leaf "row", "shared", "padded", or ("fixed", value) if it is not an array.
      rows: Arrays with a row per replica; a padded one is followed by its counts of rows.
      shared: Values that are the same for all replicas.
      signature: The hashable signature of the leaves: a program compiled for the same structure fits if it is equal.
    """

    structure: Any
    kinds: tuple[Any, ...]
    rows: list[Any]
    shared: list[Any]
    signature: Any


def arguments_of(
    mesh: ReplicaMesh,
    executors: Sequence[DeviceExecutor],
    kept_rows: Callable[[Ref], Rows | None],
    keep_rows: Callable[[Ref, Rows], None],
    structure: Any,
    leaves: Sequence[Any],
    partial_batch: PartialBatch,
    most_rows: dict[int, int],
    padded_to: Callable[[int, int], int],
) -> Arguments:
    """Puts the arguments of a step where the program expects them.

    Args:
      mesh: The devices.
      executors: The executors of this worker's replicas, in rank order: they hold the components.
      kept_rows: Returns components that are already in place.
      keep_rows: Takes components that have replaced NumPy arrays.
      structure: The structure of the arguments.
      leaves: Each a `Ref`, or a value for all replicas.
      partial_batch: How to handle components of different lengths.
      most_rows: By leaf, the most rows on any replica of any host, if there are several hosts.
      padded_to: Called as `padded_to(leaf, rows)`; returns the number of rows to pad to.

    Raises:
      KeyError: if a component does not exist any more.
      InvalidArgumentError: if components do not fit together.
    """
    kinds: list[Any] = []
    signature: list[Any] = []
    rows: list[Any] = []
    shared: list[Any] = []
    for index, leaf in enumerate(leaves):
        if type(leaf) is not Ref:
            kind, value, sign = _shared(mesh, leaf, index)
            if kind == "shared":
                shared.append(value)
        else:
            in_place = kept_rows(leaf)
            if in_place is not None and (partial_batch == "recompile" or not in_place.shape):
                kinds.append("row")
                signature.append(_signature("row", in_place))
                rows.append(in_place)
                continue
            components = [executor.kept(leaf) for executor in executors]
            for component in components:
                require_unmasked(component)
            kind, values, sign = _distributed(
                mesh,
                components,
                index,
                partial_batch,
                lambda index, rows: padded_to(index, max(rows, most_rows.get(index, 0))),
            )
            rows += values
            if kind == "row" and isinstance(components[0], np.ndarray):
                keep_rows(leaf, values[0])  # so that the next step with the same value finds it in place
        kinds.append(kind)
        signature.append(sign)
    arrays = [mesh.placed(item) for item in rows]
    return Arguments(structure, tuple(kinds), arrays, shared, tuple(signature))


def _shared(mesh: ReplicaMesh, value: Any, index: int) -> tuple[Any, Any, Any]:
    kind = type(value)
    require_unmasked(value)
    if kind in _NUMBERS:
        return "shared", mesh.share(value), kind
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype != object and value.dtype.kind not in "SU":
        return "shared", mesh.share(np.asarray(value)), ("shared", value.dtype.str, value.shape)
    return _fixed(value, index)


def _fixed(value: Any, index: int) -> tuple[Any, Any, Any]:
    """Makes a value other than an array a part of the program: another value needs another program."""
    if isinstance(value, np.ndarray):
        raise TracingError(
            f"argument {index} is an array of {value.dtype}: a traced program computes with numbers only; convert it "
            f"to numbers (such as indices) outside of the replica function"
        )
    try:
        hash(value)
        return ("fixed", value), None, ("fixed", type(value), value)
    except TypeError as error:
        raise TracingError(
            f"argument {index} is a {type(value).__name__}, which is neither an array nor hashable, so a traced "
            f"program cannot take it; pass what it holds as arrays"
        ) from error


def _distributed(
    mesh: ReplicaMesh,
    components: Sequence[Any],
    index: int,
    partial_batch: PartialBatch,
    padded_to: Callable[[int, int], int],
) -> tuple[Any, list[Any], Any]:
    first = components[0]
    slices = Slices.of(first)
    if slices is not None:
        if any(Slices.of(component) != slices for component in components):
            raise InvalidArgumentError(
                f"argument {index} is IndexedSlices on some replicas, and differs on others"
            )
        parts = [
            [component.values for component in components],
            [component.indices for component in components],
        ]
        (_, values, a), (_, indices, b) = (
            _distributed(mesh, part, index, "recompile", padded_to) for part in parts
        )
        return slices, values + indices, (slices, a, b)
    rows = mesh.in_place(components)
    if rows is not None and (partial_batch == "recompile" or not rows.shape):
        return "row", [rows], _signature("row", rows)
    if not _is_numeric(first):
        return _same_for_all(components, index)
    arrays = [np.asarray(component) for component in components]
    if len({array.dtype for array in arrays}) > 1 or len({array.shape[1:] for array in arrays}) > 1:
        raise InvalidArgumentError(
            f"argument {index} differs by replica: {_described(arrays)}; dtypes and trailing "
            f"dimensions must be equal"
        )
    if partial_batch == "pad" and arrays[0].ndim:
        target = padded_to(index, max(len(array) for array in arrays))
        counts = [np.int32(len(array)) for array in arrays]
        rows = mesh.stack([_padded(array, target) for array in arrays])
        return "padded", [rows, mesh.stack(counts)], _signature("padded", rows)
    if len({array.shape for array in arrays}) > 1:
        raise InvalidArgumentError(
            f"argument {index} has another shape on some replicas: {_described(arrays)}, and a traced program has one "
            f"shape for all; batch with drop_remainder=True, use a batch size that divides evenly, or pad: "
            f"strategy.run(..., options=wb.distribute.RunOptions(partial_batch='pad')) with ctx.row_mask(x)"
        )
    rows = mesh.stack(arrays)
    return "row", [rows], _signature("row", rows)


def _signature(kind: str, rows: Rows) -> tuple[Any, ...]:
    return kind, rows.dtype.num, rows.shape  # hashing a dtype may take longer than starting a program


def _same_for_all(components: Sequence[Any], index: int) -> tuple[Any, list[Any], Any]:
    first = components[0]
    kind, _, sign = _fixed(first, index)
    if any(type(component) is not type(first) or component != first for component in components[1:]):
        raise TracingError(
            f"argument {index} is a {type(first).__name__} that differs by replica, and a traced function runs once "
            f"for all of them; pass numbers instead"
        )
    return kind, [], sign


def _is_numeric(value: Any) -> bool:
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        return type(value) in _NUMBERS
    return np.dtype(dtype).kind not in "OSU"


def _padded(array: np.ndarray[Any, Any], rows: int) -> np.ndarray[Any, Any]:
    if len(array) == rows:
        return array
    return np.concatenate([array, np.zeros((rows - len(array), *array.shape[1:]), array.dtype)])


def _described(arrays: Sequence[np.ndarray[Any, Any]]) -> str:
    return ", ".join(f"{array.dtype.name}{list(array.shape)}" for array in arrays[:8])
