"""Checks which replica reads what, before anything runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

from workbench.data.dataset import Dataset
from workbench.data.options import AutoShardPolicy
from workbench.data.sharding.explain import explain_sharding
from workbench.data.sharding.model import Sharding

_SHOWN: Final = 3


def assert_every_element_once(
    dataset: Dataset, shape: Any = None, *, policy: AutoShardPolicy | str | None = None, epoch: int = 0
) -> None:
    """Checks that each element of a dataset's source reaches exactly one replica, once per epoch.

    It distributes nothing; `wb.explain_sharding` shows the same.

    Args:
      dataset: A dataset with batches for all replicas together.
      shape: A strategy, a number of replicas, or a `Shape`.
      policy: A policy to use instead of the one in the dataset's options.
      epoch: The number of the epoch, which matters for shuffled datasets.

    Raises:
      AssertionError: if elements are left out or read twice, or cannot be tracked through the whole pipeline; it says
        how many, which and where.

    >>> wb.testing.assert_every_element_once(wb.data.Dataset.range(6).batch(4), 2)
    """
    __tracebackhide__ = True
    found = explain_sharding(dataset, shape, policy=policy, epoch=epoch)
    if found.limit or found.dropped is None:
        why = found.limit or "its elements cannot be followed to the source"
        raise AssertionError(f"whether every element is read once is unknown: {why}\n{found!r}")
    wrong = []
    if found.dropped:
        wrong.append(
            f"{found.dropped:,} of {found.elements + found.dropped:,} elements reach no replica; drop_remainder=True, "
            f"filter and take leave elements out"
        )
    if found.duplicates:
        wrong.append(f"{found.duplicates:,} elements too many are read: {_twice(found)}")
    if wrong:
        raise AssertionError("\n".join([*wrong, repr(found)]))


def assert_sharding(
    dataset: Dataset,
    shape: Any = None,
    *,
    policy_used: str | None = None,
    counts: Sequence[int] | None = None,
    rows: Sequence[Sequence[int]] | None = None,
    files: Sequence[Sequence[str]] | None = None,
) -> None:
    """Checks how replicas share a dataset; an argument that is None checks nothing.

    Args:
      dataset: A dataset with batches for all replicas together.
      shape: A strategy, a number of replicas, or a `Shape`.
      policy_used: Name of the policy that applies, such as "FILE".
      counts: Number of rows that each replica gets in total.
      rows: For each step, the number of rows of each replica.
      files: For each host, the names of the files that its replicas read, without folders, in any order.

    Raises:
      AssertionError: if anything differs; it names each difference, with the report of `wb.explain_sharding`.

    >>> wb.testing.assert_sharding(wb.data.Dataset.range(6).batch(4), 2, rows=[(2, 2), (1, 1)])
    """
    __tracebackhide__ = True
    found = explain_sharding(dataset, shape)
    points = (
        ("policy", policy_used, found.policy_used),
        ("rows per replica", _lists(counts), list(found.counts)),
        ("rows per step and replica", _lists(rows), [[part.rows for part in step] for step in found.steps]),
        ("files per host", _names(files), _names(found.files)),
    )
    wrong = [
        f"{what}: expected {expected}, found {got}"
        for what, expected, got in points
        if expected is not None and expected != got
    ]
    if wrong:
        raise AssertionError("\n".join([*wrong, repr(found)]))


def _twice(found: Sharding) -> str:
    """The first elements that are read more than once, and the readers."""
    readers: dict[int, list[str]] = {}
    for number, step in enumerate(found.steps):
        for replica, part in enumerate(step):
            for element in part.ids:
                readers.setdefault(element, []).append(f"replica {replica} in step {number}")
    repeated = [(element, who) for element, who in readers.items() if len(who) > 1]
    texts = [
        f"element {found.labels.get(element, element)} by {' and '.join(who[:_SHOWN])}"
        for element, who in repeated[:_SHOWN]
    ]
    return "; ".join([*texts, "…"] if len(repeated) > _SHOWN else texts)


def _lists(value: Any) -> Any:
    """The value, with lists instead of all sequences."""
    return [_lists(part) for part in value] if isinstance(value, Sequence) else value


def _names(files: Sequence[Sequence[str]] | None) -> list[list[str]] | None:
    return None if files is None else [sorted(map(os.path.basename, host)) for host in files]
