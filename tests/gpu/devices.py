"""Checks of what views say of the GPU."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.gpu.hardware import hardware
from tests.gpu.results import Row, held

_SECONDS = 5.0


def device_use(quick: bool) -> Iterator[Row]:
    """Name, memory and use of the GPU that replicas share, while they compute; what a heartbeat pays for it."""
    import workbench as wb
    from workbench.runtime.process.gpu_use import sample

    name = hardware()["gpus"][0]
    with wb.connect(gpu_replicas=2) as cluster:
        strategy = wb.MirroredStrategy()
        ends, uses = time.monotonic() + _SECONDS, []
        while time.monotonic() < ends:
            strategy.run(busy)
            uses += [use for use in wb.devices(cluster).to_dict()["devices"] if use["kind"] == "GPU"]
        rows, topology = str(wb.devices(cluster)), str(wb.topology(cluster))
    fine = bool(uses) and name in uses[-1]["name"] and uses[-1]["memory_bytes"] > _ARRAY_BYTES
    yield held("the GPU among the devices", fine, rows.splitlines()[-1] if uses else rows)
    if importlib.util.find_spec("pynvml") is None:
        yield Row("the use of the GPU", "skipped", "nvidia-ml-py is not installed")
    else:
        most = max((use["use_percent"] or 0.0 for use in uses), default=0.0)
        yield held("the use of the GPU", most > 10, f"at most {most:.0f} % in {len(uses)} samples", "> 10 %")
        yield held("the GPU in the topology", name in topology, topology.splitlines()[-1])
    began = time.perf_counter()
    for _ in range(20):
        sample([0])
    took = (time.perf_counter() - began) / 20
    yield held("asking for the use of a GPU", took < 0.1, f"{took * 1e3:.2f} ms, once a second", "< 100 ms")


_ARRAY_BYTES = 1 << 30


def busy() -> Any:
    """Half a second of work on an array of a gigabyte."""
    import workbench as wb

    xp: Any = wb.distribute.get_replica_context().xp
    array = xp.ones(_ARRAY_BYTES // 4, np.float32)
    ends = time.monotonic() + 0.5
    while time.monotonic() < ends:
        array *= 1.0
        total = float(array[:10].sum())  # waits
    return total
