"""Which replicas hold values, and how they refer to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.distribute.servers.on_servers import OnServers
from workbench.distribute.values.distributed_values import DistributedValues
from workbench.distribute.variables.component import VariableComponent
from workbench.distribute.variables.variable import Variable
from workbench.runtime.driver.group import Group, group_of

if TYPE_CHECKING:
    from workbench.device_names import Device
    from workbench.runtime.driver.handle import Handle


def place_of(leaf: Any) -> tuple[Group, Handle | str] | None:
    """The replicas that hold a leaf, and how they refer to it; None if no replica holds it."""
    if isinstance(leaf, VariableComponent):
        leaf = leaf.variable
    if isinstance(leaf, Variable):
        if leaf.strategy is None or isinstance(leaf.placement, OnServers):
            return None
        return leaf.strategy.group, leaf.description.key
    if isinstance(leaf, DistributedValues) and leaf.handle is not None:
        handle = leaf.handle
        # The number of replicas has changed since it was created, so no program can examine it where it is.
        return (group_of(handle), handle) if handle.places is handle.group.places else None
    return None


def server_of(leaf: Any) -> tuple[str, str]:
    """Host and name of the parameter server that holds a variable, ("", "") for everything else."""
    if not isinstance(leaf, Variable) or not isinstance(leaf.placement, OnServers):
        return "", ""
    strategy: Any = leaf.strategy  # on parameter servers, according to the placement
    server = strategy.hosting.servers[leaf.description.server]
    return server.device.host, server.name


def central_device(leaf: Any) -> Device | None:
    """The one device that a variable of central storage is on; None for everything else."""
    owner = leaf.variable if isinstance(leaf, VariableComponent) else leaf
    strategy = owner.strategy if isinstance(owner, Variable) else None
    return None if strategy is None else strategy.description.parameter_device
