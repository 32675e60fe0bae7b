"""What collectives need from a GPU library: the interface of `backends/cupy.py` and of a simulation in the tests.

Work is queued on the current stream of the current device, which `on` sets for the calling thread; methods do not wait
for the device unless they say so.
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
    """Identifies the GPU with an ordinal.

    Attributes:
      uuid: Its UUID, the same in every process that sees this GPU.
      pci: Its PCI address, such as "0000:3B:00.0", which defines the order of a host's GPUs.
      name: Its name, such as "NVIDIA H200".
    """

    uuid: str
    pci: str
    name: str = ""


class Nccl(Protocol):
    """The part of `cupy.cuda.nccl` that is used, so that another binding can stand in for it."""

    def get_version(self) -> int:
        """The version, such as 22703."""

    def get_unique_id(self) -> bytes:
        """A new id, by which the ranks of one communicator find each other."""

    def groupStart(self) -> None:
        """Begins a group: calls up to `groupEnd` are started together."""

    def groupEnd(self) -> None:
        """Starts the group's calls; blocks as long as one of them does."""

    @property
    def NcclCommunicator(self) -> Any:
        """Class of communicators: `NcclCommunicator(size, unique_id, rank)` blocks until all ranks call it."""


class Accelerator(Protocol):
    """A GPU library. Arrays, streams and events are the library's own objects.

    Its arrays have `dtype`, `shape`, `size`, `ndim`, `nbytes`, `reshape`, `view(dtype)`, and slices that share memory.
    """

    @property
    def nccl(self) -> Nccl:
        """NVIDIA's collectives.

        Raises:
          BackendUnavailable: if the library is missing.
        """

    @property
    def flags(self) -> Flags:
        """Words in host memory that kernels can set, shared by the process until it ends."""

    def bytes_per_ns(self, ordinal: int) -> float:
        """How fast a device can read its memory, for estimates."""

    def owns(self, x: Any) -> bool:
        """Whether `x` is an array in GPU memory, even of another library."""

    def view(self, x: Any) -> Any:
        """`x` as one of its own arrays, without a copy; it must not be written to."""

    def described(self, x: Any) -> Any:
        """`x`, or a placeholder for it until `handed_over`, with `dtype`, `shape`, `size` and `nbytes`.

        Raises:
          TypeError: if the library lacks its dtype.
        """

    def handed_over(self, described: Sequence[Any]) -> Sequence[Any]:
        """The elements of all results of `described`, concatenated, in one or more owned arrays.

        Returns the same sequence if they already are owned arrays. Others must stay alive until the device has executed
        `flat`: their library may give their memory to a stream that does not wait.
        """

    def like(self, array: Any, original: Any) -> Any:
        """Converts an owned array to the type of `original`."""

    def ordinal(self, array: Any) -> int:
        """The device, by this process's numbering, that holds a result of `view` or `described`."""

    def identity(self, ordinal: int) -> GpuIdentity:
        """The identity of a GPU."""

    def on(self, ordinal: int, stream: Any = None) -> AbstractContextManager[None]:
        """Makes a device, and one of its streams if given, current for this thread."""

    def stream(self) -> Any:
        """A new stream of the current device, independent of the default one."""

    def stream_pointer(self, stream: Any) -> int:
        """The stream's handle, for NCCL."""

    def event(self, *, timed: bool = True) -> Any:
        """A new event of the current device; only `timed` ones measure time, others cost less."""

    def record(self, event: Any) -> None:
        """Records the event at this point of the current stream."""

    def wait(self, event: Any) -> None:
        """Makes the current stream wait for the event; the calling thread does not wait."""

    def done(self, event: Any) -> bool:
        """Whether the event has happened. After a device error, this may be false forever."""

    def elapsed_ns(self, first: Any, second: Any) -> int:
        """Time between two events that have happened."""

    def empty(self, count: int, dtype: np.dtype) -> Any:
        """An uninitialised one-dimensional array.

        Raises:
          OutOfDeviceMemory: with the requested and the free memory.
        """

    def flat(self, arrays: Sequence[Any], dtype: np.dtype) -> Any:
        """The elements of all arrays, concatenated, as `dtype`; may be a view of a single array."""

    def concatenate(self, parts: Sequence[Any], axis: int) -> Any:
        """Concatenates arrays into a new one."""

    def pointer(self, array: Any) -> int:
        """Address of a contiguous array's first element."""

    def copy(self, source: Any, target: Any) -> None:
        """Copies and converts elements between arrays of equal shape."""

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
          mean_over: The divisor of a mean; 0 leaves the sum.
          flags: Address of a word for each source, which is set to 1 if the source has NaN or infinity; 0 for none.
        """

    def flag_not_finite(self, array: Any, flag: int) -> None:
        """Sets the word at the address `flag` to 1 if a contiguous array of floats has NaN or infinity."""

    def divide(self, array: Any, by: int) -> None:
        """Divides the array in place."""

    def ordered(self, array: Any, op: str) -> Any:
        """Integers in the order of these floats, with NaN placed so that "min" or "max" keeps it."""

    def unordered(self, array: Any, op: str) -> None:
        """The inverse of `ordered`, in place: afterwards, the bytes are those of floats."""
