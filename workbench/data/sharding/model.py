"""The model of a dataset's sharding, its text, at most 88 columns wide, and its script-free HTML."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from workbench.data.sharding.progress import InputProgress
from workbench.telemetry.formatting import percent, printable

_WIDTH = 88
_MAX_COLUMNS = 8
_MOST_NUMBERS = 12
_HEAD, _TAIL = 8, 2
_WORTH_A_LOOK = 0.2
_EMPTY_HINT = (
    "a mean over no rows is NaN: divide a sum by the global number of rows, or batch with drop_remainder=True"
)


@dataclass(frozen=True, slots=True)
class Shape:
    """How many replicas there are, and on how many hosts.

    Attributes:
      hosts: Number of hosts.
      replicas_per_host: Replicas on each.
    """

    hosts: int = 1
    replicas_per_host: int = 1

    @property
    def replicas(self) -> int:
        """Total number of replicas."""
        return self.hosts * self.replicas_per_host


@dataclass(frozen=True, slots=True)
class ReplicaStep:
    """What one replica gets in one step.

    Attributes:
      rows: Number of rows.
      ids: Numbers of the source elements; empty if they cannot be tracked.
    """

    rows: int
    ids: tuple[int, ...]


@dataclass(frozen=True, repr=False)
class Sharding:
    """Which replica reads what. Counts cover the inspected steps.

    Attributes:
      policy: The requested policy and, if AUTO, its resolution: "AUTO→DATA".
      policy_asked: Name of the policy in the dataset's options.
      policy_used: Name of the one that applies.
      reason: Why it applies.
      algorithm: "even split", "schedule", or "as given" (one replica).
      schedule: Per host, the sizes that the schedule cycles through; empty for another algorithm.
      hosts: Number of hosts.
      replicas_per_host: Replicas on each.
      steps: Per step, one entry per replica, in replica order.
      counts: Rows per replica.
      elements: Number of different source elements that reached a replica (rows, if they cannot be tracked).
      duplicates: How often an element reached a replica again.
      dropped: Source elements that reached no replica; None if unknown.
      dropped_unknown: Why this is unknown, in words; "" if it is known, or `limit` has the reason.
      empty: Pairs (step, replica) without rows.
      remainder: Rows per replica of the last step, if it is smaller than the first.
      files: Per host, the files that its replicas got elements of; empty if nothing reads files.
      labels: Names of the elements, if they are not just numbers.
      limit: What was not inspected, in words, or "".
      batch_size: Rows of a global batch, as the dataset describes it; -1 if unknown.
      progress: How far replicas are, if the dataset is being read.
    """

    policy: str
    policy_asked: str
    policy_used: str
    reason: str
    algorithm: str
    schedule: tuple[tuple[int, ...], ...]
    hosts: int
    replicas_per_host: int
    steps: tuple[tuple[ReplicaStep, ...], ...]
    counts: tuple[int, ...]
    elements: int
    duplicates: int
    dropped: int | None
    dropped_unknown: str
    empty: tuple[tuple[int, int], ...]
    remainder: tuple[int, ...]
    files: tuple[tuple[str, ...], ...]
    labels: dict[int, str]
    limit: str
    batch_size: int
    progress: InputProgress | None = None

    @property
    def replicas(self) -> int:
        """Total number of replicas."""
        return self.hosts * self.replicas_per_host

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for views in other languages."""
        return asdict(self)

    def summary(self) -> str:
        """One line: policy, reason, counts, duplicates, dropped."""
        return summary_line(self)

    def __repr__(self) -> str:
        return model_text(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": model_text(self), "text/html": model_html(self)}


def summary_line(model: Sharding) -> str:
    """One line with the most important facts."""
    dropped = "unknown" if model.dropped is None else f"{model.dropped:,}"
    counts = " ".join(_shortened(model.counts))
    return (
        f"DistributedDataset: policy {model.policy} ({model.reason}), {model.elements:,} elements, "
        f"{model.replicas} replicas: {counts}, dup {model.duplicates:,}, dropped {dropped}"
    )


def model_text(model: Sharding) -> str:
    """The summary, the algorithm in words, and a table of steps by replicas."""
    lines = textwrap.wrap(summary_line(model), _WIDTH, subsequent_indent="  ")
    lines += textwrap.wrap(f"algorithm: {model.algorithm}{_in_words(model)}", _WIDTH, subsequent_indent="  ")
    if model.hosts > 1:
        lines.append(
            f"{model.hosts} hosts with {model.replicas_per_host} replica(s) each; replica r is on host r "
            f"// {model.replicas_per_host}"
        )
    for host, files in enumerate(model.files):
        lines += textwrap.wrap(
            f"host {host} reads: {', '.join(files) or 'nothing'}", _WIDTH, subsequent_indent="  "
        )
    if model.dropped_unknown:
        lines += textwrap.wrap(f"dropped is unknown: {model.dropped_unknown}", _WIDTH, subsequent_indent="  ")
    if model.remainder:
        lines += textwrap.wrap(f"last step is smaller: {' '.join(_shortened(model.remainder))} rows", _WIDTH)
    if model.empty:
        first = ", ".join(f"step {step} replica {replica}" for step, replica in model.empty[:3])
        lines += textwrap.wrap(
            f"{len(model.empty):,} empty: {first}{', …' if len(model.empty) > 3 else ''}",
            _WIDTH,
            subsequent_indent="  ",
        )
        lines += textwrap.wrap(_EMPTY_HINT, _WIDTH, initial_indent="  ", subsequent_indent="  ")
    lines += _table(model)
    if model.limit:
        lines.append(f"({model.limit})")
    if model.progress is not None:
        lines += progress_lines(model.progress, len(model.steps), limited=bool(model.limit))
    return "\n".join(map(printable, lines))


def progress_lines(progress: InputProgress, steps: int, *, limited: bool = False) -> list[str]:
    """How far replicas are in an epoch, and which waited for their input.

    Args:
      progress: The progress of the epoch.
      steps: How many steps of it are known.
      limited: Whether there may be more.
    """
    of = "" if limited else f" of {steps:,}"
    line = f"epoch {progress.epoch}: {progress.given:,} steps{of} begun; " + _at(progress.steps)
    shares = [progress.waited_share(replica) for replica in range(len(progress.steps))]
    waited = " ".join(_shortened([percent(share) for share in shares]))
    line += f"; waited for input, by replica: {waited} of {progress.elapsed_seconds:.3g} s"
    if max(shares, default=0) >= _WORTH_A_LOOK:
        line += "; explain() of the distributed dataset tells which stage takes that time"
    return textwrap.wrap(line, _WIDTH, subsequent_indent="  ")


def _at(steps: tuple[int, ...]) -> str:
    first, last = min(steps), max(steps)
    if first == last:
        return "no replica is in one yet" if last < 0 else f"all replicas are at step {last:,}"
    behind = [replica for replica, step in enumerate(steps) if step == first]
    who = f"replica {behind[0]}" + (f" and {len(behind) - 1} more are" if len(behind) > 1 else " is")
    return f"replicas are at step {last:,}, {who} behind at step {max(0, first):,}"


def model_html(model: Sharding) -> str:
    """The text, escaped: labels and file names come from outside."""
    return f"<pre style='font-family:var(--jp-code-font-family,monospace)'>{html.escape(model_text(model))}</pre>"


def _in_words(model: Sharding) -> str:
    match model.algorithm:
        case "even split":
            count = model.replicas
            return f" — each batch of n rows is cut into {count} parts of ceil(n / {count}) rows"
        case "schedule":
            sizes = " ".join(_shortened(model.schedule[0]))
            return f" — the stream of rows is regrouped into sizes {sizes}, again and again"
    return " — one replica gets the batches unchanged"


def _table(model: Sharding) -> list[str]:
    shown = min(model.replicas, _MAX_COLUMNS)
    more = model.replicas > shown
    width = (_WIDTH - 6 - (2 if more else 0)) // shown - 1
    header = "step  " + " ".join(f"{f'replica {replica}':<{width}.{width}}" for replica in range(shown))
    lines = [(header + (" …" if more else "")).rstrip()]
    total = len(model.steps)
    for step, cells in enumerate(model.steps):
        if _HEAD <= step < total - _TAIL and total > _HEAD + _TAIL + 1:
            if step == _HEAD:
                lines.append("   …")
            continue
        texts = " ".join(f"{_cell(cell, model, width):<{width}}" for cell in cells[:shown])
        lines.append(f"{step:>4}  {texts}{' …' if more else ''}".rstrip())
    return lines


def _cell(cell: ReplicaStep, model: Sharding, width: int) -> str:
    if not cell.rows:
        return "-"
    if not cell.ids:
        return f"{cell.rows} rows"[:width]
    text = ""
    for position, part in enumerate(parts := runs_of(cell.ids, model.labels)):
        extended = f"{text} {part}" if text else part
        rest = "" if position == len(parts) - 1 else f" +{len(parts) - position - 1}"
        if len(extended) + len(rest) > width:
            # Names may be wider than the column; the number of rows always fits.
            return f"{text} …" if text and len(text) + 2 <= width else f"{cell.rows} rows"[:width]
        text = extended
    return text


def runs_of(ids: tuple[int, ...], labels: dict[int, str]) -> list[str]:
    """Elements in their order, with consecutive ones written as first–last.

    Args:
      ids: Their numbers.
      labels: Their names, if these are not just the numbers.
    """
    if not ids:
        return []
    parts: list[str] = []
    start = previous = ids[0]
    for element in (*ids[1:], None):
        if element is not None and element == previous + 1:
            previous = element
            continue
        first = labels.get(start, str(start))
        last = labels.get(previous, str(previous)).rpartition(":")[2]
        parts.append(first if start == previous else f"{first}–{last}")
        if element is not None:
            start = previous = element
    return parts


def _shortened(values: Sequence[object]) -> list[str]:
    if len(values) <= _MOST_NUMBERS:
        return list(map(str, values))
    return [*map(str, values[: _MOST_NUMBERS - 1]), f"… ({len(values)} in all)"]
