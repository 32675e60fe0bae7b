"""A collective as a replica requests it, and how two such calls are compared."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.backends.users_line import Apply, directly
from workbench.communicators.core.finiteness import FINITE, NOT_FINITE, NOT_READ

_MASK = (1 << 62) - 1  # fingerprints fit a signed 64-bit word and are never negative


def _by_finiteness() -> dict[str, dict[str, int]]:
    return {FINITE: {}, NOT_FINITE: {}, NOT_READ: {}}


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A collective as a replica requests it. One object serves all repetitions of the call at its site.

    Attributes:
      op: Such as "all_reduce".
      redop: Such as "sum"; "" if nothing is reduced.
      what: Dtypes and shapes in words, such as "float32[256,10]".
      site: Where the user called it, such as "train.py:41".
      nesting: The structure that the arrays came in, such as "[*, *]"; "" for a single array.
      mode: Everything else that replicas must agree on (root, axis, algorithm, packing).
      count: Number of elements, as telemetry counts them. If only the exchange reveals it, the part known before.
      nbytes: Size in bytes (S in the formulas), likewise.
      dtype: Dtype of the elements, "mixed" if there are several.
      algorithm: The requested algorithm.
      packs: Number of packs that the arrays travel in; 0 if nothing is packed.
      purpose: Why workbench itself makes the call, such as "input"; "" for a user's call.
      apply: Calls the combining function, so that its errors point at the user's line.
      alike: The part of `what` that must be equal on all replicas; "" if all of it must.
      digest: Fingerprint of all of the above that must be equal on all replicas.
      prepared: Views that a link keeps for the next repetition.
      numbers: Telemetry's numbers for the call when it succeeds, keyed by the result of `Finiteness` and the algorithm.
    """

    op: str
    redop: str
    what: str
    site: str
    nesting: str
    mode: str
    count: int
    nbytes: int
    dtype: str
    algorithm: str
    packs: int = 0
    purpose: str = ""
    apply: Apply = field(default=directly, repr=False)
    alike: str = ""
    digest: int = field(init=False)
    entering: str = field(init=False)
    sent: str = field(init=False)
    waiting: str = field(init=False)
    prepared: dict[Any, Any] = field(init=False, default_factory=dict, repr=False)
    numbers: dict[str, dict[str, int]] = field(init=False, default_factory=_by_finiteness, repr=False)

    def __post_init__(self) -> None:
        what = self.alike or self.what
        text = "\0".join((self.op, self.redop, what, self.site, self.nesting, self.mode))
        digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
        object.__setattr__(self, "digest", int.from_bytes(digest, "little") & _MASK)
        # Names of the fault points, built once instead of in each call.
        object.__setattr__(self, "entering", f"{self.op}.enter")
        object.__setattr__(self, "sent", f"{self.op}.after_send")
        object.__setattr__(self, "waiting", f"{self.op}.waiting")

    def fingerprint(self, order: int, seq: int) -> int:
        """The number that replicas compare before any payload: made of the digest and the position in the step."""
        return (self.digest ^ (order * 0x9E3779B97F4A7C15 + seq * 0xC2B2AE3D27D4EB4F)) & _MASK

    def asked(self, rank: int, step: int, seq: int) -> Asked:
        """This call in words, as replica `rank` made it.

        Args:
          rank: Rank of the replica.
          step: Number of the step.
          seq: Number of the collective in the step.
        """
        return Asked(rank, step, seq, self.op, self.redop, self.what, self.nesting, self.mode, self.site)


@dataclass(frozen=True, slots=True)
class Asked:
    """A call in words, shown beside another replica's call.

    Attributes:
      rank: The replica.
      step: Its step.
      seq: Number of the collective in that step, from 0.
      op: Such as "all_reduce".
      redop: Such as "sum", or "".
      what: Dtypes and shapes.
      nesting: The structure that the arrays came in, cut to 64 characters.
      mode: Root, axis, algorithm, packing.
      site: Where the user called it.
    """

    rank: int
    step: int
    seq: int
    op: str
    redop: str
    what: str
    nesting: str
    mode: str
    site: str

    @property
    def collective(self) -> str:
        """Such as "all_reduce #4"."""
        return f"{self.op} #{self.seq + 1}"

    def __str__(self) -> str:
        words = [self.collective, self.redop, self.what, f"({self.site})" if self.site else ""]
        return " ".join(word for word in words if word)

    def encode(self) -> bytes:
        """As JSON, for another process."""
        row = [self.rank, self.step, self.seq, self.op, self.redop, self.what[:600]]
        return json.dumps([*row, self.nesting[:64], self.mode[:200], self.site[:400]]).encode()

    @classmethod
    def decode(cls, data: bytes) -> Asked:
        """The inverse of `encode`."""
        return cls(*json.loads(data))


def difference(calls: Sequence[Asked]) -> str:
    """The text of a `CollectiveMismatch` between replicas that made at least two different calls."""
    calls = sorted(calls, key=lambda call: call.rank)
    first = calls[0]
    for other in calls[1:]:
        if parts := _differing(first, other):
            return (
                f"replicas asked for different collectives: replica {first.rank} {first}, "
                f"replica {other.rank} {other}; they differ in {', '.join(parts)}. "
                "Every replica must make the same collective calls in the same order."
            )
    return f"replicas disagree about {first} for no visible reason: please report this"


def left_early(finished: int, count: int, waiting: Asked) -> str:
    """The text of a `CollectiveMismatch` when replica `finished` has ended the step while another waits for it.

    Args:
      finished: Rank of the replica that has ended the step.
      count: Number of its collectives.
      waiting: The call of the replica that waits.
    """
    calls = "1 collective" if count == 1 else f"{count} collectives"
    return (
        f"replica {finished} finished the step after {calls}, replica {waiting.rank} waits in {waiting}. "
        "Every replica must make the same collective calls in the same order."
    )


def _differing(a: Asked, b: Asked) -> list[str]:
    pairs = {
        "step": (a.step, b.step),
        "number of the collective": (a.seq, b.seq),
        "operation": (a.op, b.op),
        "reduction": (a.redop, b.redop),
        "dtype or shape": (a.what, b.what),
        "structure": (a.nesting, b.nesting),
        "options": (a.mode, b.mode),
        "call site": (a.site, b.site),
    }
    parts = [name for name, (left, right) in pairs.items() if left != right]
    match parts:  # those that the description of the call does not show
        case ["options"]:
            return [f"options ({a.mode} and {b.mode})"]
        case ["structure"]:
            return [f"structure ({a.nesting or 'a single array'} and {b.nesting or 'a single array'})"]
    return parts


def describe(arrays: Sequence[np.ndarray]) -> str:
    """Dtypes and shapes in words: "float32[256,10], int64[]"."""
    return ", ".join(f"{_name(array.dtype)}[{','.join(map(str, array.shape))}]" for array in arrays)


@functools.lru_cache(maxsize=256)
def _name(dtype: np.dtype) -> str:
    # `name` omits the byte order, which may differ between replicas. Cached, because NumPy takes microseconds to
    # build it.
    return dtype.name
