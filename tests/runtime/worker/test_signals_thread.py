"""What the side thread of a worker tells while groups end."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from workbench.device_names import Device
from workbench.runtime.comm.links import MemoryLink
from workbench.runtime.comm.messages import CONNECT, JOIN, LEAVE, ROLLBACK, JoinGroup
from workbench.runtime.worker.host import ReplicaHost
from workbench.runtime.worker.signals_thread import SignalsThread


@pytest.mark.parametrize("ask", ["_statuses", "_dump", "_places"])
def test_groups_may_end_while_the_driver_is_told_of_them(ask: str) -> None:
    """Their strategies may be garbage; see `test_rings.py`: only Python 3.11 can fail here."""
    host = _host(groups=64)
    signals = SignalsThread(MemoryLink.pair()[0], host, lambda _: None)
    ending = iter(range(32))

    def collected(phase: str, info: dict[str, int]) -> None:
        if (group := next(ending, None)) is not None:
            host.handle((LEAVE, group))

    before = gc.get_threshold()
    gc.callbacks.append(collected)
    gc.set_threshold(4)
    try:
        found = getattr(signals, ask)()
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(collected)

    if ask == "_statuses":
        assert {status.group for status in found} >= set(range(32, 64))
    host.close()


def test_a_group_may_end_while_another_one_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    host = _host(groups=3)
    undone: list[tuple[int, int]] = []

    class Store:
        def __init__(self, group: int) -> None:
            self._group = group

        def rollback(self, serial: int) -> None:
            undone.append((self._group, serial))
            host.handle((LEAVE, 2))

        def end(self) -> None:
            undone.append((self._group, -1))

    stores: dict[tuple[int, int], Any] = {(group, 0): Store(group) for group in range(3)}
    monkeypatch.setattr(host, "stores", stores)
    host.handle((ROLLBACK, 1, 5))
    assert undone == [(1, 5), (2, -1)]
    host.close()


def _host(groups: int) -> ReplicaHost:
    host = ReplicaHost(MemoryLink.pair()[0], device_count=1, host="h", worker="w")
    host.start()
    for group in range(groups):
        device = Device("CPU", 0, host="h", worker="w", task=0)
        join = JoinGroup(group, 0, 1, devices=(device,), local={0: 0}, run_id="r", name="Test/1")
        host.handle((JOIN, 1, join))
        host.handle((CONNECT, 2, group, {"w": host.groups[group].bootstrap.address}))
    return host
