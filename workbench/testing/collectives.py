"""Checks replicas' collectives: their kinds, order and sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from workbench.distribute.strategies.strategy import Strategy
from workbench.runtime.placement_text import counted
from workbench.telemetry.formatting import size_text
from workbench.ui.collectives.timings import Timings

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN: Final = 40
_PATIENCE_SECONDS: Final = 20.0  # a busy machine may take seconds to deliver the records


@dataclass(frozen=True, slots=True)
class Collective:
    """One collective over all replicas; as an expectation, None matches everything.

    Attributes:
      op: The kind, such as "all_reduce", "all_gather", "broadcast".
      redop: "sum", "mean", …, or "" if nothing is combined.
      dtype: Name of the element type.
      count: Number of elements; for all_gather and reduce_scatter, of one replica's part.
      bytes: Size, as in `wb.collectives`.
      replicas: Number of replicas that took part.
      step: Number of the user's step.
      site: The call site, such as "train.py:84".
      state: "ok", or how it failed: "mismatch", "timeout", "aborted", "error".
    """

    op: str
    redop: str | None = None
    dtype: str | None = None
    count: int | None = None
    bytes: int | None = None
    replicas: int | None = None
    step: int | None = None
    site: str | None = None
    state: str | None = "ok"

    def fits(self, other: Collective) -> bool:
        """Whether `other` matches all fields that are set here."""
        pairs = ((getattr(self, field.name), getattr(other, field.name)) for field in fields(self))
        return all(wanted is None or wanted == found for wanted, found in pairs)

    def __str__(self) -> str:
        parts = [self.op, self.redop, None if self.dtype is None else f"{self.dtype}[{_or_any(self.count)}]"]
        parts.append(f"{self.count} elements" if self.dtype is None and self.count is not None else None)
        parts.append(None if self.bytes is None else size_text(self.bytes))
        parts.append(None if self.replicas is None else f"on {self.replicas} replicas")
        parts.append(None if self.step is None else f"in step {self.step}")
        parts.append(f"at {self.site}" if self.site else None)
        parts.append(None if self.state in ("ok", None) else f"({self.state})")
        return " ".join(part for part in parts if part)


class Trace:
    """The collectives of replicas while a `trace` was open. Prints as a list.

    Attributes:
      collectives: The collectives, in the order in which replicas reached them; complete once the block has ended.
    """

    def __init__(self) -> None:
        self.collectives: tuple[Collective, ...] = ()

    def __len__(self) -> int:
        return len(self.collectives)

    def __iter__(self) -> Iterator[Collective]:
        return iter(self.collectives)

    def __repr__(self) -> str:
        lines = [f"  {number:>3}  {each}" for number, each in enumerate(self.collectives[:_SHOWN], 1)]
        if len(self) > _SHOWN:
            lines.append(f"  … {len(self) - _SHOWN} more")
        return "\n".join([counted(len(self), "collective"), *lines])


@contextmanager
def trace(strategy: Strategy) -> Iterator[Trace]:
    """Records the collectives of the steps that run in the block; waits for these steps at its end.

    It leaves out the collectives of workbench itself, such as those that distribute input.

    Args:
      strategy: The strategy whose steps are traced.

    >>> def step():
    ...     return wb.distribute.get_replica_context().all_reduce("mean", np.ones(4, "float32"))
    >>> with wb.testing.trace(strategy) as steps:
    ...     result = strategy.run(step)
    >>> wb.testing.assert_collectives(steps, ["all_reduce"])
    """
    group = strategy.group
    first, found = group.number, Trace()
    try:
        yield found
        group.wait()
    finally:
        found.collectives = tuple(_joined(row for row in _records_of(strategy) if row["step"] >= first))


def assert_collectives(of: Trace | Timings | Strategy, expected: Sequence[Collective | str]) -> None:
    """Checks that replicas called exactly these collectives, in this order.

    Args:
      of: A `trace`; or, for all collectives that are still known, a strategy or a result of `wb.collectives` or
        `wb.open_run`.
      expected: For each collective, a `Collective` with the fields that matter, or only the name of the operation.

    Raises:
      AssertionError: if they differ; it shows both lists side by side and marks the first difference.

    >>> def step():
    ...     return wb.distribute.get_replica_context().all_reduce("mean", np.ones(4, "float32"))
    >>> with wb.testing.trace(strategy) as steps:
    ...     results = [strategy.run(step) for _ in range(10)]
    >>> wb.testing.assert_collectives(steps, ["all_reduce"] * 10)
    >>> wb.testing.assert_collectives(steps, [wb.testing.Collective("all_reduce", redop="mean", bytes=16)] * 10)
    """
    __tracebackhide__ = True
    found = _found(of)
    wanted = [Collective(each) if isinstance(each, str) else each for each in expected]
    pairs = list(zip_longest(wanted, found))
    parted = [index for index, (want, got) in enumerate(pairs) if not (want and got and want.fits(got))]
    if not parted:
        return
    start = max(0, parted[0] - 3)
    width = max(len(str(want or "nothing")) for want, _ in pairs[start : start + _SHOWN])
    lines = [
        f"{len(wanted)} collectives expected, {len(found)} found; they differ from number {parted[0] + 1}:"
    ]
    lines.append(f"  {'':>4}  {'expected':<{width}}  found")
    for index, (want, got) in enumerate(pairs[start : start + _SHOWN], start):
        mark = "  <--" if index in parted else ""
        lines.append(f"  {index + 1:>4}  {want or 'nothing'!s:<{width}}  {got or 'nothing'!s}{mark}")
    if len(pairs) > start + _SHOWN:
        lines.append(f"  … {len(pairs) - start - _SHOWN} more")
    raise AssertionError("\n".join(lines))


def _found(of: Any) -> tuple[Collective, ...]:
    match of:
        case Trace():
            return of.collectives
        case Timings():
            return tuple(_joined(_users(of.to_arrow())))
        case Strategy():
            of.group.wait()
            return tuple(_joined(_records_of(of)))
    raise TypeError(
        f"assert_collectives takes a trace, a strategy or the result of wb.collectives, got "
        f"{type(of).__name__}; write\nwith wb.testing.trace(strategy) as steps:\n    strategy.run(...)\n"
        f"wb.testing.assert_collectives(steps, [...])"
    )


def _records_of(strategy: Strategy) -> list[dict[str, Any]]:
    """The user's collectives on a strategy's replicas, as far as they are still recorded."""
    cluster, own = strategy.group.gang.cluster, strategy.group.name
    assert cluster is not None
    if not cluster.closed:
        cluster.flush_telemetry(_PATIENCE_SECONDS)
    return [row for row in _users(cluster.feed.to_arrow()) if row["group"] == own]


def _users(table: pa.Table) -> list[dict[str, Any]]:
    """Records of the user's collectives, in the order of steps."""
    rows: list[dict[str, Any]] = [row for row in table.to_pylist() if row["purpose"] == ""]
    return sorted(
        rows, key=lambda row: (row["run_id"], row["group"], row["step"], row["seq"], row["replica"])
    )


def _joined(records: Any) -> Iterator[Collective]:
    """Combines the records of all replicas into collectives."""
    open_key, rows = None, list[dict[str, Any]]()
    for row in records:
        key = row["run_id"], row["group"], row["step"], row["seq"]
        if key != open_key and rows:
            yield _collective(rows)
            rows = []
        open_key = key
        rows.append(row)
    if rows:
        yield _collective(rows)


def _collective(rows: list[dict[str, Any]]) -> Collective:
    first = rows[0]
    failed = [row["state"] for row in rows if row["state"] != "ok"]
    # Replicas that were only released say "aborted"; the actual error says more.
    state = next((state for state in failed if state != "aborted"), "aborted" if failed else "ok")
    return Collective(
        op=" | ".join(dict.fromkeys(row["op"] for row in rows)),
        redop=first["redop"],
        dtype=first["dtype"],
        count=first["count"],
        bytes=first["bytes"],
        replicas=len(rows),
        step=first["step"],
        site=first["site"],
        state=state,
    )


def _or_any(count: int | None) -> str:
    return "" if count is None else str(count)
