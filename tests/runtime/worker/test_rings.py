"""The telemetry rings of a worker."""

from __future__ import annotations

import gc

from workbench.device_names import Device
from workbench.runtime.comm.messages import JoinGroup
from workbench.runtime.worker.rings import Rings


def test_groups_may_end_while_rings_are_drained() -> None:
    """Their strategies may be garbage, which Python up to 3.11 collects whenever it makes objects.

    Later ones collect it between instructions alone: there, this passes whatever the rings do.
    """
    rings = Rings(outlive=False)
    joins = [_join(number) for number in range(64)]
    for join in joins:
        rings.of_replicas(join)
    ending = iter(joins[:32])

    def collected(phase: str, info: dict[str, int]) -> None:
        if (join := next(ending, None)) is not None:
            rings.retire(join)

    before = gc.get_threshold()
    gc.callbacks.append(collected)
    gc.set_threshold(4)
    try:
        opened = [group for group, _, _ in rings.open()]
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(collected)

    assert set(range(32, 64)) <= set(opened)


def _join(group: int) -> JoinGroup:
    device = Device("CPU", 0, host="h", worker="w", task=0)
    return JoinGroup(group, 0, 1, devices=(device,), local={0: 0}, run_id="r", name="Test/1")
