"""Variables after a lost worker was replaced: its replicas get their components again.

Mirrored variables are copied from the lowest surviving replica (components that differed, with aggregation NONE, do not
differ there afterwards). Of a sync-on-read variable a lost component is gone; what takes its place keeps the
common value of the survivors: zero for SUM, a copy from a survivor for MEAN, ONLY_FIRST_REPLICA and NONE. A variable in
central storage is lost with no replica but the last: the memory outlives the process that held it.

Where a strategy goes on without the lost replicas (`minimum_replicas` of `connect`) nothing takes the place of their
components: a SUM lacks what they had added, a MEAN is that of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.distribute.variables.aggregation import VariableSynchronization
from workbench.errors import ReplicaLost

if TYPE_CHECKING:
    from workbench.distribute.described_strategy import DescribedStrategy


def reseed_variables(strategy: DescribedStrategy, lost: Sequence[int], survivors: Sequence[int]) -> None:
    """Gives the replicas `lost` components of all variables of `strategy`.

    Raises:
      ReplicaLost: If no replica survived that could give them; the strategy can be used again then, the variables once
        values are assigned to them.
    """
    variables = strategy.kept.variables
    if not variables:
        return
    if not survivors:
        names = ", ".join(repr(variable.name) for variable in variables[:8])
        strategy.kept.clear()  # this is told once; the next step goes on without them
        raise ReplicaLost(
            f"all {len(lost)} replicas of {type(strategy).__name__} were lost, and with them the values of its "
            f"variables ({names}); assign new values (variable.assign) or create the variables again"
        )
    placement = strategy.description.placement_of(strategy, VariableSynchronization.ON_WRITE)
    placement.reseed(variables, lost, survivors)
