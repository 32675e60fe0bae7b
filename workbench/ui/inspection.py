"""`wb.inspect`: per-replica facts about values, computed where the values are."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import optree

from workbench.backends.summary import Summary
from workbench.distribute.component import VariableComponent
from workbench.distribute.strategy import Strategy
from workbench.distribute.values import DistributedValues, Mirrored, PerReplica
from workbench.distribute.variable import Variable
from workbench.errors import InvalidArgumentError
from workbench.runtime.replica_store import Written
from workbench.ui import html, shown
from workbench.ui.elements import Index, elements_text, look_at, shape_at, window_at
from workbench.ui.inspected import Agreement, Elements, InspectedValue, ReplicaSummary
from workbench.ui.inspection_text import inspection_html, inspection_text
from workbench.ui.not_finite import tell_not_finite
from workbench.ui.places import central_device, place_of
from workbench.ui.plain import plain
from workbench.ui.since import UNKNOWN, empty_input, result_since, variable_since
from workbench.ui.summaries import assigned, described, differences, summarise
from workbench.ui.values_source import ValuesSource
from workbench.ui.widgets.bundle import mimebundle
from workbench.ui.widgets.sources import Fixed

if TYPE_CHECKING:
    from workbench.devices import Device
    from workbench.runtime.group import Group
    from workbench.runtime.handles import Handle
    from workbench.ui.models import Values

_MOST_SHOWN: Final = 100
EMPTY_BATCH: Final = (
    "{who} got an empty batch in this step: a mean over no rows is NaN. Divide a sum by the global number of rows, "
    "or batch with drop_remainder=True."
)


class Inspection:
    """What `wb.inspect` found. Prints as a table, and draws a heat map of elements below if that was asked for.

    Of many values some are shown, best those that are not finite or have diverged; `values` has all.

    Attributes:
      values: One per leaf of the inspected structure.
      elements: The elements that were asked for, or None.
    """

    def __init__(
        self, values: tuple[InspectedValue, ...], leaves: Sequence[Any] = (), elements: Elements | None = None
    ) -> None:
        self.values = values
        self.elements = elements
        chosen = _worth_showing(values)
        self._shown = tuple(values[number] for number in chosen)
        self._leaves = tuple(leaves[number] for number in chosen) if leaves else ()
        if hidden := len(values) - len(chosen):
            last = self._shown[-1]
            note = f"{hidden:,} more values are not shown: inspect a part of them"
            self._shown = (*self._shown[:-1], replace(last, hints=(*last.hints, note)))

    @property
    def model(self) -> Values:
        """What the view draws."""
        from workbench.ui.models import Values  # which has the classes above

        return Values(self._shown, self.elements)

    def to_dict(self) -> dict[str, Any]:
        """All facts as JSON-able values; None where a number has no meaning."""
        return {"values": [plain(value) for value in self.values]}

    def __repr__(self) -> str:
        return "\n".join([inspection_text(self._shown), *self._heat_map()])

    def _repr_html_(self) -> str:
        map_ = self._heat_map()
        return inspection_html(self._shown) + (html.preformatted("\n".join(map_)) if map_ else "")

    def source(self) -> ValuesSource:
        """For whoever shows it."""
        return ValuesSource(self._shown, self._leaves, inspected, self.elements)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return mimebundle(self.source(), text=repr(self), html=self._repr_html_(), include=include)

    def _heat_map(self) -> list[str]:
        elements = self.elements
        if elements is None:
            return []
        return elements_text(elements, self.values[elements.value].name or self.values[elements.value].kind)


def _worth_showing(values: Sequence[InspectedValue]) -> list[int]:
    """Numbers of the values that are shown, in their order."""

    def is_fine(number: int) -> bool:
        value = values[number]
        summaries = [each.summary for each in value.replicas if isinstance(each.summary, Summary)]
        finite = not any(summary.nan or summary.inf for summary in summaries)
        return finite and (value.agreement is None or value.agreement.in_sync)

    return sorted(sorted(range(len(values)), key=is_fine)[:_MOST_SHOWN])


def inspect(
    value: Any,
    *,
    name: str = "",
    elements: Index | None = None,
    replica: int | None = None,
    difference: bool = False,
) -> Inspection:
    """Looks at a value, replica by replica: shape, mean, spread, zeros, NaNs, and whether copies agree.

    The figures are computed on the replicas; no component is brought here. Waits for the steps that make the value.
    In a notebook the view shows elements, and how they differ from those of replica 0, when they are asked for there.

    Args:
      value: A PerReplica, Mirrored, variable or array, a nested structure of them, or a strategy: its variables.
      name: What to call it; by default a variable's own name, or the name that the caller's code has for it.
      elements: Also draw elements of a single value as a heat map: `...` for those on the last two axes, or an index
        such as `np.s_[3, :, 100:200]` that leaves at most two axes. At most 2,500 numbers travel: where there are more
        elements, each stands for the mean of some, and is NaN or infinite if one of them is.
      replica: Whose elements; by default those of the first replica that has NaN or infinity, else that is different.
      difference: Draw how the elements differ from those of replica 0; of several the one that differs most.

    Raises:
      InvalidArgumentError: if there are no such elements.
      WorkbenchError: what went wrong in the step that made the value.
    """
    called = name or name_in(sys._getframe(1), value)
    return inspection_of(value, called, elements=elements, replica=replica, difference=difference)


def inspection_of(
    value: Any,
    name: str,
    *,
    elements: Index | None = None,
    replica: int | None = None,
    difference: bool = False,
) -> Inspection:
    """As `inspect`, of a value that is called so, or "" if it has no name."""
    if isinstance(value, Strategy):
        name, value = "", {variable.name: variable for variable in value.variables}
    paths, leaves, _ = optree.tree_flatten_with_path(value, is_leaf=_is_distributed, namespace="workbench")
    names = [
        leaf.name
        if isinstance(leaf, Variable | VariableComponent)
        else name + "".join(f"[{part!r}]" for part in path)
        for path, leaf in zip(paths, leaves, strict=True)
    ]
    values = inspected(names, leaves)
    drawn = None
    if elements is not None:
        if len(leaves) != 1:
            raise InvalidArgumentError(
                f"elements= shows one value, got a structure of {len(leaves)}; inspect one of them"
            )
        rank = _most_interesting(values[0], difference) if replica is None else replica
        wanted = window_at(shape_at(values[0], rank, difference=difference), elements)
        drawn = look_at(leaves[0], values[0], 0, replica=rank, difference=difference, wanted=wanted)
    inspection = Inspection(values, leaves, drawn)
    shown.tell("values", lambda: Fixed("values", inspection.model))
    return inspection


def inspected(names: Sequence[str], leaves: Sequence[Any]) -> tuple[InspectedValue, ...]:
    """What is found out about leaves that are called so; what is not finite is also told to the log of the cluster."""
    found = _Found(list(leaves))
    values = tuple(
        InspectedValue(own, _kind(leaf), found.replicas(leaf), found.agreement(leaf), found.hints(leaf))
        for own, leaf in zip(names, leaves, strict=True)
    )
    tell_not_finite(zip(leaves, values, strict=True))
    return values


def _most_interesting(found: InspectedValue, difference: bool) -> int:
    """The replica whose elements are shown unless somebody says which."""
    bad = [
        each.replica
        for each in found.replicas
        if isinstance(each.summary, Summary) and each.summary.first_bad >= 0
    ]
    if bad and not difference:
        return bad[0]
    if found.agreement is not None and found.agreement.first_replica > 0:
        return found.agreement.first_replica
    return found.replicas[min(int(difference), len(found.replicas) - 1)].replica


class _Found:
    """Facts about leaves, asked of each group of replicas at once."""

    def __init__(self, leaves: list[Any]) -> None:
        self._groups: dict[int, Group] = {}
        self._places: dict[int, tuple[Group, Handle | str]] = {}
        for leaf in leaves:
            if (place := place_of(leaf)) is not None:
                self._places[id(leaf)] = place
        self._summaries = self._asked(summarise, leaves)
        self._written = self._asked(assigned, [leaf for leaf in leaves if self._is_stored(leaf)])
        self._now_ns = time.monotonic_ns()
        unequal = [leaf for leaf in leaves if _should_agree(leaf) and not self._equal(leaf)]
        self._differences = self._asked(differences, [leaf for leaf in unequal if self._all_arrays(leaf)])

    def replicas(self, leaf: Any) -> tuple[ReplicaSummary, ...]:
        """The leaf's components."""
        if id(leaf) not in self._places:
            return _here(leaf)
        group, _ = self._places[id(leaf)]
        if (central := central_device(leaf)) is not None:  # every replica reads the same one
            return (self._replica(leaf, 0, -1, central),)
        ranks = [leaf.rank] if isinstance(leaf, VariableComponent) else range(group.size)
        return tuple(self._replica(leaf, rank, rank, group.devices[rank]) for rank in ranks)

    def _replica(self, leaf: Any, rank: int, shown: int, device: Device) -> ReplicaSummary:
        group, what = self._places[id(leaf)]
        summary = self._summaries[id(leaf)][rank]
        bad = "" if isinstance(summary, str) else "NaN" if summary.nan else "Inf" if summary.inf else ""
        if isinstance(what, str):
            *fields, now_ns = self._written[id(leaf)][rank].tolist()
            written = Written(*fields)
            age = (now_ns - written.at_ns) / 1e9 if written.times else None
            since = variable_since(group, (what, "finite", rank), not bad, [written])
        else:
            ended_ns = what.step.ended_ns
            age = (self._now_ns - ended_ns) / 1e9 if ended_ns else None
            since = result_since(what, rank) if bad else UNKNOWN
        note = " ".join(part for part in (bad, since.text) if part)
        if not isinstance(summary, str) and summary.shape and summary.first_bad >= 0:
            place = np.unravel_index(summary.first_bad, summary.shape)
            note += f", at [{','.join(map(str, map(int, place)))}]"
        return ReplicaSummary(shown, device.host, device.short.lower(), summary, age, note, since.step)

    def hints(self, leaf: Any) -> tuple[str, ...]:
        """Why a result is not finite, where its step tells."""
        if id(leaf) not in self._places or isinstance(handle := self._places[id(leaf)][1], str):
            return ()
        empty = [
            rank
            for rank, summary in enumerate(self._summaries[id(leaf)])
            if isinstance(summary, Summary) and summary.nan and empty_input(handle, rank)
        ]
        return (EMPTY_BATCH.format(who=_replicas(empty)),) if empty else ()

    def _is_stored(self, leaf: Any) -> bool:
        return id(leaf) in self._places and isinstance(self._places[id(leaf)][1], str)

    def agreement(self, leaf: Any) -> Agreement | None:
        """How the components compare, for leaves whose components should be equal."""
        if not _should_agree(leaf) or id(leaf) not in self._places or not self._all_arrays(leaf):
            return None
        summaries = self._summaries[id(leaf)]
        first = summaries[0]
        since = self._parted(leaf)
        if self._equal(leaf):
            return Agreement(True, first.sha256, 0.0, -1)
        gaps = self._differences[id(leaf)]
        worst = math.nan if any(math.isnan(gap) for gap in gaps) else max(gaps)
        other = next(rank for rank, summary in enumerate(summaries) if not _same(summary, first))
        return Agreement(False, first.sha256, worst, other, since)

    def _parted(self, leaf: Any) -> str:
        """When the components of a leaf ceased to be equal; "" if they are."""
        group, what = self._places[id(leaf)]
        if isinstance(what, str):
            written = [Written(*each[:-1].tolist()) for each in self._written[id(leaf)]]
            return variable_since(group, (what, "in sync"), self._equal(leaf), written).text
        return f"at step {what.step.number}" if what.step.number >= 0 else ""

    def _equal(self, leaf: Any) -> bool:
        summaries = self._summaries.get(id(leaf), [])
        return all(_same(summary, summaries[0]) for summary in summaries[1:])

    def _all_arrays(self, leaf: Any) -> bool:
        return all(isinstance(summary, Summary) for summary in self._summaries.get(id(leaf), []))

    def _asked(self, program: Callable[..., Any], leaves: list[Any]) -> dict[int, list[Any]]:
        """Runs a program of `summaries` for leaves on replicas; by id, one answer per replica."""
        placed = {id(leaf): self._places[id(leaf)] for leaf in leaves if id(leaf) in self._places}
        answers: dict[int, list[Any]] = {}
        for group in {id(group): group for group, _ in placed.values()}.values():
            stored = [
                key for key, (owner, what) in placed.items() if owner is group and isinstance(what, str)
            ]
            passed = [
                key for key, (owner, what) in placed.items() if owner is group and not isinstance(what, str)
            ]
            arguments = ([placed[key][1] for key in passed], [placed[key][1] for key in stored])
            # Comparing takes collectives, and those belong to a numbered step.
            counted = differences if program is differences else None
            results = group.run(group.prepare(program, user_function=counted), arguments)
            answers.update(zip([*passed, *stored], (result.values() for result in results), strict=True))
        return answers


def _here(leaf: Any) -> tuple[ReplicaSummary, ...]:
    """A leaf whose components, or only value, are in the notebook."""
    if isinstance(leaf, PerReplica | Mirrored):
        return tuple(ReplicaSummary(rank, "", "", described(part)) for rank, part in enumerate(leaf.values))
    return (ReplicaSummary(-1, "", "", described(leaf)),)


def _kind(leaf: Any) -> str:
    return leaf.kind if isinstance(leaf, Variable) else type(leaf).__name__


def _should_agree(leaf: Any) -> bool:
    if isinstance(leaf, Variable):
        return leaf.kind == "MirroredVariable"
    return isinstance(leaf, Mirrored)


def _replicas(ranks: list[int]) -> str:
    return f"replica{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"


def _same(one: Summary | str, other: Summary | str) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return False
    return (one.sha256, one.shape, one.dtype) == (other.sha256, other.shape, other.dtype)


def _is_distributed(value: Any) -> bool:
    return isinstance(value, DistributedValues | VariableComponent)


def name_in(frame: FrameType, value: Any) -> str:
    """What the code of a frame calls the value, or ""."""
    return name_among(value, frame.f_locals) or name_among(value, frame.f_globals)


def name_among(value: Any, variables: Mapping[str, Any]) -> str:
    """What these variables call the value, or ""."""
    return next(
        (name for name, held in list(variables.items()) if held is value and not name.startswith("_")), ""
    )
