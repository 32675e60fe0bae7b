"""Makes hosts agree on the values that they feed into a program, before they compile and run it.

Everything else on which a program depends comes from the notebook or from earlier programs, so it is the same on all
hosts. Values that each host has read itself may differ, for example if one host's last batch has fewer rows. Hosts that
then compiled or ran different programs would wait for each other forever.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import InvalidArgumentError
from workbench.runtime.comm.messages import Ref
from workbench.runtime.traced.slices import Slices
from workbench.telemetry.formatting import MOST_NAMED, replicas_text

if TYPE_CHECKING:
    from workbench.runtime.replica.executor import DeviceExecutor
    from workbench.runtime.traced.arguments import PartialBatch

_NO_ROWS = -1


def fed(executor: DeviceExecutor, leaves: Sequence[Any]) -> dict[int, Ref]:
    """The leaves that hosts have read themselves.

    Args:
      executor: The executor of one of this host's replicas.
      leaves: The leaves of the arguments.
    """
    found = {}
    for index, leaf in enumerate(leaves):
        if type(leaf) is Ref:
            component = executor.kept(leaf)
            if type(component).__name__ != "Row" or component.rows.fed:
                found[index] = leaf
    return found


def kinds(executor: DeviceExecutor, refs: Sequence[Ref]) -> np.ndarray[Any, Any]:
    """Describes a replica's components: shape `(1, refs, 2)` of int64, with the rows and a digest of the rest."""
    words = [_kind(executor.kept(ref)) for ref in refs]
    return np.array([words], np.int64)


def rows_of(everyones: np.ndarray[Any, Any], indices: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The fewest and the most rows of each leaf on any replica.

    Args:
      everyones: The `kinds` of all replicas, in rank order.
      indices: The described leaves.

    Raises:
      InvalidArgumentError: if components do not fit together; raised on all hosts.
    """
    for column, index in enumerate(indices):
        rows, digests = everyones[:, column, 0], everyones[:, column, 1]
        different = np.flatnonzero(digests != digests[0])
        if different.size:
            raise InvalidArgumentError(
                f"argument {index} has another dtype, or other dimensions after the first, on "
                f"{replicas_text(different.tolist(), MOST_NAMED)} than on replica 0; a traced program has one for all"
            )
        yield int(rows.min()), int(rows.max())


def most_rows(rows: dict[int, tuple[int, int]], partial_batch: PartialBatch) -> dict[int, int]:
    """The most rows of each leaf on any replica, to which the others are padded.

    Raises:
      InvalidArgumentError: if they differ and are not to be padded; raised on all hosts.
    """
    for index, (fewest, most) in rows.items():
        if fewest != most and partial_batch == "recompile":
            raise InvalidArgumentError(
                f"argument {index} has another shape on some replicas: {fewest} to {most} rows, and a traced program "
                f"has one shape for all; batch with drop_remainder=True, use a batch size that divides evenly, or pad: "
                f"strategy.run(..., options=wb.distribute.RunOptions(partial_batch='pad')) with ctx.row_mask(x)"
            )
    return {index: most for index, (_, most) in rows.items()}


def _kind(component: Any) -> tuple[int, int]:
    slices = Slices.of(component)
    array = component if slices is None else component.values
    shape = getattr(array, "shape", None)
    if shape is None:
        return _NO_ROWS, _digest(type(array).__name__)
    rows = shape[0] if shape else _NO_ROWS
    return rows, _digest(f"{slices is None} {array.dtype} {len(shape)} {tuple(shape[1:])}")


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest(), "little")
