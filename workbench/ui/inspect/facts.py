"""Facts about values, computed on the replicas that hold the values."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from workbench.backends.summary import Summary
from workbench.distribute.values.distributed_values import Mirrored, PerReplica
from workbench.distribute.variables.component import VariableComponent
from workbench.distribute.variables.variable import Variable
from workbench.runtime.replica.replica_store import Written
from workbench.telemetry.formatting import replicas_text
from workbench.telemetry.snapshot import Onset
from workbench.ui.inspect.apart_text import apart_text
from workbench.ui.inspect.copies import tell_copies
from workbench.ui.inspect.differences import Apart, Gap, apart, differences
from workbench.ui.inspect.first_bad import origin_hints
from workbench.ui.inspect.not_finite import tell_not_finite
from workbench.ui.inspect.replica_places import central_device, place_of, server_of
from workbench.ui.inspect.result_courses import CourseSource, are_numbers
from workbench.ui.inspect.since_step import (
    UNKNOWN,
    Since,
    differences_seen,
    empty_input,
    result_since,
    variable_since,
)
from workbench.ui.inspect.spread import spread_of
from workbench.ui.inspect.summaries import assigned, described, summarise
from workbench.ui.models.inspected import Agreement, Difference, InspectedValue, ReplicaSummary

if TYPE_CHECKING:
    from workbench.device_names import Device
    from workbench.runtime.driver.group import Group
    from workbench.runtime.driver.handle import Handle

_FLUSH_SECONDS: Final = 5.0
"""How long to wait for records. The replicas have just answered, so only a busy machine takes more than a moment."""
EMPTY_BATCH: Final = (
    "{who} got an empty batch in this step: a mean over no rows is NaN. Divide a sum by the global number of rows, "
    "or batch with drop_remainder=True."
)
LEFT_OUT: Final = "mean, std, min, max, L2 and the histogram leave NaN and infinity out."
PARTLY_READ: Final = (
    "{read:,} of {size:,} elements were read, evenly spaced: figures, digests and what is said to be equal are of "
    "those. wb.inspect(…, exact=True) reads all."
)
PARTLY_COMPARED: Final = (
    "max|Δ| is that of {compared:,} of the {apart:,} elements that differ, or that are next to some that do. "
    "wb.inspect(…, exact=True) compares all."
)


def inspected(
    names: Sequence[str], leaves: Sequence[Any], *, exact: bool = False
) -> tuple[InspectedValue, ...]:
    """Facts about leaves with these names.

    It also reports to the cluster's log what is not finite, and whether copies agree.

    Args:
      names: The names of the leaves.
      leaves: The leaves to inspect.
      exact: Whether to read all elements of huge arrays.
    """
    found = _Found(list(leaves), exact)
    values = tuple(found.value(own, leaf) for own, leaf in zip(names, leaves, strict=True))
    tell_not_finite(zip(leaves, values, strict=True))
    tell_copies(zip(leaves, values, strict=True))
    return values


class _Found:
    """Facts about leaves, requested from each group of replicas in one step."""

    def __init__(self, leaves: list[Any], exact: bool) -> None:
        self._exact = exact
        self._places: dict[int, tuple[Group, Handle | str]] = {}
        for leaf in leaves:
            if (place := place_of(leaf)) is not None:
                self._places[id(leaf)] = place
        read = self._asked(summarise, {id(leaf): exact for leaf in leaves})
        self._summaries = {key: [each.summary for each in found] for key, found in read.items()}
        self._written = self._asked(assigned, {id(leaf): None for leaf in leaves if self._is_stored(leaf)})
        self._now_ns = time.monotonic_ns()
        self._since: dict[int, list[Since]] = {}
        self._silent: dict[Group, tuple[str, ...]] = {}
        self._apart = {
            id(leaf): self._to_compare(leaf, [each.checksums for each in read[id(leaf)]])
            for leaf in leaves
            if id(leaf) in read
            and _should_agree(leaf)
            and self._is_comparable(leaf)
            and not self._equal(leaf)
        }
        self._differences = self._asked(differences, {key: what.numbers for key, what in self._apart.items()})

    def replicas(self, leaf: Any) -> tuple[ReplicaSummary, ...]:
        """The leaf's components."""
        if id(leaf) not in self._places:
            return self._here(leaf)
        group, _ = self._places[id(leaf)]
        if (central := central_device(leaf)) is not None:  # every replica reads the same one
            return (self._replica(leaf, 0, -1, central),)
        ranks = [leaf.rank] if isinstance(leaf, VariableComponent) else range(group.size)
        return tuple(self._replica(leaf, rank, rank, group.devices[rank]) for rank in ranks)

    def _here(self, leaf: Any) -> tuple[ReplicaSummary, ...]:
        """A leaf whose components, or single value, are in the notebook or on a parameter server."""
        components = enumerate(leaf.values) if isinstance(leaf, PerReplica | Mirrored) else [(-1, leaf)]
        return tuple(
            ReplicaSummary(rank, *server_of(part), described(part, exact=self._exact))
            for rank, part in components
        )

    def _replica(self, leaf: Any, rank: int, shown: int, device: Device) -> ReplicaSummary:
        group, what = self._places[id(leaf)]
        summary = self._summaries[id(leaf)][rank]
        bad = "" if isinstance(summary, str) else "NaN" if summary.nan else "Inf" if summary.inf else ""
        if isinstance(what, str):
            *fields, now_ns = self._written[id(leaf)][rank].tolist()
            written = Written(*fields)
            age = (now_ns - written.at_ns) / 1e9 if written.times else None
            step = written.step
            since = variable_since(group, (what, "finite", rank), not bad, [written])
        else:
            ended_ns = what.step.ended_ns
            age = (self._now_ns - ended_ns) / 1e9 if ended_ns else None
            step = what.step.number
            since = result_since(what, rank) if bad else UNKNOWN
        if bad:
            self._since.setdefault(id(leaf), []).append(since)
        note = " ".join(part for part in (bad, since.text) if part)
        if not isinstance(summary, str) and summary.shape and summary.first_bad >= 0:
            at = np.unravel_index(summary.first_bad, summary.shape)
            note += f", at [{','.join(map(str, map(int, at)))}]"
        place = device.host, device.short.lower()
        return ReplicaSummary(shown, *place, summary, age, note, since.exact, step)

    def value(self, name: str, leaf: Any) -> InspectedValue:
        """All facts about a leaf with this name."""
        replicas = self.replicas(leaf)
        entered = self._entered(leaf)
        hints = (
            *self._empty_batches(leaf),
            *origin_hints(replicas, entered, self._silent_workers(leaf)),
            *_left_out(replicas),
            *_partly_read(replicas),
            *self._partly_compared(leaf),
        )
        run_id, group = self._axis(leaf)
        return InspectedValue(
            name,
            _kind(leaf),
            replicas,
            self.agreement(leaf),
            hints,
            spread_of(replicas),
            entered,
            run_id=run_id,
            group=group,
            course=CourseSource(leaf).now() if are_numbers(replicas) else None,
        )

    def _axis(self, leaf: Any) -> tuple[str, str]:
        """The run and the replicas whose steps a leaf belongs to; "" and "" if it belongs to none."""
        if id(leaf) not in self._places:
            return "", ""
        group, _ = self._places[id(leaf)]
        cluster = group.gang.cluster
        return ("", "") if cluster is None else (cluster.name, group.name)

    def _entered(self, leaf: Any) -> Onset | None:
        """Where a leaf's NaN or infinity first entered a collective. Requires that the replicas were examined."""
        steps = [since for since in self._since.get(id(leaf), ()) if since.step >= 0]
        if not steps:
            return None
        group, _ = self._places[id(leaf)]
        cluster = group.gang.cluster
        assert cluster is not None
        if group not in self._silent:
            self._silent[group] = cluster.flush_telemetry(_FLUSH_SECONDS, names=group.worker_names)
        first, last = min(since.first for since in steps), max(since.step for since in steps)
        found: Onset | None = cluster.feed.first_not_finite(
            cluster.name, group.name, since=max(first, 0), until=last
        )
        if found is not None and self._silent[group]:
            return replace(found, certain=False)  # what is still to come may tell of an earlier one
        return found

    def _silent_workers(self, leaf: Any) -> tuple[str, ...]:
        """The workers that have not sent the records of a leaf's replicas. Requires `_entered`."""
        return self._silent.get(self._places[id(leaf)][0], ()) if id(leaf) in self._places else ()

    def _empty_batches(self, leaf: Any) -> Iterator[str]:
        if id(leaf) not in self._places or isinstance(handle := self._places[id(leaf)][1], str):
            return
        empty = [
            rank
            for rank, summary in enumerate(self._summaries[id(leaf)])
            if isinstance(summary, Summary) and summary.nan and empty_input(handle, rank)
        ]
        if empty:
            yield EMPTY_BATCH.format(who=replicas_text(empty))

    def _partly_compared(self, leaf: Any) -> Iterator[str]:
        what = self._apart.get(id(leaf))
        if what is not None and what.compared < what.differing:
            yield PARTLY_COMPARED.format(compared=what.compared, apart=what.differing)

    def _to_compare(self, leaf: Any, checksums: Sequence[np.ndarray]) -> Apart:
        return apart(math.prod(self._summaries[id(leaf)][0].shape), checksums, exact=self._exact)

    def _is_comparable(self, leaf: Any) -> bool:
        """Whether the components are arrays of one shape."""
        shapes = {getattr(summary, "shape", None) for summary in self._summaries.get(id(leaf), [])}
        return len(shapes) == 1 and None not in shapes

    def _is_stored(self, leaf: Any) -> bool:
        return id(leaf) in self._places and isinstance(self._places[id(leaf)][1], str)

    def agreement(self, leaf: Any) -> Agreement | None:
        """How the components compare, for leaves whose components should be equal."""
        if not _should_agree(leaf) or id(leaf) not in self._places or not self._all_arrays(leaf):
            return None
        summaries = self._summaries[id(leaf)]
        first = summaries[0]
        since = self._parted(leaf)
        gaps = [_gap(each) for each in self._differences.get(id(leaf), ())]
        worst = 0.0 if self._equal(leaf) else max((gap.largest for gap in gaps), default=math.nan)
        group, what = self._places[id(leaf)]
        course = differences_seen(group, what, worst, self._times(leaf)) if isinstance(what, str) else None
        if self._equal(leaf):
            return Agreement(True, first.sha256, 0.0, -1, course=course)
        other = next(rank for rank, summary in enumerate(summaries) if not _same(summary, first))
        compared = self._apart.get(id(leaf))
        size = math.prod(first.shape)
        complete = compared is not None and compared.compared == compared.differing and first.read == size
        contents = [(each.sha256, each.shape, each.dtype) for each in summaries]
        sentence, evidence = apart_text(contents, gaps, since, first.shape, complete=complete)
        return Agreement(
            False,
            first.sha256,
            worst,
            other,
            since.text,
            sentence=sentence,
            evidence=evidence,
            step=since.exact,
            differences=tuple(
                Difference(rank, gap.largest, gap.elements if complete else None)
                for rank, gap in enumerate(gaps)
            ),
            course=course,
        )

    def _parted(self, leaf: Any) -> Since:
        """The step at which a leaf's components stopped being equal."""
        group, what = self._places[id(leaf)]
        if isinstance(what, str):
            return variable_since(group, (what, "in sync"), self._equal(leaf), self._times(leaf))
        number = what.step.number
        return Since(number, f"at step {number}", number) if number >= 0 else UNKNOWN

    def _times(self, leaf: Any) -> list[Written]:
        """How often, and when, each replica assigned a variable."""
        return [Written(*each[:-1].tolist()) for each in self._written[id(leaf)]]

    def _equal(self, leaf: Any) -> bool:
        summaries = self._summaries.get(id(leaf), [])
        return all(_same(summary, summaries[0]) for summary in summaries[1:])

    def _all_arrays(self, leaf: Any) -> bool:
        return all(isinstance(summary, Summary) for summary in self._summaries.get(id(leaf), []))

    def _asked(self, program: Callable[..., Any], about: dict[int, Any]) -> dict[int, list[Any]]:
        """Runs a program of `summaries` on replicas, for leaves (by id) with their arguments.

        Returns:
          One answer per replica, by leaf id; without leaves that are not on replicas.
        """
        placed = {key: self._places[key] for key in about if key in self._places}
        answers: dict[int, list[Any]] = {}
        for group in {id(group): group for group, _ in placed.values()}.values():
            stored = [
                key for key, (owner, what) in placed.items() if owner is group and isinstance(what, str)
            ]
            passed = [
                key for key, (owner, what) in placed.items() if owner is group and not isinstance(what, str)
            ]
            arguments = (
                [placed[key][1] for key in passed],
                [placed[key][1] for key in stored],
                [about[key] for key in (*passed, *stored)],
            )
            # Comparing takes collectives, which belong to a numbered step.
            counted = differences if program is differences else None
            results = group.run(group.prepare(program, user_function=counted), arguments)
            answers.update(zip([*passed, *stored], (result.values() for result in results), strict=True))
        return answers


def _left_out(replicas: Sequence[ReplicaSummary]) -> Iterator[str]:
    summaries = [each.summary for each in replicas if isinstance(each.summary, Summary)]
    if any(0 < each.nan + each.inf < each.read for each in summaries):
        yield LEFT_OUT


def _partly_read(replicas: Sequence[ReplicaSummary]) -> Iterator[str]:
    summaries = [each.summary for each in replicas if isinstance(each.summary, Summary)]
    partly = [each for each in summaries if each.read < math.prod(each.shape)]
    if partly:
        yield PARTLY_READ.format(read=partly[0].read, size=math.prod(partly[0].shape))


def _gap(fields: np.ndarray) -> Gap:
    largest, *counts = fields.tolist()
    return Gap(largest, *map(int, counts))


def _kind(leaf: Any) -> str:
    return leaf.kind if isinstance(leaf, Variable) else type(leaf).__name__


def _should_agree(leaf: Any) -> bool:
    if isinstance(leaf, Variable):
        return leaf.kind == "MirroredVariable"
    return isinstance(leaf, Mirrored)


def _same(one: Summary | str, other: Summary | str) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return False
    return (one.sha256, one.shape, one.dtype) == (other.sha256, other.shape, other.dtype)
