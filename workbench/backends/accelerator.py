"""What collectives need from a GPU library: the seam for `backends/cupy.py`, and for a simulation in the tests.

Work is queued on the current stream of the current device, which `on` sets for the calling thread; nothing here waits
for the device unless it says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from workbench.backends.flags import Flags


@dataclass(frozen=True, slots=True)
class GpuIdentity:
    """Which GPU an ordinal stands for.

    Attributes:
      uuid: The same in every process that sees this GPU.
      pci: Its PCI address, such as "0000:3B:00.0", by which the GPUs of a host are ordered.
      name: Such as "NVIDIA H200".
    """

    uuid: str
    pci: str
    name: str = ""


class Nccl(Protocol):
    """The part of `cupy.cuda.nccl` that is used, so that another binding can stand in for it."""

    def get_version(self) -> int:
        """Such as 22703."""

    def get_unique_id(self) -> bytes:
        """A new id, by which the ranks of one communicator find each other."""

    def groupStart(self) -> None:
        """Calls up to `groupEnd` are started together."""

    def groupEnd(self) -> None:
        """Starts them; blocks as long as one of them must."""

    @property
    def NcclCommunicator(self) -> Any:
        """Class of communicators: `NcclCommunicator(size, unique_id, rank)` blocks until all ranks call it."""


class Accelerator(Protocol):
    """A GPU library. Arrays, streams and events are its own objects.

    Its arrays have `dtype`, `shape`, `size`, `ndim`, `nbytes`, `reshape`, `view(dtype)`, and slices that share memory.
    """

    @property
    def nccl(self) -> Nccl:
        """NVIDIA's collectives.

        Raises:
          BackendUnavailable: if the library is not there.
        """

    @property
    def flags(self) -> Flags:
        """Words of the host that kernels can set; the process's, for as long as it lives."""

    def bytes_per_ns(self, ordinal: int) -> float:
        """How fast a device can read its memory, for estimates."""

    def owns(self, x: Any) -> bool:
        """Whether `x` is an array in the memory of a GPU, also of another library."""

    def view(self, x: Any) -> Any:
        """`x` as one of its own arrays, without a copy: never write to it."""

    def described(self, x: Any) -> Any:
        """`x`, or what stands for it until `handed_over`; it has `dtype`, `shape`, `size` and `nbytes`.

        Raises:
          TypeError: if its dtype is one that the library lacks.
        """

    def handed_over(self, described: Sequence[Any]) -> Sequence[Any]:
        """The elements of all that `described` gave, behind each other, in one or more owned arrays.

        The same sequence if those were owned arrays already. Others must live until `flat` has happened on the device:
        their library may give their memory to a stream that does not wait for it.
        """

    def like(self, array: Any, original: Any) -> Any:
        """Hands an owned array over as the type of `original`."""

    def ordinal(self, array: Any) -> int:
        """Number of the device that holds what `view` or `described` gave, as this process counts them."""

    def identity(self, ordinal: int) -> GpuIdentity:
        """Which GPU that is."""

    def on(self, ordinal: int, stream: Any = None) -> AbstractContextManager[None]:
        """Makes a device, and one of its streams if given, current for this thread."""

    def stream(self) -> Any:
        """A new stream of the current device, independent of the default one."""

    def stream_pointer(self, stream: Any) -> int:
        """Its handle, as NCCL takes it."""

    def event(self, *, timed: bool = True) -> Any:
        """A new event of the current device; only the time between `timed` ones is known, others cost less."""

    def record(self, event: Any) -> None:
        """The event happens when the current stream gets here."""

    def wait(self, event: Any) -> None:
        """The current stream goes on only after the event; the calling thread does not wait."""

    def done(self, event: Any) -> bool:
        """Whether it has happened. After an error of the device this may be false for ever."""

    def elapsed_ns(self, first: Any, second: Any) -> int:
        """Time between two events that have happened."""

    def empty(self, count: int, dtype: np.dtype) -> Any:
        """A one-dimensional array, not initialised.

        Raises:
          OutOfDeviceMemory: saying how much was wanted and how much is free.
        """

    def flat(self, arrays: Sequence[Any], dtype: np.dtype) -> Any:
        """The elements of all arrays behind each other, contiguous, as `dtype`; may be a view of a single one."""

    def concatenate(self, parts: Sequence[Any], axis: int) -> Any:
        """A new array."""

    def pointer(self, array: Any) -> int:
        """Address of a contiguous array's first element."""

    def copy(self, source: Any, target: Any) -> None:
        """Copies elements, converting them; equal shapes."""

    def combine(
        self,
        op: str,
        sources: Sequence[Any],
        targets: Sequence[Any],
        *,
        mean_over: int = 0,
        flags: int = 0,
    ) -> None:
        """Combines contiguous one-dimensional arrays in the order given and writes the result to every target.

        Args:
          op: "sum", "mean", "min", "max" or "prod"; NaNs are passed on.
          sources: One dtype and size. float16 and bfloat16 accumulate in float32.
          targets: Arrays of that dtype (float64 for a mean of integers) and size.
          mean_over: What a mean is divided by; 0 leaves the sum.
          flags: Address of a word for each source, which is set to 1 if that has NaN or infinity in it; 0 for none.
        """

    def flag_not_finite(self, array: Any, flag: int) -> None:
        """Sets the word at the address `flag` to 1 if a contiguous array of floats has NaN or infinity in it."""

    def divide(self, array: Any, by: int) -> None:
        """In place."""

    def ordered(self, array: Any, op: str) -> Any:
        """Integers in the order of these floats, with NaN where a "min" or "max" keeps it."""

    def unordered(self, array: Any, op: str) -> None:
        """The inverse of `ordered`, in place: afterwards the bytes are those of floats."""
