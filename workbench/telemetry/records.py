"""Records of one collective on one replica, and the bandwidth formulas over them.

A record is a row; `COLUMNS`, its fields, are the columns in the order in which every batch, file and table has them.
Enumerations are plain strings, so that any program that reads Parquet can read a recorded run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

Op = Literal["all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "send", "recv", "barrier"]

State = Literal["entered", "ok", "mismatch", "timeout", "aborted", "error"]
"""How far it got. "entered" comes from the thread that drains the ring (`InFlight`); the final record replaces it."""

SAMPLED: Final = "sampled"
"""The algorithm of collectives seen in a sampled profile of a compiled program; other steps may differ."""


@dataclass(frozen=True, slots=True)
class Record:
    """One collective as one replica saw it; the fields are the columns of `COLUMNS`.

    Attributes:
      run_id: Id of the run.
      generation: How often the gang was rebuilt before.
      step: Step of the replica.
      seq: Number of the collective within the step, from 0.
      group: Label of the group of replicas.
      op: Kind of collective, see `Op`.
      redop: "sum", "mean", "min", "max", "prod", or "" if nothing is combined.
      dtype: Name of the element type, such as "float32".
      count: Elements, counted as nccl-tests does (per rank for reduce_scatter and all_gather).
      bytes: Size S of the formulas, see `message_bytes`.
      algorithm: How it was carried out, such as "ring" or "direct"; "" if unknown.
      packs: In how many packs its arrays were sent; 0 if nothing is packed.
      transport: Such as "memory", "shm", "tcp" or "nccl".
      replica: Id of the replica in its group.
      host: Name of the replica's host.
      device: Device of the replica, such as "cpu:0".
      t_enter_ns: When the replica called the collective; `time.monotonic_ns` of its host.
      t_start_ns: When the last peer had arrived and the transfer began; 0 if it never did.
      t_end_ns: When the result was ready; 0 while state is "entered".
      clock_offset_ns: Add it to the three times to get times of the driver's clock.
      clock_err_ns: Bound of the error of that offset.
      state: See `State`.
      site: Call site, such as "train.py:84".
      purpose: "" for the user's collectives; otherwise, what workbench itself needed it for, such as "input".
      n: Replicas in the group, or 0 if unknown.
      inputs: "finite" or "not finite" for the replica's input; "" if not all of it was checked.
    """

    run_id: str
    generation: int
    step: int
    seq: int
    group: str
    op: str
    redop: str
    dtype: str
    count: int
    bytes: int
    algorithm: str
    packs: int
    transport: str
    replica: int
    host: str
    device: str
    t_enter_ns: int
    t_start_ns: int
    t_end_ns: int
    clock_offset_ns: int
    clock_err_ns: int
    state: str
    site: str
    purpose: str
    n: int
    inputs: str = ""

    def as_dict(self) -> dict[str, str | int]:
        """The record as JSON-able `{column: value}`."""
        return {name: getattr(self, name) for name in COLUMNS}


COLUMNS: Final = tuple(Record.__dataclass_fields__)
TEXT_COLUMNS: Final = frozenset(
    name for name, field in Record.__dataclass_fields__.items() if field.type == "str"
)
ADDED_COLUMNS: Final = {"inputs": ""}
"""Columns added within this format version, with the value that means "unknown"; recorded runs may lack them."""
INT32_COLUMNS: Final = frozenset(("generation", "packs", "replica", "n"))


class Signature(NamedTuple):
    """The common part of records that differ only in numbers and times; the fields are those of `Record`."""

    generation: int
    group: str
    op: str
    redop: str
    dtype: str
    algorithm: str
    packs: int
    transport: str
    state: str = "ok"
    site: str = ""
    purpose: str = ""
    inputs: str = ""


@dataclass(frozen=True, slots=True)
class InFlight:
    """A collective that a replica has entered and not left; the fields are those of `Record`."""

    signature: Signature
    step: int
    seq: int
    count: int
    bytes: int
    t_enter_ns: int


@cache
def schema() -> pa.Schema:
    """The Arrow schema of `COLUMNS`: text is dictionary-encoded, counts and times are 64-bit integers."""
    import pyarrow as pa

    def kind(name: str) -> pa.DataType:
        if name in TEXT_COLUMNS:
            return pa.dictionary(pa.int32(), pa.utf8())
        return pa.int32() if name in INT32_COLUMNS else pa.int64()

    return pa.schema([pa.field(name, kind(name), nullable=False) for name in COLUMNS])


def message_bytes(op: str, count: int, itemsize: int, n: int) -> int:
    """The size S of a record, from which bandwidth is computed, as nccl-tests defines it.

    If parts are uneven, S is the sum of the parts of all ranks.

    Args:
      op: See `Op`.
      count: Elements of the array; of one rank's part for reduce_scatter (result) and all_gather (input).
      itemsize: Bytes per element.
      n: Replicas in the group.
    """
    return count * itemsize * (n if op in ("reduce_scatter", "all_gather") else 1)


def busbw_factor(op: str, n: int) -> float | None:
    """The factor from algorithm bandwidth to bus bandwidth, which is comparable with the hardware's.

    None if it has no meaning: n < 2 (nothing crosses a bus), and operations without payload.
    """
    if n < 2:
        return None
    match op:
        case "all_reduce":
            return 2 * (n - 1) / n
        case "reduce_scatter" | "all_gather":
            return (n - 1) / n
        case "broadcast" | "reduce" | "send" | "recv":
            return 1.0
        case _:
            return None


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Bandwidth of one collective in decimal GB/s; None if it has no meaning (printed as "–")."""

    algbw: float | None
    busbw: float | None


def bandwidth(op: str, size_bytes: int, transfer_ns: float, n: int) -> Bandwidth:
    """Bandwidth of a collective that moved S = `size_bytes` in `transfer_ns`.

    Args:
      op: The operation, such as "all_reduce".
      size_bytes: Size as nccl-tests counts it.
      transfer_ns: Time of the transfer.
      n: Number of replicas.

    >>> bandwidth("all_reduce", 1 << 30, 5_000_000, 8)
    Bandwidth(algbw=214.7483648, busbw=375.8096384)
    """
    factor = busbw_factor(op, n)
    if factor is None or transfer_ns <= 0 or size_bytes <= 0:
        return Bandwidth(None, None)
    algbw = size_bytes / transfer_ns  # bytes per ns = GB/s
    return Bandwidth(algbw, algbw * factor)
