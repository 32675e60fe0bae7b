"""What views draw: a tree of plain values, folded once in Python.

Everything is JSON-able through `as_dict`: None for a value without meaning, never NaN. Parts that are lists of keyed
items (table rows, lanes, events) carry the version in which they last changed, so that `delta` can send a view only
those.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from workbench.telemetry.added import ADDED
from workbench.telemetry.told import Told


@dataclass(frozen=True, slots=True)
class Counters:
    """How much was seen, and how much is missing; counts are since the feed began.

    Attributes:
      records: Records folded.
      collectives: The user's collectives with records from all replicas.
      internal: The same for workbench's own collectives, such as those that exchange input.
      failed: Those among them that ended in a mismatch, timeout, abort or error.
      pending: Records that currently wait for those of other replicas.
      incomplete: Collectives given up because some replica's record never came.
      dropped: Records that rings lost because they were not drained in time.
      dropped_events: Events lost likewise, or displaced in the feed by newer ones.
      duplicates: Repeated batches, which were ignored.
    """

    records: int = 0
    collectives: int = 0
    internal: int = 0
    failed: int = 0
    pending: int = 0
    incomplete: int = 0
    dropped: int = 0
    dropped_events: int = 0
    duplicates: int = 0


@dataclass(frozen=True, slots=True)
class TableRow:
    """Timing of the collectives of one kind, reduction, size bucket, dtype and group.

    Attributes:
      key: Identifies the row.
      op, redop, dtype, group, n, count, algorithm, packs, transport: As in the latest record.
      purpose: What workbench itself needed them for, such as "input"; "" for the user's.
      size_bytes: Size S of the latest one.
      bucket_bytes: Lower bound of the bucket: the power of two at or below S.
      samples: Number of collectives behind the figures.
      last_us, p50_us, p99_us: Transfer time, from the arrival of the last replica to the last result.
      cv_percent: Standard deviation of the transfer time over its mean.
      algbw, busbw: Bandwidths of the latest one, GB/s; None if they have no meaning.
      limit_percent: busbw in percent of the measured limit, or None if unknown.
      wait_percent: Share of the replicas' time in the collective that they waited for the last one.
      skew_us: Median time between the first and the last replica's arrival.
      skew_err_us: A skew below this is meaningless (twice the clock error).
      late_replica, late_host: The replica that came last most often, or None if clock error hides it.
      recent_us: Transfer times of the newest ones, oldest first, for a sparkline.
      version: The fold in which the row last changed.
    """

    key: str
    op: str
    redop: str
    dtype: str
    group: str
    n: int
    count: int
    algorithm: str
    packs: int
    transport: str
    purpose: str
    size_bytes: int
    bucket_bytes: int
    samples: int
    last_us: float
    p50_us: float
    p99_us: float
    cv_percent: float
    algbw: float | None
    busbw: float | None
    limit_percent: float | None
    wait_percent: float
    skew_us: float
    skew_err_us: float
    late_replica: int | None
    late_host: str | None
    recent_us: tuple[float, ...]
    version: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Lane:
    """One line of the lanes view: a replica and its label, such as "r3 b cuda:1"."""

    replica: int
    label: str


@dataclass(frozen=True, slots=True)
class LaneItem:
    """One collective in the lanes view; each replica waits from its arrival to `ready_ns`, then transfers.

    Attributes:
      key: Identifies the collective.
      op, state, site, step, seq: As recorded.
      size_bytes: Size S.
      ready_ns: When the last replica had entered; driver's clock.
      err_ns: A skew below this is meaningless.
      mean_enter_ns: When replicas entered on average, including those without a lane.
      last_end_ns: When the last of all replicas had its result.
      enter_ns, end_ns: Times by lane, in the order of the view's lanes; None if the replica took no part.
      version: Fold in which it was completed.
    """

    key: str
    op: str
    state: str
    site: str
    step: int
    seq: int
    size_bytes: int
    ready_ns: int
    err_ns: int
    mean_enter_ns: int
    last_end_ns: int
    enter_ns: tuple[int | None, ...]
    end_ns: tuple[int | None, ...]
    version: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Late:
    """A replica that is late step after step.

    Attributes:
      replica: Its number.
      steps: In how many of the newest steps it was late, by more than the clock error and a twentieth of the step.
      of_steps: The number of these newest steps.
      by_us: How late it was compared with the median replica, in the median step.
      share: The same as a share of a step, 0 to 1.
      compute_us: How long it computes in a step, on average.
      others_us: How long the median replica computes.
    """

    replica: int
    steps: int
    of_steps: int
    by_us: float
    share: float
    compute_us: float
    others_us: float


@dataclass(frozen=True, slots=True)
class Lateness:
    """Heat map: how late each replica came in each step, summed over its collectives.

    Attributes:
      replicas: Row labels.
      steps: Column labels.
      late_us: Shape (replicas, steps); None if a replica has no record of the step.
      stragglers: Replicas that are late step after step, by enough to matter; see `lateness.lateness`.
      slow_steps: Steps in which everybody was late, not one replica.
      text: Which replicas are late and by how much, and whether they have too few cores; "" if there is nothing to say.
      late: The stragglers, with figures.
      late_steps: By row, in how many of the steps the replica was later than the median one by more than `enough_us`.
      enough_us: A smaller lateness is meaningless: the clock error, or a twentieth of a step.
      median_us: By column, over all replicas, including those without a row.
      waited_shares: By row, the share of its steps, 0 to 1, that the replica waited; None if unknown.
    """

    replicas: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()
    late_us: tuple[tuple[float | None, ...], ...] = ()
    stragglers: tuple[int, ...] = ()
    slow_steps: tuple[int, ...] = ()
    text: str = ""
    late: tuple[Late, ...] = ()
    late_steps: tuple[int, ...] = ()
    enough_us: float = 0.0
    median_us: tuple[float, ...] = ()
    waited_shares: tuple[float | None, ...] = field(default=(), metadata=ADDED)


@dataclass(frozen=True, slots=True)
class Pace:
    """A group's pace in its newest steps.

    Attributes:
      steps: The number of these steps.
      last_step: The newest, -1 before the first.
      end_ns: When its last result was ready; driver's clock.
      step_us: How long a step takes, from one step's first collective to the next step's, without pauses between two
        cells; the median.
      waited_share: The share of a step, 0 to 1, that replicas wait for the last one; None if unknown.
      sent_share: The share in which data move, likewise.
      compute_share: The share that replicas spend outside collectives, on average, likewise.
      read_share: The share of the replicas' inputs to collectives, 0 to 1, that was checked and found finite.
      steps_per_second: From the mean of the same times, where a step counts as at most three median ones; None if
        unknown.
    """

    steps: int = 0
    last_step: int = -1
    end_ns: int = 0
    step_us: float = 0.0
    waited_share: float | None = None
    sent_share: float | None = None
    compute_share: float | None = None
    read_share: float = 0.0
    steps_per_second: float | None = field(default=None, metadata=ADDED)


@dataclass(frozen=True, slots=True)
class Slowdown:
    """Steps have become slower.

    Attributes:
      step: The first of the slower ones.
      before_us, after_us: How long a step took before, and takes since; medians.
      grown: What has grown most: "computing", "waiting" or "sending".
      grown_before_us, grown_after_us: How long that part took per step, and takes; medians.
    """

    step: int
    before_us: float
    after_us: float
    grown: str
    grown_before_us: float
    grown_after_us: float


@dataclass(frozen=True, slots=True)
class StepTiming:
    """One step in which replicas met, over all of them.

    Attributes:
      step: Its number.
      begin_ns: When the first replica entered the first collective of the step; driver's clock.
      seconds: Time until the same moment of the next step, without pauses between two cells; None for the newest step,
        and if the next one is missing.
      waited_percent: How much of the step the replicas that were not last waited for the last one, on average.
      not_finite: Whether a value that is not finite went into one of its collectives.
    """

    step: int
    begin_ns: int
    seconds: float | None
    waited_percent: float
    not_finite: bool


@dataclass(frozen=True, slots=True)
class LastSeen:
    """The newest collective that a replica recorded; op "" if it recorded none.

    Attributes:
      replica: The replica.
      step, seq, op, site: The collective.
      now: Where in the user's code the replica has been since, and for how long; "" if unknown.
    """

    replica: int
    step: int
    seq: int
    op: str
    site: str
    now: str = ""


@dataclass(frozen=True, slots=True)
class Stuck:
    """A collective that some replicas have entered and others have not reached.

    Attributes:
      state: "waiting" while replicas wait in it; "lost" if those that have not reached it are gone, and "failed" if its
        deadline has passed, so that no replica waits any more.
      step, seq, op, site: The collective.
      waiting: Replicas that have entered it.
      missing: Replicas that have not; if state is "lost", those of them that are gone.
      since_ns: When the first replica entered; driver's clock.
      last: What the missing ones did last.
      reached: Missing replicas that had reached it, but were lost in it.
      seconds: How long the first replica has waited, in whole seconds; 0 unless state is "waiting".
    """

    step: int
    seq: int
    op: str
    site: str
    waiting: tuple[int, ...]
    missing: tuple[int, ...]
    since_ns: int
    last: tuple[LastSeen, ...]
    state: str = "waiting"
    reached: tuple[int, ...] = ()
    seconds: int = 0


@dataclass(frozen=True, slots=True)
class Onset:
    """The first collective with an input that is not finite, and the replicas that provided it.

    Attributes:
      step, seq, op, site: The collective.
      replicas: The replicas that provided it; all of them if it came from shared data, such as a variable.
      n: Replicas in the group.
      last_step: The last step, without interruption, in which replicas provided values that are not finite.
      certain: Whether it is certainly the first: everything was checked in this step and the one before, and no record
        was lost.
    """

    step: int
    seq: int
    op: str
    site: str
    replicas: tuple[int, ...]
    n: int
    last_step: int
    certain: bool = True


@dataclass(frozen=True, slots=True)
class SampledSteps:
    """Where periodic samples lie on the axis of a strategy's steps.

    Attributes:
      run_id, group: The owner of the steps, as in `GroupView`.
      steps: The newest step at each sample, oldest sample first; -1 before the first step.
    """

    run_id: str
    group: str
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GroupView:
    """One group of replicas in its newest generation.

    Attributes:
      run_id, group, generation, n: As recorded.
      lanes: Lines of the lanes view; at most 32, those of the latest replicas.
      hidden_lanes: Replicas beyond those.
      hosts: Number of hosts of the replicas; 0 until each replica has recorded something.
      items: The newest collectives, oldest first.
      steps: The newest steps, oldest first.
      lateness: Heat map over the same replicas as the lanes.
      stuck: The stuck collective, if there is one.
      not_finite: Where NaN or infinity first went into a collective, if known.
      not_finite_now: The same for values that still go into collectives in the newest steps.
      pace: How fast the newest steps were.
      slowdown: Since when steps take longer than before; None if they do not.
      told: What is known besides records.
    """

    run_id: str
    group: str
    generation: int
    n: int
    lanes: tuple[Lane, ...]
    hidden_lanes: int
    hosts: int
    items: tuple[LaneItem, ...]
    steps: tuple[StepTiming, ...]
    lateness: Lateness
    stuck: Stuck | None
    not_finite: Onset | None
    not_finite_now: Onset | None = None
    pace: Pace = Pace()
    slowdown: Slowdown | None = None
    told: Told = field(default_factory=Told)


@dataclass(frozen=True, slots=True)
class EventItem:
    """An event as shown in the log; fields as in `events.Event`."""

    key: str
    kind: str
    name: str
    message: str
    t_ns: int
    severity: str
    replica: int
    host: str
    step: int
    site: str
    generation: int
    group: str = field(default="", metadata=ADDED)
    version: int = field(default=0, compare=False)

    def is_of(self, group: str, generation: int) -> bool:
        """Whether it happened in a generation of a group; an event without a group concerns all groups."""
        return self.generation == generation and self.group in ("", group)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that views draw of collectives, at one moment.

    Attributes:
      version: Counts the changes of the feed; snapshots with equal contents compare equal even if it differs.
      counters: How much was seen, and how much is missing.
      table: The user's collectives, sorted by group, op, reduction, dtype and size.
      internal: The same for workbench's own collectives, such as those that exchange input.
      groups: The groups, newest activity first.
      events: The events, oldest first.
    """

    version: int = field(default=0, compare=False)
    counters: Counters = Counters()
    table: tuple[TableRow, ...] = ()
    internal: tuple[TableRow, ...] = ()
    groups: tuple[GroupView, ...] = ()
    events: tuple[EventItem, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The tree as JSON-able dicts and tuples."""
        return asdict(self)
