"""Reports to a cluster's log whether compared copies agree: after changes, and occasionally."""

from __future__ import annotations

import re
import time
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from workbench.runtime.placement_text import counted
from workbench.telemetry.events import Event
from workbench.telemetry.formatting import significant
from workbench.ui.inspect.replica_places import place_of

if TYPE_CHECKING:
    from workbench.runtime.driver.group import Group
    from workbench.ui.models.inspected import Agreement, InspectedValue

_AGAIN_SECONDS: Final = 60.0


@dataclass(slots=True)
class _Known:
    """What was reported about a group in one generation; verdicts use the newest generation's events.

    Attributes:
      generation: The number of the generation.
      differing: The names of values whose copies differ.
      agreed: When agreement was last reported.
      agreed_after: The last step before that report; -1 before the first.
      agreed_all: Whether that report covered all variables.
    """

    generation: int
    differing: set[str] = field(default_factory=set)
    agreed: float = float("-inf")
    agreed_after: int = -1
    agreed_all: bool = False

    def is_news(self, now: float, *, step: int, of_all: bool) -> bool:
        """Whether to report agreement: occasionally, and as soon as it covers a new step or all variables.

        Args:
          now: The time, as `time.monotonic`.
          step: The last step.
          of_all: Whether the copies of all variables were compared.
        """
        more = self.agreed_after < 0 <= step or (of_all and not self.agreed_all)
        return more or now - self.agreed >= _AGAIN_SECONDS


_known: weakref.WeakKeyDictionary[Group, _Known] = weakref.WeakKeyDictionary()


def tell_copies(looked_at: Iterable[tuple[Any, InspectedValue]]) -> None:
    """Adds an alert for copies that differ, and a line for those that agree; `verdicts.numbers` reads these texts.

    Args:
      looked_at: Values, and the facts about each.
    """
    compared: dict[Group, list[InspectedValue]] = {}
    variables: dict[Group, set[str]] = {}
    for leaf, found in looked_at:
        place = place_of(leaf)
        if place is not None and found.agreement is not None:
            compared.setdefault(place[0], []).append(found)
            if isinstance(place[1], str):
                variables.setdefault(place[0], set()).add(place[1])
    for group, values in compared.items():
        known = _known.get(group)
        if known is None or known.generation != group.generation:
            known = _known[group] = _Known(group.generation)
        for value in values:
            assert value.agreement is not None
            name = value.name or value.kind
            if not value.agreement.in_sync and name not in known.differing:
                known.differing.add(name)
                group.gang.notify(_differ(group, name, value.agreement))
            elif value.agreement.in_sync and name in known.differing:
                known.differing.remove(name)
                group.gang.notify(_agree(group, f"copies of {name}"))
        now, step = time.monotonic(), group.committed_step
        of_all = len(variables.get(group, ())) >= max(1, len(group.kept_names()))
        if not known.differing and known.is_news(now, step=step, of_all=of_all):
            known.agreed, known.agreed_after, known.agreed_all = now, step, of_all
            names = (values[0].name or values[0].kind) if len(values) == 1 else counted(len(values), "value")
            group.gang.notify(_agree(group, "all copies" if of_all else f"copies of {names}"))


def _differ(group: Group, name: str, agreement: Agreement) -> Event:
    since = f" {agreement.since}" if agreement.since else ""
    at = re.fullmatch(r"at step (\d+)", agreement.since)
    if at:
        since = f" since step {at[1]}"
    return Event(
        "alert",
        "copies_differ",
        f"copies of {name} differ: replica {agreement.first_replica}{since}; "
        f"largest difference {significant(agreement.max_abs_difference)}",
        time.monotonic_ns(),
        severity="error",
        replica=agreement.first_replica,
        host=group.devices[agreement.first_replica].host,
        step=int(at[1]) if at else -1,
        generation=group.generation,
        group=group.name,
    )


def _agree(group: Group, what: str) -> Event:
    return Event(
        "lifecycle",
        "copies_agree",
        f"{what} agree",
        time.monotonic_ns(),
        step=group.committed_step,
        generation=group.generation,
        group=group.name,
    )
