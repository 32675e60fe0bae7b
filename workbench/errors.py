"""Every error that workbench raises on purpose.

WorkbenchError
├── ReplicaError            user code raised on a replica (also an instance of the user's own exception type)
├── ReplicaLost             the process behind a replica is gone
├── ReplicaStalled          a replica's process exists but answers no more
├── CollectiveAborted       a collective ended early because of a failure elsewhere, which is the root cause
├── StaleGeneration         a message of a replaced replica arrived, or a closed handle was used
├── RunInterrupted          the user interrupted a step (also KeyboardInterrupt)
├── DataCorruption          stored data failed its check
│   └── CheckpointInvalid       a checkpoint is damaged
├── StorageFull             no space left for something that must be written
├── UnsafeBind              listening off loopback without TLS and a token
├── ClusterBusy             another driver holds these workers
├── ClusterClosed           the cluster or strategy was closed
├── BackendUnavailable      an array library, driver or device is missing
│   ├── LibraryMissing      a library is not installed (also ImportError)
│   └── OutOfDeviceMemory   no room left on a GPU (also MemoryError)
├── CaptureError            a function cannot travel to the workers (also TypeError)
├── TracingError            a replica function cannot become a compiled program (also TypeError)
└── the reference's names
    ├── InvalidArgumentError    (ValueError)
    │   ├── CollectiveMismatch  replicas asked for different collectives (also RuntimeError)
    │   ├── FileSizeMismatch    a file holds no whole number of records (also DataCorruption)
    │   ├── NotFinite           numbers that are checked have NaN or infinity among them
    │   └── WrongType           an argument of a type that does not fit (also TypeError)
    ├── FailedPreconditionError (RuntimeError)
    ├── OutOfRangeError         the iterator has ended
    ├── NotFoundError           (FileNotFoundError)
    ├── DataLossError           (DataCorruption)
    ├── CancelledError, UnavailableError, UnknownError
    └── DeadlineExceededError   (TimeoutError)

DataWarning (UserWarning)       reading lost something that the reference loses too
"""

from __future__ import annotations

from typing import Any


class WorkbenchError(Exception):
    """Base of all errors of workbench.

    Attributes:
      run: Id of the run, or "".
      generation: How often the gang had been rebuilt, or -1.
      replica: Replica id that caused the error, or -1.
      worker: Address of that replica's worker, or "".
      pid: Process id of that worker, or 0.
      step: Step in which it happened, or -1.
      collective: The collective concerned, as text such as "all_reduce #4", or "".
      cause: What happened to the replica, in words, or "".
    """

    def __init__(
        self,
        message: str = "",
        *,
        run: str = "",
        generation: int = -1,
        replica: int = -1,
        worker: str = "",
        pid: int = 0,
        step: int = -1,
        collective: str = "",
        cause: str = "",
    ) -> None:
        # Not by super(): the __init__ of the user's exception type, which a subclass may add, takes unknown
        # arguments.
        Exception.__init__(self, message)
        self.run = run
        self.generation = generation
        self.replica = replica
        self.worker = worker
        self.pid = pid
        self.step = step
        self.collective = collective
        self.cause = cause

    def __str__(self) -> str:
        # Not inherited: KeyError and OSError, bases of some subclasses, would format the message in their own way.
        return str(self.args[0]) if self.args else ""

    def fields(self) -> dict[str, str | int]:
        """The machine-readable part, as keyword arguments that rebuild the error."""
        names = ("run", "generation", "replica", "worker", "pid", "step", "collective", "cause")
        return {name: getattr(self, name) for name in names}

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.args[0] if self.args else "", self.fields())


def _rebuild(cls: type[WorkbenchError], message: str, fields: dict[str, object]) -> WorkbenchError:
    return cls(message, **fields)  # type: ignore[arg-type]


class ReplicaError(WorkbenchError):
    """User code raised on a replica. The class raised is also a subclass of the user's exception type."""


class ReplicaLost(WorkbenchError):
    """The process behind a replica ended: killed, crashed, or out of memory."""


class ReplicaStalled(WorkbenchError):
    """A replica's process still exists but has stopped answering."""


class CollectiveAborted(WorkbenchError):
    """A collective ended early because of a failure elsewhere; `cause` names it, it is not one of its own."""


class StaleGeneration(WorkbenchError):
    """Something of an earlier generation was used after the gang had been rebuilt."""


class RunInterrupted(WorkbenchError, KeyboardInterrupt):
    """The user interrupted a step; the cluster is usable and state is that of the last committed step."""


class DataCorruption(WorkbenchError):
    """Stored data failed its check.

    Attributes:
      file: Name of the file, or "" where the text names it.
      record: Number of the record in it, from 0, or -1.
      offset: Byte at which the record starts, or the damage lies, or -1. Of a compressed file, in what it holds.
    """

    def __init__(
        self, message: str = "", *, file: str = "", record: int = -1, offset: int = -1, **about: Any
    ) -> None:
        super().__init__(message, **about)
        self.file = file
        self.record = record
        self.offset = offset

    def fields(self) -> dict[str, str | int]:
        """The machine-readable part, as keyword arguments that rebuild the error."""
        return {**super().fields(), "file": self.file, "record": self.record, "offset": self.offset}


class CheckpointInvalid(DataCorruption):
    """A checkpoint is damaged; the text names the file. Nothing was restored from it."""


class StorageFull(WorkbenchError, OSError):
    """There is no space for something that must be written."""


class UnsafeBind(WorkbenchError, ValueError):
    """Refused to listen off loopback without TLS and a token."""


class ClusterBusy(WorkbenchError, RuntimeError):
    """Another driver holds these workers."""


class ClusterClosed(WorkbenchError, RuntimeError):
    """The cluster behind a strategy, value or variable was closed."""


class BackendUnavailable(WorkbenchError, RuntimeError):
    """An array library, a driver or a device is missing; the text says how to get it."""


class LibraryMissing(BackendUnavailable, ImportError):
    """An optional library is not installed, or cannot be imported; the text says how to get it."""


class OutOfDeviceMemory(BackendUnavailable, MemoryError):
    """No room left on a GPU; the text names the replica, the bytes wanted and the bytes free."""


class CaptureError(WorkbenchError, TypeError):
    """A function, argument or result cannot travel; the text names what of it, such as a captured variable."""


class TracingError(WorkbenchError, TypeError):
    """A replica function cannot be traced; the text names the line and what to write instead."""


class InvalidArgumentError(WorkbenchError, ValueError):
    """An argument has the right type but a value that cannot work."""


class FileSizeMismatch(InvalidArgumentError, DataCorruption):
    """A file holds no whole number of records of a fixed length: it is cut off, or their length is another."""


class CollectiveMismatch(InvalidArgumentError, RuntimeError):
    """Replicas did not ask for the same collective, or gave it arrays that do not fit; the text shows both calls."""


class WrongType(InvalidArgumentError, TypeError):
    """An argument has a type that does not fit: text where numbers are needed, 1.5 elements, None for a function.

    It is a TypeError, as in Python, and a ValueError, as in the reference wherever it converts arguments.
    """


class NotFinite(InvalidArgumentError):
    """NaN or infinity where numbers are checked; the text says where, and how many."""


class FailedPreconditionError(WorkbenchError, RuntimeError):
    """The system is not in the state that the operation needs."""


class OutOfRangeError(WorkbenchError):
    """The iterator has no further element."""


class NotFoundError(WorkbenchError, FileNotFoundError):
    """A file, device or other named thing does not exist."""


class DataLossError(DataCorruption):
    """A file is truncated or fails its checksum."""


class CancelledError(WorkbenchError):
    """The operation was cancelled before it ended."""


class UnavailableError(WorkbenchError, ConnectionError):
    """A service that the operation needs cannot be reached."""


class UnknownError(WorkbenchError):
    """A failure that fits no other class."""


class DeadlineExceededError(WorkbenchError, TimeoutError):
    """A collective or another wait took longer than its deadline."""


class DataWarning(UserWarning):
    """Input was read as the reference reads it, which loses something; the text names file and place."""
