"""The worker's side of a gang, by itself."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.communicators import Bootstrap, Communicator
from workbench.communicators.core.options import CommunicationOptions
from workbench.device_names import Device
from workbench.errors import StaleGeneration
from workbench.runtime.comm.links import MemoryLink
from workbench.runtime.comm.messages import CONNECT, JOIN, JoinGroup
from workbench.runtime.worker.host import ReplicaHost


def test_replicas_that_are_connected_as_the_driver_goes_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Communicator] = []
    connect = Bootstrap.connect

    def as_the_driver_goes(self: Bootstrap, *args: Any) -> dict[int, Communicator]:
        communicators = connect(self, *args)
        made.extend(communicators.values())
        host.close()  # as the signals thread does
        return communicators

    monkeypatch.setattr(Bootstrap, "connect", as_the_driver_goes)
    host = ReplicaHost(MemoryLink.pair()[0], device_count=2, host="h", worker="w")
    host.start()
    devices = tuple(Device("CPU", index, host="h", worker="w", task=0) for index in range(2))
    join = JoinGroup(1, 0, 1, devices=devices, local={0: 0, 1: 1}, run_id="r", name="Test/1")
    host.handle((JOIN, 1, join))
    address = host.groups[1].bootstrap.address
    host.handle((CONNECT, 2, 1, {"w": address}))

    assert len(made) == 2
    for communicator in made:
        with pytest.raises(StaleGeneration, match="closed"):
            communicator.barrier(options=CommunicationOptions(timeout_seconds=5))
    assert not host.groups
