"""The difference between two snapshots: all that a view with the older one needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from workbench.telemetry.snapshot import EventItem, LaneItem, Snapshot, TableRow


def delta(snapshot: Snapshot, since: int) -> dict[str, Any]:
    """What a view with version `since` needs to reach `snapshot`; `merge` applies it.

    For keyed lists, it holds all keys in order (which shows what was removed), but only the items that changed.
    """
    groups = []
    for group in snapshot.groups:
        part = asdict(replace(group, items=()))
        groups.append(part | {"items": _keyed(group.items, since)})
    return {
        "version": snapshot.version,
        "counters": asdict(snapshot.counters),
        "table": _keyed(snapshot.table, since),
        "internal": _keyed(snapshot.internal, since),
        "groups": groups,
        "events": _keyed(snapshot.events, since),
    }


def merge(state: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """`Snapshot.as_dict` of the newer version, from that of the older one and the `delta` between them.

    This is what a view in another language must do, in six lines.
    """
    before = {(group["run_id"], group["group"]): group["items"] for group in state["groups"]}
    groups = tuple(
        group | {"items": _merged(before.get((group["run_id"], group["group"]), ()), group["items"])}
        for group in change["groups"]
    )
    keyed = {part: _merged(state[part], change[part]) for part in ("table", "internal", "events")}
    return {"version": change["version"], "counters": change["counters"], "groups": groups} | keyed


def _keyed(items: Sequence[TableRow | LaneItem | EventItem], since: int) -> dict[str, Any]:
    return {
        "keys": [item.key for item in items],
        "changed": [_flat(item) for item in items if item.version > since],
    }


def _flat(item: TableRow | LaneItem | EventItem) -> dict[str, Any]:
    """As `asdict`, which is slow, for dataclasses that contain no others."""
    return {name: getattr(item, name) for name in item.__dataclass_fields__}


def _merged(items: tuple[dict[str, Any], ...], change: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    known = {item["key"]: item for item in (*items, *change["changed"])}
    return tuple(known[key] for key in change["keys"])
