"""One-line descriptions of clusters and strategies: devices, hosts, transport, status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from workbench.device_names import Device

WIDTH: Final = 88


def counted(number: int, noun: str) -> str:
    """The number with its noun.

    >>> counted(1, "host"), counted(3, "host")
    ('1 host', '3 hosts')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def placement(devices: Sequence[Device], noun: str) -> str:
    """Number, hosts and kinds of devices, such as "4 replicas on 2 hosts (4×cpu)"."""
    kinds = Counter(device.kind.lower() for device in devices)
    hosts = len({device.host for device in devices})
    parts = ", ".join(f"{count}×{kind}" for kind, count in kinds.items())
    return f"{counted(len(devices), noun)} on {counted(hosts, 'host')} ({parts})"


def transport(devices: Sequence[Device]) -> str:
    """The transport between replicas on these devices, such as "shared memory + ring"; "" for a single one."""
    workers = {(device.host, device.worker) for device in devices}
    if devices[0].kind == "GPU" and len(devices) > 1:
        return "NCCL" if len(workers) > 1 else "GPU"
    if devices[0].kind == "TPU" and len(devices) > 1:
        return "compiled"
    hosts = {host for host, _ in workers}
    layers = [
        ("threads", len(devices) > len(workers)),
        ("shared memory", len(workers) > len(hosts)),
        ("ring", len(hosts) > 1),
    ]
    return " + ".join(name for name, used in layers if used)


def one_line(name: str, *parts: str) -> str:
    """The parts that fit into one line: it omits the middle ones first, and never the last one (the status).

    >>> one_line("Cluster", "2 devices on 1 host (2×cpu)", "embedded", "live")
    '<Cluster: 2 devices on 1 host (2×cpu), embedded, live>'
    """
    kept = [part for part in parts if part]
    while len(kept) > 2 and len(name) + len(", ".join(kept)) + 4 > WIDTH:
        del kept[-2]
    return f"<{name}: {', '.join(kept)}>"
