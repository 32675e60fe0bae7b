"""The options of a collective: packing, deadline, implementation, algorithm."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, NamedTuple

from workbench.arguments import count
from workbench.errors import WrongType

Algorithm = Literal["auto", "one_device", "hierarchical", "ring"]


class CommunicationImplementation(enum.Enum):
    """The preferred implementation between replicas (as tf.distribute.experimental.CommunicationImplementation)."""

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


CollectiveCommunication = CommunicationImplementation


@dataclass(frozen=True, slots=True)
class CollectiveHints:
    """Hints for one collective (as tf.distribute.experimental.CollectiveHints).

    Attributes:
      bytes_per_pack: Arrays of one dtype are combined in packs of about this many bytes; 0 lets workbench choose.
      timeout_seconds: Longest time a collective may take before `DeadlineExceededError`; None or 0 means no limit.

    Raises:
      ValueError: if a value cannot work.
    """

    bytes_per_pack: int = 0
    timeout_seconds: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "bytes_per_pack", _bytes(self.bytes_per_pack))
        _check_timeout(self.timeout_seconds)


@dataclass(frozen=True, slots=True)
class CommunicationOptions:
    """Options of one collective (as tf.distribute.experimental.CommunicationOptions).

    Attributes:
      bytes_per_pack: Arrays of one dtype are combined in packs of about this many bytes; 0 lets workbench choose.
      timeout_seconds: Longest time a collective may take before `DeadlineExceededError`; None or 0 means no limit.
      implementation: Member or name of `CommunicationImplementation`. RING splits every array over the replicas; NCCL
        is for GPUs, CPU arrays treat it as AUTO.

    Raises:
      ValueError: if a value cannot work.
    """

    bytes_per_pack: int = 0
    timeout_seconds: float | None = None
    implementation: CommunicationImplementation = CommunicationImplementation.AUTO

    def __post_init__(self) -> None:
        object.__setattr__(self, "bytes_per_pack", _bytes(self.bytes_per_pack))
        _check_timeout(self.timeout_seconds)
        object.__setattr__(self, "implementation", _implementation(self.implementation))


def _bytes(bytes_per_pack: int) -> int:
    return count(bytes_per_pack, "bytes_per_pack", 0, otherwise=" (0 chooses automatically)")


def _check_timeout(timeout_seconds: float | None) -> None:
    if timeout_seconds is None:
        return
    if not isinstance(timeout_seconds, Real) or not timeout_seconds >= 0 or math.isinf(timeout_seconds):
        raise ValueError(
            f"timeout_seconds must be None or a number >= 0, got {timeout_seconds!r}; 0 means no limit"
        )


def _implementation(value: object) -> CommunicationImplementation:
    if isinstance(value, CommunicationImplementation):
        return value
    if isinstance(value, str) and value.upper() in CommunicationImplementation.__members__:
        return CommunicationImplementation[value.upper()]
    names = ", ".join(CommunicationImplementation.__members__)
    raise ValueError(f"implementation must be one of {names}, got {value!r}")


Options = CommunicationOptions | CollectiveHints


def checked_options(options: Any) -> Options | None:
    """Returns the options of a collective, or None, if they have the right type.

    Raises:
      WrongType: if they have another type.
    """
    if options is None or isinstance(options, Options):
        return options
    raise WrongType(
        f"the options of a collective are CommunicationOptions, got {type(options).__name__} {options!r:.60}; write "
        "wb.distribute.CommunicationOptions(timeout_seconds=30)"
    )


class Reduction(NamedTuple):
    """How arrays are combined. It is the caller's request, the key of its plan, and what replicas must agree on.

    Attributes:
      op: "sum", "mean", "min", "max" or "prod". A mean of integers is float64; float16 and bfloat16 accumulate in
        float32.
      site: Where the user called it, for errors and telemetry.
      options: Packing, deadline, implementation.
      shared: Whether replicas of a host may share one read-only result.
      algorithm: "one_device" combines at one replica, "ring" splits each array over the replicas, "hierarchical"
        combines within threads, then processes, then hosts; "auto" takes the fastest.
      packs: Number of packs for the arrays of one dtype, 0 for one per array; overrides `options.bytes_per_pack`.
      nesting: The structure that the arrays came in, such as "[*, *]"; "" for a single array.
    """

    op: str
    site: str = ""
    options: Options | None = None
    shared: bool = False
    algorithm: Algorithm = "auto"
    packs: int | None = None
    nesting: str = ""
