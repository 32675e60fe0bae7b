"""What a cluster keeps for the notebook, so that a second `connect` does not close it unexpectedly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from workbench.errors import FailedPreconditionError
from workbench.runtime.placement_text import placement

if TYPE_CHECKING:
    from workbench.runtime.cluster import Cluster

_MAX_NAMES: Final = 6


def is_running(cluster: Cluster | None) -> bool:
    """Whether it can still be used: it is not closed, and its scheduler answers."""
    return cluster is not None and not cluster.closed and cluster.client.status == "running"


def check_nothing_is_kept(cluster: Cluster, asked: dict[str, Any]) -> None:
    """Refuses to close a cluster whose strategies are in use.

    Args:
      cluster: A running cluster.
      asked: The arguments of the `connect` that would close it.

    Raises:
      FailedPreconditionError: if strategies use it; names them, their variables, and what to write instead.
    """
    strategies = [
        f"{group.label}{_with_variables(group.kept_names())}"
        for group in cluster.gang.groups.values()
        if group not in cluster.gang.abandoned
    ]
    if not strategies:
        return
    arguments = ", ".join(f"{name}={value!r}" for name, value in asked.items() if name != "address")
    address = [f"{asked['address']!r}"] if "address" in asked else []
    call = ", ".join([*address, *([arguments] if arguments else []), "replace=True"])
    raise FailedPreconditionError(
        f"a cluster of {placement(cluster.devices, 'device')} is running; connecting again would close it and "
        f"lose what these strategies keep: {_listed(strategies)}; continue with wb.current_cluster(), or write "
        f"wb.connect({call}) to close it first"
    )


def _with_variables(names: tuple[str, ...]) -> str:
    if not names:
        return ""
    return f" (variable{'s' * (len(names) > 1)} {_listed(names)})"


def _listed(texts: list[str] | tuple[str, ...]) -> str:
    more = len(texts) - _MAX_NAMES
    return ", ".join(texts[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")
