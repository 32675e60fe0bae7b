"""The findings of `wb.inspect` as data, which recorded runs also have."""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.backends.summary import Summary
from workbench.telemetry.added import ADDED
from workbench.telemetry.snapshot import Onset
from workbench.telemetry.told import ResultCourse


@dataclass(frozen=True, slots=True)
class ReplicaSummary:
    """One replica's component.

    Attributes:
      replica: The replica, or -1 for a value in the notebook.
      host: Its host, or "" if the component is in the notebook.
      device: Its device on that host, such as "cpu:0".
      summary: Facts about an array, or the type name of anything else.
      age_seconds: Time since it was made or assigned; None for a value in the notebook.
      note: What to check, such as "NaN since step 118", or "".
      bad_since: The step in which it stopped being finite, -1 if it is finite or that is unknown.
      step: The user's step that made it or assigned it last; -1 if that was between steps or is unknown.
    """

    replica: int
    host: str
    device: str
    summary: Summary | str
    age_seconds: float | None = None
    note: str = ""
    bad_since: int = -1
    step: int = -1


@dataclass(frozen=True, slots=True)
class Difference:
    """How one component differs from that of replica 0.

    Attributes:
      replica: The replica.
      largest: The largest difference; infinite if only one of the two is NaN or infinite.
      elements: How many elements differ; None if only some were compared.
    """

    replica: int
    largest: float
    elements: int | None


@dataclass(frozen=True, slots=True)
class Agreement:
    """How components that should be equal compare.

    Attributes:
      in_sync: Whether they are equal, bit by bit.
      sha256: Digest of replica 0's component.
      max_abs_difference: Largest difference to replica 0; NaN if shapes differ.
      first_replica: The first that differs from replica 0, or -1.
      since: When they diverged, such as "at step 5" or "between steps 3 and 9"; "" if unknown.
      sentence: Which replicas differ, since when and where; "" if they are equal.
      evidence: By how much they differ, and which are equal.
      step: The step in which they diverged, -1 if unknown.
      differences: The differences by replica, if their shapes are the same.
      course: The largest difference after each inspected step, if there are several.
    """

    in_sync: bool
    sha256: str
    max_abs_difference: float
    first_replica: int
    since: str = ""
    sentence: str = field(default="", metadata=ADDED)
    evidence: str = field(default="", metadata=ADDED)
    step: int = field(default=-1, metadata=ADDED)
    differences: tuple[Difference, ...] = field(default=(), metadata=ADDED)
    course: ResultCourse | None = field(default=None, metadata=ADDED)


@dataclass(frozen=True, slots=True)
class Quantiles:
    """How one figure of the components is distributed over the replicas for which it is finite.

    Attributes:
      figure: Name of the figure, such as "mean"; "value" for components of one element.
      low: The smallest value.
      p10: The 10th percentile.
      median: The median.
      p90: The 90th percentile.
      high: The largest value.
    """

    figure: str
    low: float
    p10: float
    median: float
    p90: float
    high: float


@dataclass(frozen=True, slots=True)
class ReplicaSpread:
    """How the components of many replicas compare.

    Attributes:
      quantiles: Figure by figure.
      outliers: At most 8 notable replicas: not finite, or far from the others.
      outlying: How many such replicas there are.
      not_finite: How many of them have NaN or infinity.
      rest: A sentence on the replicas that are not outliers; "" if all are close to each other.
    """

    quantiles: tuple[Quantiles, ...]
    outliers: tuple[int, ...]
    outlying: int
    not_finite: int
    rest: str = field(default="", metadata=ADDED)


@dataclass(frozen=True, slots=True)
class InspectedValue:
    """One leaf of the inspected structure.

    Attributes:
      name: A variable's name, or the leaf's path in the structure; "" if it has none.
      kind: Its class.
      replicas: One per component, in replica order.
      agreement: How copies that should be equal compare; None for other values.
      hints: Sentences on possible reasons for what it shows.
      spread: How components compare if there are more than 32, otherwise None.
      entered: Where its NaN or infinity first went into a collective, if known.
      run_id: The run whose steps made it, "" if none did.
      group: The replicas of these steps.
      course: For a number, its values over the newest steps, if they are kept.
    """

    name: str
    kind: str
    replicas: tuple[ReplicaSummary, ...]
    agreement: Agreement | None
    hints: tuple[str, ...] = ()
    spread: ReplicaSpread | None = None
    entered: Onset | None = None
    run_id: str = field(default="", metadata=ADDED)
    group: str = field(default="", metadata=ADDED)
    course: ResultCourse | None = field(default=None, metadata=ADDED)


@dataclass(frozen=True, slots=True)
class FirstBad:
    """What went wrong first among the inspected values.

    Attributes:
      value: Number of the value.
      replica: The replica whose component shows it; -1 for a value in the notebook.
      text: Value, origin and place, such as "first NaN: losses['loss'] · replica 1 · step 2".
    """

    value: int
    replica: int
    text: str


@dataclass(frozen=True, slots=True)
class Elements:
    """Elements of one replica's component, as rows and columns of cells.

    Attributes:
      value: Number of the value among the inspected ones.
      replica: The replica that holds the component; -1 for a value in the notebook.
      difference: Whether these are differences to replica 0.
      shape: The shape of the component.
      axes: The axis that goes down and the one that goes to the right; -1 for none.
      index: An index on every axis; on those two, the first one shown.
      extent: How many elements are shown along those two.
      steps: How many elements make one cell along those two.
      cells: Row by row, to three digits: the mean of a cell's elements, or the difference that is farthest from 0;
        "nan", "inf" or "-inf" if one of them is.
    """

    value: int
    replica: int
    difference: bool
    shape: tuple[int, ...]
    axes: tuple[int, int]
    index: tuple[int, ...]
    extent: tuple[int, int]
    steps: tuple[int, int]
    cells: tuple[tuple[float | str, ...], ...]


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of a dump, one of which is shown.

    Attributes:
      steps: Their numbers, in order; -1 for operations outside steps.
      shown: Position of the step that is shown.
    """

    steps: tuple[int, ...]
    shown: int


@dataclass(frozen=True, slots=True)
class Values:
    """What `wb.inspect` found, and the elements of one value if requested.

    Attributes:
      values: One per leaf.
      elements: A heat map, or None.
      looked_at: When this was found, seconds since 1970; ages refer to this time.
      first: What went wrong first among them, None if all are finite.
      steps: The steps to choose from in a dump, otherwise None.
    """

    values: tuple[InspectedValue, ...]
    elements: Elements | None
    looked_at: float
    first: FirstBad | None
    steps: Steps | None = None
