"""Log lines about the placement of objects on devices, enabled by `set_log_device_placement`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from workbench import tree
from workbench.backends.users_line import users_line
from workbench.debugging.device_placement import get_log_device_placement, times_set
from workbench.runtime.user_code.call_sites import users_call_site
from workbench.telemetry.events import Event

if TYPE_CHECKING:
    from workbench.device_names import Device
    from workbench.distribute.described_strategy import DescribedStrategy
    from workbench.runtime.driver.group import Group

_told: set[tuple[Any, ...]] = set()
_MOST_TOLD = 4096


def places(devices: Sequence[Device]) -> str:
    """Devices by host, such as "CPU:0, CPU:1 of host a, CPU:0 of host b"; without hosts if there is one."""
    if len({device.host for device in devices}) == 1:
        return ", ".join(device.short for device in devices)
    by_host = groupby(devices, key=lambda device: device.host)
    return "; ".join(f"{', '.join(device.short for device in own)} of host {host}" for host, own in by_host)


def log_placement(strategy: DescribedStrategy, text: Callable[[], str]) -> None:
    """Writes a line to the log of the strategy's cluster, if placements are logged.

    Args:
      strategy: The strategy of the devices; nothing is written for the default strategy.
      text: Makes the line.
    """
    if not get_log_device_placement() or strategy.is_default or strategy.stands_for_another:
        return
    event = Event(
        "lifecycle",
        "placement",
        f"{type(strategy).__name__}: {text()}",
        time.monotonic_ns(),
        site=users_call_site(),
    )
    strategy.gang.notify(event)


def log_function(strategy: DescribedStrategy, fn: Callable[..., Any], arguments: Any) -> None:
    """Logs which devices run a function and where its arguments are, once per function and devices.

    Args:
      strategy: The strategy that runs it.
      fn: The user's function.
      arguments: The structure of its arguments.
    """
    code = getattr(fn, "__code__", None)
    where = (code.co_filename, code.co_firstlineno) if code is not None else (users_line(),)
    key = (times_set(), strategy.description.id, *where, strategy.devices)
    if key in _told:
        return
    if len(_told) >= _MOST_TOLD:
        _told.clear()
    _told.add(key)
    name = getattr(fn, "__qualname__", type(fn).__name__).rpartition("<locals>.")[2]
    given = _given(arguments, strategy.group)
    log_placement(strategy, lambda: f"{name} runs on {places(strategy.devices)}{given}")


def _given(arguments: Any, group: Group) -> str:
    leaves = [
        leaf for leaf in tree.flatten(arguments)[0] if hasattr(leaf, "handle") or hasattr(leaf, "shape")
    ]
    if not leaves:
        return ""
    there = sum(getattr(getattr(leaf, "handle", None), "group", None) is group for leaf in leaves)
    parts = [f"{there} already there" if there else "", f"{len(leaves) - there} from the notebook"]
    if there == len(leaves):
        parts[1] = ""
    return f"; of {len(leaves)} arrays that it is given, {' and '.join(part for part in parts if part)}"
