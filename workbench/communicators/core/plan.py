"""A reduction prepared for repetition: what peers compare, how arrays are packed, and the results' dtypes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final, TypeVar

import numpy as np
from numpy import vdot

from workbench.backends import numpy as backend
from workbench.backends.users_line import apply_at_users_line
from workbench.communicators.core.call import Call, describe
from workbench.communicators.core.finiteness import ALWAYS, reads_at_once
from workbench.communicators.core.link import Link
from workbench.communicators.core.options import CommunicationImplementation, Reduction
from workbench.communicators.core.packing import Pack, flatten, packs_of
from workbench.communicators.core.position import Position

MAX_PLANS: Final = 4096
"""Call sites × shapes to remember; a notebook creates new call sites in every cell."""
_P = TypeVar("_P")


def remember(plans: dict[Any, _P], key: Any, plan: _P) -> _P:
    """Keeps a plan for the next call. Once there are `MAX_PLANS`, it first drops all of them.

    Args:
      plans: The plans of a communicator.
      key: Everything that the plan depends on.
      plan: The plan; it is returned.
    """
    if len(plans) >= MAX_PLANS:
        plans.clear()
    plans[key] = plan
    return plan


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan for an all_reduce or another reduction of certain dtypes and shapes. It does not depend on the values.

    Attributes:
      call: The call that is compared with the peers.
      packs: How the arrays travel.
      dtypes: The dtypes of the results, array by array.
      plain: The shape, if there is a single array that needs neither packing nor conversion; else None.
      read: Whether the arrays can contain NaN at all.
      small: Whether one call can show that they contain none.
    """

    call: Call
    packs: tuple[Pack, ...]
    dtypes: tuple[np.dtype, ...]
    plain: tuple[int, ...] | None
    read: bool
    small: bool

    def combine(
        self, link: Link, position: Position, views: Sequence[np.ndarray], shared: bool
    ) -> list[np.ndarray]:
        """Combines arrays of the planned dtypes and shapes over all replicas.

        Args:
          link: The link below the communicator.
          position: Identifies the call and has its deadline.
          views: The arrays, in the order of the plan.
          shared: Whether replicas of a host may get the same memory; see `Link.reduce`.
        """
        if self.plain is not None:
            flat = views[0].reshape(-1)
            total = link.reduce(position, flat, shared=shared)
            # Checked afterwards, so that peers do not wait for it. The common case is inlined, because a method call
            # would cost a third more.
            inputs = position.inputs
            if inputs is not None and self.read and not (self.small and isfinite(vdot(flat, flat))):
                inputs.look(flat)
            return [total.reshape(self.plain)]
        results: list[Any] = [None] * len(views)
        for pack in self.packs:
            flat = flatten(pack, views, link.scratch(pack.count * pack.dtype.itemsize))
            total = link.reduce(position, flat, shared=shared)
            position.look(flat)
            for index, low, high in zip(pack.indices, pack.offsets, pack.offsets[1:], strict=False):
                part = total[low:high].reshape(views[index].shape)
                if part.dtype != self.dtypes[index]:
                    part = backend.narrowed(part, self.dtypes[index], self.call.apply)
                results[index] = part
        if not self.packs:
            link.exchange(position, {})
        return results


def planned(
    name: str,
    views: Sequence[np.ndarray],
    request: Reduction,
    *,
    purpose: str,
    root: int | None = None,
    count: int | None = None,
) -> Plan:
    """Prepares a reduction.

    Args:
      name: The name of the collective, such as "all_reduce".
      views: Arrays of the dtypes and shapes to plan for, with any strides.
      request: The replica's request.
      purpose: See `Call.purpose`.
      root: The replica that gets the result; None for all of them.
      count: Number of elements as telemetry counts them; by default all.

    Raises:
      ValueError: if there is no such `op`.
      TypeError: if an array does not hold numbers.
    """
    op, options = request.op, request.options
    backend.ufunc(op)
    found = {view.dtype for view in views}
    for dtype in found:  # NumPy would concatenate strings and truncate the sum to their length
        backend.require_numbers(dtype, f"one of dtype {backend.dtype_text(dtype)}")
    algorithm: str = request.algorithm if root is None else f"root={root}"
    prefers_ring = getattr(options, "implementation", None) is CommunicationImplementation.RING
    if prefers_ring and algorithm == "auto":
        algorithm = "ring"
    layout = packs_of(views, op, options=options, packs=request.packs)
    results = {
        dtype: (backend.mean_dtype(dtype) if op == "mean" else dtype).newbyteorder("=") for dtype in found
    }
    dtypes = tuple([results[view.dtype] for view in views])
    names = {dtype.name for dtype in found}
    call = Call(
        name,
        op,
        describe(views),
        request.site,
        request.nesting,
        f"{algorithm}, {len(layout)} packs, {'shared' if request.shared else 'own'} result",
        sum(view.size for view in views) if count is None else count,
        sum(view.nbytes for view in views),
        names.pop() if len(names) == 1 else "mixed",
        algorithm,
        len(layout),
        purpose,
        apply_at_users_line(),
    )
    plain = len(views) == 1 and layout[0].dtype == views[0].dtype == dtypes[0]
    read = plain and dtypes[0].kind not in "biu"
    small = read and reads_at_once(dtypes[0]) and views[0].size <= ALWAYS
    return Plan(call, layout, dtypes, views[0].shape if plain else None, read, small)
