"""The messages between the driver and the replica hosts, and their framing.

A message is a plain tuple whose first entry is one of the constants below: tuples of built-in types are what
pickle reads and writes fastest, and a step is two of them. Two ordered links join the driver to each host.
*Steps* carries the work, in order; *signals* carries what must not wait behind work.

Steps, driver to host:
  (SHIP, object_id, pickled)                        a function or a structure, once per content
  (UNSHIP, [object_id, ...])                        functions that no further step uses
  (RUN, *`Run`)
  (PUT, serial, {device index: pickled leaf})       one value per replica
  (FETCH, request, device index, [(serial, leaf), ...])      answered by REPLY with the values, in this order
  (RELEASE, [(serial, leaf), ...])
  (ROLLBACK, group, serial)                         undo stores back to before `serial`
  (JOIN, request, JoinGroup)                        answered by REPLY with this host's bootstrap address
  (CONNECT, request, group, {process: address})     answered by REPLY
  (LEAVE, group)
  (CALL, function)                                  only within a host: calls it on the device's thread
  (MERGED, serial, (True, {rank: (structure, leaves)}) | (False, why))   what a merge function returned
Steps, host to driver:
  (STRUCTURE, key, pickled)                         of results, before the first DONE that names it
  (DONE, serial, [`Done`, `Failed` or `DoneForRanks`, as `carried` makes a tuple of it, ...])
  (MERGE, serial, rank, payload, number of its latest collective)
  (REPLY, request, ok, payload)
  (OUTPUT, rank, stream, line)                      what a replica printed
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

# Plain integers: an enum member takes 2 µs longer to pickle and 2 µs to read, four times per step.
(SHIP, RUN, PUT, FETCH, RELEASE, ROLLBACK, JOIN, CONNECT, LEAVE, MERGED, CALL, UNSHIP) = range(12)
(DONE, MERGE, REPLY, STRUCTURE) = range(20, 24)
(ABORT, INTERRUPT, DUMP, TELEMETRY, STOP, PING, CLOCK, LAST_WRITES) = range(30, 38)
(BEAT, OUTPUT, PONG, LEAVING) = range(40, 44)

PROTOCOL_VERSION = 8
HEADER = struct.Struct("<I")
# A leaf up to this size is sent with the completion of its step, so that reading it costs nothing.
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
      rank: Its number there.
      busy: It runs a step.
      step: That step, or its last one; -1 before the first.
      seq: Number of its latest collective in this step, from 0; -1 before the first.
      op: That collective, or what the replica pauses in, such as "merge_call"; "" in between.
      phase: "running" (user code), "waiting" (for peers), "moving" (data), or "paused".
      site: Where the user called `op`, or where the replica has been in the user's code for long; else "".
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
    """A small result of a type that not every process knows: made again where it is looked at."""

    data: bytes


class RowsLeaf(NamedTuple):
    """A small result of all replicas of a host, as one array with a row for each."""

    rows: Any


class Run(NamedTuple):
    """A step, as RUN carries it to the replicas.

    Attributes:
      serial: Its number in the gang.
      group: Id of the group that it runs on.
      epoch: The group's; replicas that were connected since refuse it.
      step: Its number among the user's steps, -1 for internal work.
      function: Id of a function that was shipped, or the function.
      payload: None | (structure, leaves, [(index, serial, leaf), ...]) | that pickled; the triples name values that the
        replica has, and stand in the leaves at `index`.
      ranks: The replicas that it runs on, None for all.
      release: (serial, leaf) of values that nobody needs any more.
      committed: Serial of the last step that succeeded everywhere.
      nested: It is work of a merge function, and overtakes what waits.
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
        """From a message whose kind is RUN."""
        return cls._make(message[1:])


class Done(NamedTuple):
    """A replica has done its part of a step.

    Attributes:
      rank: The replica.
      structure: Key of the structure of its result.
      leaves: The leaves of the result, as `travelling` makes them; many of them as `PackedLeaves`.
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
      leaves: Likewise; a `RowsLeaf` has a row for each of the ranks.
    """

    ranks: tuple[int, ...]
    structure: int
    leaves: list[Any]


Outcome = Done | Failed | DoneForRanks
_OUTCOMES: Final = (Done, Failed, DoneForRanks)
_NUMBERS: Final = {kind: number for number, kind in enumerate(_OUTCOMES)}


def carried(outcome: Outcome) -> tuple[Any, ...]:
    """An outcome as DONE carries it: pickle takes twice as long for a tuple that has a class of its own."""
    return _NUMBERS[type(outcome)], *outcome


def read_outcome(fields: tuple[Any, ...]) -> Outcome:
    """The inverse of `carried`."""
    return _OUTCOMES[fields[0]]._make(fields[1:])


@dataclass(frozen=True, slots=True)
class JoinGroup:
    """Everything a host needs to take part in a group.

    Attributes:
      group: Group id, unique in the gang.
      generation: How often this group was rebuilt.
      epoch: Steps of an older epoch are refused.
      devices: The device of each rank, in rank order.
      local: rank -> device index on this worker.
      run_id: Names the run in telemetry.
      name: Name of the group in telemetry.
      processes: Addresses of all workers with TPUs, in the order in which JAX numbers them; none for other groups.
      places: Per rank, the number of its process and of its device there.
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
    """Pickles with plain pickle where that is enough, by value (cloudpickle) where it is not."""
    try:
        data = pickle.dumps(value, protocol=5)
        if b"_main__" not in data:  # other processes cannot import what a notebook or script defines
            return data
    except (pickle.PicklingError, AttributeError, TypeError):
        pass
    return by_value.dumps(value)


loads = pickle.loads


def unpickled(data: bytes, what: str) -> Any:
    """What another process has sent, of types that this one may lack; `what` it is, for the error.

    Raises:
      CaptureError: if it cannot be made here.
    """
    try:
        return pickle.loads(data)
    except Exception as error:  # unpickling runs code of any class
        raise CaptureError(
            f"{what} cannot be made in this process: {type(error).__name__}: {safe_text(error)}; install here too what "
            f"it is made of, or use arrays and numbers"
        ) from error
