"""The messages between the driver and the replica hosts, and their framing.

A message is a plain tuple that begins with one of the constants below: pickle reads and writes tuples of built-in types
fastest, and a step takes two messages. Two ordered links connect the driver to each host: *steps* carries the work, in
order; *signals* carries messages that must not wait behind work.

Steps, driver to host:
  (SHIP, object_id, pickled)                        a function or a structure, once per content
  (UNSHIP, [object_id, ...])                        functions that no later step uses
  (RUN, *`Run`)
  (PUT, serial, {device index: pickled leaf})       one value per replica
  (FETCH, request, device index, [(serial, leaf), ...])      answered by REPLY with the values, in this order
  (RELEASE, [(serial, leaf), ...])
  (ROLLBACK, group, serial)                         undo stores back to before `serial`
  (JOIN, request, JoinGroup)                        answered by REPLY with this host's bootstrap address
  (CONNECT, request, group, {process: address})     answered by REPLY
  (LEAVE, group)
  (CALL, function)                                  only within a host: call it on the device's thread
  (MERGED, serial, (True, {rank: (structure, leaves)}) | (False, why))   the result of a merge function
Steps, host to driver:
  (STRUCTURE, key, pickled)                         of results, before the first DONE that names it
  (DONE, serial, [`Done`, `Failed` or `DoneForRanks`, as `carried` makes a tuple of it, ...])
  (MERGE, serial, rank, payload, number of its latest collective)
  (REPLY, request, ok, payload)
  (OUTPUT, rank, stream, line)                      output of a replica
Signals, driver to host:
  (ABORT, group, epoch, serial of the failed step, reason)
  (INTERRUPT, group, epoch)  (DUMP, request)  (TELEMETRY, request)  (LAST_WRITES, request)  (STOP,)
  (PING, sent_ns)  (CLOCK, offset_ns, error_ns)
Signals, host to driver:
  (BEAT, [`ReplicaStatus`, ...], [`BesideStatus`, ...])  (REPLY, request, ok, payload)
  (PONG, sent_ns, received_ns, answered_ns)
  (LEAVING, what, detail)                           as in `WorkerEnd`
"""

from __future__ import annotations

import pickle
import struct
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from workbench import by_value
from workbench.device_names import Device
from workbench.errors import CaptureError
from workbench.runtime.comm.failure_report import FailureReport, safe_text

# Plain integers: an enum member takes 2 µs longer to pickle and 2 µs longer to read, four times per step.
(SHIP, RUN, PUT, FETCH, RELEASE, ROLLBACK, JOIN, CONNECT, LEAVE, MERGED, CALL, UNSHIP) = range(12)
(DONE, MERGE, REPLY, STRUCTURE) = range(20, 24)
(ABORT, INTERRUPT, DUMP, TELEMETRY, STOP, PING, CLOCK, LAST_WRITES) = range(30, 38)
(BEAT, OUTPUT, PONG, LEAVING) = range(40, 44)

PROTOCOL_VERSION = 8
HEADER = struct.Struct("<I")
# A leaf of up to this size is sent with the completion of its step, so that reading it costs nothing.
INLINE_BYTES = 4096

Message = tuple[Any, ...]


class Ref(NamedTuple):
    """Stands for a value that the receiving replica holds: leaf `leaf` of step `serial`."""

    serial: int
    leaf: int


class ReplicaStatus(NamedTuple):
    """A row of a heartbeat: where a replica is.

    Attributes:
      group: Id of its group.
      rank: Its rank in the group.
      busy: Whether it is running a step.
      step: That step, or its last one; -1 before the first.
      seq: Number of its latest collective in this step, from 0; -1 before the first.
      op: That collective, or what the replica waits in, such as "merge_call"; "" between collectives.
      phase: "running" (user code), "waiting" (for peers), "moving" (data), or "paused".
      site: The user's line that called `op`, or the line where the replica has been for long; else "".
    """

    group: int
    rank: int
    busy: bool
    step: int
    seq: int
    op: str
    phase: str
    site: str


class RemoteLeaf(NamedTuple):
    """Describes a result that stays on its replica."""

    type_name: str
    dtype: str
    shape: tuple[int, ...] | None
    size_bytes: int


class PickledLeaf(NamedTuple):
    """A small result of a type that not every process knows; unpickled where it is used."""

    data: bytes


class RowsLeaf(NamedTuple):
    """A small result of all replicas of a host, as one array with a row per replica."""

    rows: Any


class Run(NamedTuple):
    """A step, as RUN carries it to the replicas.

    Attributes:
      serial: Its number in the gang.
      group: Id of the group that it runs on.
      epoch: The group's epoch; replicas that were connected later refuse the step.
      step: Its number among the user's steps, -1 for internal work.
      function: Id of a shipped function, or the function itself.
      payload: None, or (structure, leaves, [(index, serial, leaf), ...]), possibly pickled. Each triple refers to a
        value that the replica has, and stands for the leaf at `index`.
      ranks: The replicas that it runs on, None for all.
      release: (serial, leaf) of values that are no longer needed.
      committed: Serial of the last step that succeeded everywhere.
      nested: Whether it is work of a merge function, which overtakes waiting steps.
    """

    serial: int
    group: int
    epoch: int
    step: int
    function: Any
    payload: Any
    ranks: tuple[int, ...] | None
    release: list[tuple[int, int]]
    committed: int
    nested: bool

    @classmethod
    def read(cls, message: Message) -> Run:
        """Reads a message of kind RUN."""
        return cls._make(message[1:])


class Done(NamedTuple):
    """A replica has completed its part of a step.

    Attributes:
      rank: The replica.
      structure: Key of the structure of its result.
      leaves: The leaves of the result, as `travelling` encodes them; many leaves as `PackedLeaves`.
    """

    rank: int
    structure: int
    leaves: Any


class Failed(NamedTuple):
    """A replica has failed in a step."""

    rank: int
    failure: FailureReport


class DoneForRanks(NamedTuple):
    """A program that ran once for several replicas has ended.

    Attributes:
      ranks: The replicas.
      structure: See `Done`.
      leaves: See `Done`; a `RowsLeaf` has a row for each rank.
    """

    ranks: tuple[int, ...]
    structure: int
    leaves: list[Any]


Outcome = Done | Failed | DoneForRanks
_OUTCOMES: Final = (Done, Failed, DoneForRanks)
_NUMBERS: Final = {kind: number for number, kind in enumerate(_OUTCOMES)}


def carried(outcome: Outcome) -> tuple[Any, ...]:
    """Encodes an outcome for DONE as a plain tuple, because pickle takes twice as long for a NamedTuple."""
    return _NUMBERS[type(outcome)], *outcome


def read_outcome(fields: tuple[Any, ...]) -> Outcome:
    """The inverse of `carried`."""
    return _OUTCOMES[fields[0]]._make(fields[1:])


@dataclass(frozen=True, slots=True)
class JoinGroup:
    """Everything a host needs to take part in a group.

    Attributes:
      group: Group id, unique in the gang.
      generation: How often this group has been rebuilt.
      epoch: Steps of an older epoch are refused.
      devices: The device of each rank, in rank order.
      local: rank -> device index on this worker.
      run_id: Names the run in telemetry.
      name: Name of the group in telemetry.
      processes: Addresses of all workers with TPUs, in JAX's order; empty for other groups.
      places: For each rank, the number of its process and of its device there.
    """

    group: int
    generation: int
    epoch: int
    devices: tuple[Device, ...]
    local: dict[int, int]
    run_id: str
    name: str
    processes: tuple[str, ...] = ()
    places: tuple[tuple[int, int], ...] = ()


def dumps(value: Any) -> bytes:
    """Pickles with plain pickle if possible, otherwise by value (cloudpickle)."""
    try:
        data = pickle.dumps(value, protocol=5)
        if b"_main__" not in data:  # other processes cannot import what a notebook or script defines
            return data
    except (pickle.PicklingError, AttributeError, TypeError):
        pass
    return by_value.dumps(value)


loads = pickle.loads


def unpickled(data: bytes, what: str) -> Any:
    """Unpickles an object from another process, whose types this one may lack; `what` names it in the error.

    Raises:
      CaptureError: if it cannot be created here.
    """
    try:
        return pickle.loads(data)
    except Exception as error:  # unpickling runs code of any class
        raise CaptureError(
            f"{what} cannot be made in this process: {type(error).__name__}: {safe_text(error)}; install here too what "
            f"it is made of, or use arrays and numbers"
        ) from error
