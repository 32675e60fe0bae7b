"""Restores variables after a lost worker was replaced: its replicas get their components again.

Mirrored variables are copied from the lowest surviving replica. (With aggregation NONE, components that differed are
equal afterwards.) A lost component of a sync-on-read variable is gone; its replacement keeps the common value of the
survivors: zero for SUM, a copy from a survivor for MEAN, ONLY_FIRST_REPLICA and NONE. A variable in central storage is
lost only with the last replica, because its memory outlives the process that held it.

If no replica survived, everything returns to the newest checkpoint of `Strategy.restorer`, if there is one.

If a strategy continues without the lost replicas (`minimum_replicas` of `connect`), their components are not replaced:
a SUM lacks what they had added, a MEAN is that of the others.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from workbench.backends.users_line import warn
from workbench.distribute.variables.aggregation import VariableSynchronization
from workbench.errors import DataCorruption, InvalidArgumentError, ReplicaLost
from workbench.telemetry.events import Event

if TYPE_CHECKING:
    from workbench.distribute.described_strategy import DescribedStrategy

_NAMED: Final = 4


def reseed_variables(strategy: DescribedStrategy, lost: Sequence[int], survivors: Sequence[int]) -> None:
    """Gives the replicas `lost` their components of all variables of `strategy`.

    Args:
      strategy: The strategy.
      lost: Ranks of the replaced replicas.
      survivors: Ranks of the others.

    Raises:
      ReplicaLost: if no replica survived and no checkpoint has the values. The strategy can then be used again, and the
        variables once values are assigned to them.
    """
    variables = strategy.kept.variables
    if not variables:
        return
    if not survivors:
        names = ", ".join(repr(variable.name) for variable in variables[:8])
        strategy.kept.clear()  # reported once; the next step continues without them
        if not _restored(strategy, len(lost), names):
            raise ReplicaLost(
                f"{_all_lost(strategy, len(lost))}, and with them the values of its variables ({names}); assign new "
                f"values (variable.assign) or create the variables again, or have them restored: "
                f"wb.connect(..., checkpoint=manager)"
            )
        return
    placement = strategy.description.placement_of(strategy, VariableSynchronization.ON_WRITE)
    placement.reseed(variables, lost, survivors)


def _restored(strategy: DescribedStrategy, lost: int, names: str) -> bool:
    """Restores everything from a checkpoint because all replicas were lost; returns whether that was possible."""
    restorer = strategy.restorer
    if restorer is None:
        return False
    try:
        path = restorer.restore_lost()
    except (InvalidArgumentError, DataCorruption) as error:
        raise ReplicaLost(
            f"{_all_lost(strategy, lost)}, and with them the values of its variables ({names}); they cannot be "
            f"restored: {error}"
        ) from error
    if path is None:
        return False
    strategy.group.drop_accepted(
        ReplicaLost(f"this step was lost with all replicas, and training went back to {path!r} before it")
    )
    told = (
        f"{_all_lost(strategy, lost)}: everything in the checkpoint {path!r} has the "
        f"value from there again, and training continues. Steps since then do not count"
    )
    strategy.group.gang.notify(Event("alert", "restored", told, time.monotonic_ns(), severity="warning"))
    warn(told, RuntimeWarning)
    return True


def _all_lost(strategy: DescribedStrategy, lost: int) -> str:
    """Text that all replicas were lost, and how, because this may be its first report."""
    ends = [f"worker {name} {end.what}" for name, end in strategy.group.ends.items()]
    more = f"; {len(ends) - _NAMED} more" if len(ends) > _NAMED else ""
    how = f" ({'; '.join(ends[:_NAMED])}{more})" if ends else ""
    return f"all {lost} replicas of {type(strategy).__name__} were lost{how}"
