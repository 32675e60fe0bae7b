"""A step in progress: the ranks that have not reported yet, and the reports of the others."""

from __future__ import annotations

import weakref
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

from workbench.runtime.comm.failure_report import FailureReport
from workbench.runtime.comm.messages import Done, DoneForRanks, Failed, RowsLeaf, read_outcome
from workbench.runtime.comm.result_leaves import unpacked
from workbench.runtime.deploy.worker_link import WorkerEnd
from workbench.runtime.driver.accepted_steps import Accepted
from workbench.runtime.driver.replicas import Replicas

MergeFunction = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]


class Wait(NamedTuple):
    """A collective in which replicas waited.

    Attributes:
      op: Its operation.
      number: Its number in the step, from 1.
      site: Where the user called it, or "".
    """

    op: str
    number: int
    site: str

    @property
    def collective(self) -> str:
        """Its name for users, such as "all_reduce #4"."""
        return f"{self.op} #{self.number}"

    @classmethod
    def read(cls, collective: str, site: str = "") -> Wait | None:
        """Parses `WorkbenchError.collective`, which travels as text; None if that names no collective."""
        op, _, number = collective.rpartition(" #")
        return cls(op, int(number), site) if op and number.isdecimal() else None


class Runner(Replicas):
    """Replicas that run steps, from the point of view of steps and the values that they make.

    Attributes:
      sent: The values that the notebook has sent the replicas and that are still referenced.
    """

    sent: weakref.WeakSet[Any]

    @abstractmethod
    def wait_for(self, step: Step) -> None:
        """Waits for a step; raises its error. Ctrl-C stops the step and leaves the cluster usable."""

    @abstractmethod
    def wait_for_end(self, step: Step) -> None:
        """As `wait_for`, but raises nothing; the next run reports the failure."""


class Step:
    """One message that every replica of a group executes.

    Attributes:
      group: The group that runs it.
      places: The places of its replicas, by rank; those of its group may change.
      serial: Its number in the gang.
      number: Its number among the user's steps of the group, -1 for internal work.
      name: The user's function.
      site: Where the user called it, such as "train.py:41".
      waiting: Ranks that have not reported yet.
      leaves: For each rank the leaves of its result, in the form of DONE; None until it reports.
      structures: For each rank the structure of its result.
      failures: The reports of failed replicas.
      lost: rank -> how its worker ended.
      waited: Where the others waited when a worker was lost; None if they did not.
      ended: Whether it has ended, so that no more reports follow.
      ended_ns: When that was known, by `time.monotonic_ns`.
      inputs: The distributed values among its arguments that still exist.
      error: The error that waiting for it raises.
      on_merge: Runs merge functions of this step.
      merging: rank -> (payload of the merge request that it waits on, number of its latest collective).
      merge_error: The error that its merge function raised.
      promised: The structure that its result must have, None if not known yet.
      nested: Whether it is work of a merge function, and thus part of a paused step.
      accepted: The data to resend it if it is lost with a replica; None once it has succeeded, and for steps that the
        caller waits for.
      origin: The source that restores its result on replaced replicas, `Sent` or a chunk of a dataset; None for results
        of user functions.
    """

    __slots__ = (
        "accepted",
        "ended",
        "ended_ns",
        "error",
        "failures",
        "group",
        "inputs",
        "leaves",
        "lost",
        "merge_error",
        "merging",
        "name",
        "nested",
        "number",
        "on_merge",
        "origin",
        "places",
        "prepared",
        "promised",
        "serial",
        "site",
        "structures",
        "waited",
        "waiting",
    )

    def __init__(
        self,
        group: Runner,
        serial: int,
        *,
        number: int,
        prepared: Any,
        on_merge: MergeFunction | None,
        ranks: Any = None,
        nested: bool = False,
        promised: Any = None,
    ) -> None:
        self.group = group
        self.places = group.places
        self.serial = serial
        self.number = number
        self.prepared = prepared
        self.name = prepared.name if prepared is not None else ""
        self.site = ""
        self.waiting: set[int] = set(range(group.size)) if ranks is None else set(ranks)
        self.leaves: list[Any] = [None] * group.size
        self.structures: list[Any] = [None] * group.size
        self.promised = promised
        self.failures: list[FailureReport] = []
        self.lost: dict[int, WorkerEnd] = {}
        self.waited: Wait | None = None
        self.ended = False
        self.ended_ns = 0
        self.inputs: list[weakref.ref[Any]] = []
        self.error: BaseException | None = None
        self.on_merge = on_merge
        self.merging: dict[int, Any] = {}
        self.merge_error: BaseException | None = None
        self.nested = nested
        self.origin: Any = None
        self.accepted: Accepted | None = None

    def begin_again(self, serial: int) -> None:
        """Resets it for resending as message `serial`, to which its handles then refer."""
        self.serial = serial
        self.places = self.group.places
        self.waiting = set(range(self.group.size))
        self.leaves = [None] * self.group.size
        self.structures = [None] * self.group.size
        self.failures = []
        self.lost = {}
        self.waited = None
        self.error = self.merge_error = None
        self.merging = {}
        self.ended = False

    @property
    def failed(self) -> bool:
        """Whether a replica reported a failure or was lost."""
        return bool(self.failures or self.lost)

    def take(self, outcomes: list[tuple[Any, ...]], structures: dict[int, Any]) -> None:
        """Records the outcomes of one worker's replicas.

        Args:
          outcomes: One per replica, in the form of DONE; or a single one for a program that ran once for all.
          structures: The structures that the worker has sent so far, by key.
        """
        for fields in outcomes:
            outcome = read_outcome(fields)
            if type(outcome) is Done:
                self._done(outcome.rank, structures[outcome.structure], unpacked(outcome.leaves))
            elif type(outcome) is DoneForRanks:
                for row, rank in enumerate(outcome.ranks):
                    self._done(rank, structures[outcome.structure], _row_of(outcome.leaves, row))
            else:
                assert type(outcome) is Failed
                self.waiting.discard(outcome.rank)
                self.failures.append(outcome.failure)

    def _done(self, rank: int, structure: Any, leaves: Any) -> None:
        self.waiting.discard(rank)
        self.structures[rank] = structure
        self.leaves[rank] = leaves


def _row_of(leaves: list[Any], row: int) -> list[Any]:
    """The leaves of one of the replicas for which a program ran."""
    return [(leaf.rows[row, ...],) if type(leaf) is RowsLeaf else leaf for leaf in leaves]
