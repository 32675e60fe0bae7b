"""Clusters of many replicas as text: what stands out comes first, and the rest is summed up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from workbench.ui.cluster.tables import devices_table, topology_table
from workbench.ui.models.cluster import (
    DeviceNode,
    Devices,
    DeviceUse,
    HostNode,
    ReplicaNode,
    StrategyNode,
    Topology,
    WorkerNode,
)

MIB = 1 << 20


def topology(replicas: int, *, lost: int | None = None, late: int | None = None, idle: int = 0) -> Topology:
    """A worker for each replica, of which one may be lost and another one late; the last `idle` do nothing."""

    def worker(at: int) -> WorkerNode:
        busy = at < replicas - idle and at != lost
        doing = "lost" if at == lost else "step 3" if busy else "idle"
        node = ReplicaNode("MirroredStrategy", at, busy, doing, "late" * (at == late))
        state, why = ("lost", "killed by SIGKILL") if at == lost else ("live", "")
        device = DeviceNode(f"cpu:{at}", "CPU", (node,))
        return WorkerNode(str(at), 1000 + at, state, why, 64 * MIB, 0.1, (device,))

    host = HostNode("a", tuple(worker(at) for at in range(replicas)))
    return Topology("r", "live", (host,), (StrategyNode("MirroredStrategy", replicas, "live", "", 1, 3),))


def devices(count: int) -> Devices:
    """Devices that are about as busy as each other, and use about as much memory."""
    return Devices(
        "r",
        "live",
        tuple(
            DeviceUse(
                *(str(at), "a", f"worker {at}", "CPU", "live", 70.0 + at % 4, (200 + at % 8) * MIB),
                *(1024 * MIB, ()),
            )
            for at in range(count)
        ),
    )


def test_of_many_replicas_the_lost_and_the_late_ones_come_first() -> None:
    rows = topology_table(topology(64, lost=50, late=40)).rows
    assert [(row[3], row[5], row[8]) for row in rows[:2]] == [
        ("live", "cpu:40", "late · step 3"),
        ("lost", "cpu:50", "lost"),
    ]
    assert [row[5] for row in rows[2:4]] == ["cpu:0", "cpu:1"]
    assert len(rows) == 33


def test_the_replicas_that_have_no_row_are_counted_by_what_they_do() -> None:
    rows = topology_table(topology(64, idle=5)).rows
    assert rows[-1][0] == "… 32 more"
    assert rows[-1][-1] == "27 busy, 5 idle"


def test_few_replicas_keep_their_order() -> None:
    rows = topology_table(topology(32, lost=20)).rows
    assert [row[5] for row in rows] == [f"cpu:{at}" for at in range(32)]


def test_of_many_devices_those_that_are_far_from_the_others_come_first() -> None:
    model = devices(64)
    odd: dict[int, dict[str, Any]] = {
        40: {"use_percent": 1.5},
        50: {"memory_bytes": 1000 * MIB},
        60: {"status": "lost"},
    }
    model = replace(
        model, devices=tuple(replace(use, **odd.get(at, {})) for at, use in enumerate(model.devices))
    )
    rows = devices_table(model).rows
    assert [row[1] for row in rows[:4]] == ["worker 40", "worker 50", "worker 60", "worker 0"]
    assert rows[-1][0] == "… 32 more"
    assert rows[-1][4] == "70\u202f% to 73\u202f%"
    assert rows[-1][5] == "200 MiB to 207 MiB"


def test_devices_without_figures_are_neither_far_nor_summed_up() -> None:
    model = devices(64)
    none: dict[str, Any] = {"use_percent": None, "memory_bytes": None, "memory_limit_bytes": None}
    model = replace(model, devices=tuple(replace(use, **none) for use in model.devices))
    rows = devices_table(model).rows
    assert [row[1] for row in rows[:-1]] == [f"worker {at}" for at in range(32)]
    assert rows[-1] == ["… 32 more", "", "", "", "–", "–", "–"]
