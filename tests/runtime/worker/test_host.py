"""The worker's side of a gang, by itself."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from workbench.communicators import Bootstrap, Communicator
from workbench.communicators.core.options import CommunicationOptions
from workbench.device_names import Device
from workbench.errors import StaleGeneration
from workbench.runtime.comm.links import MemoryLink
from workbench.runtime.comm.messages import CONNECT, DONE, JOIN, REPLY, RUN, JoinGroup, Message, Run
from workbench.runtime.worker.host import ReplicaHost


def _connect(host: ReplicaHost, *, device_count: int) -> None:
    host.start()
    devices = tuple(Device("CPU", index, host="h", worker="w", task=0) for index in range(device_count))
    local = {index: index for index in range(device_count)}
    join = JoinGroup(1, 0, 1, devices=devices, local=local, run_id="r", name="Test/1")
    host.handle((JOIN, 1, join))
    host.handle((CONNECT, 2, 1, {"w": host.groups[1].bootstrap.address}))


def _run(serial: int, function: Any) -> Message:
    return (RUN, *Run(serial, 1, 1, serial, function, None, None, [], 0, nested=False))


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
    _connect(host, device_count=2)

    assert len(made) == 2
    for communicator in made:
        with pytest.raises(StaleGeneration, match="closed"):
            communicator.barrier(options=CommunicationOptions(timeout_seconds=5))
    assert not host.groups


def test_the_driver_does_not_hear_of_steps_that_closing_cuts_short(monkeypatch: pytest.MonkeyPatch) -> None:
    link, driver = MemoryLink.pair()
    host = ReplicaHost(link, device_count=1, host="h", worker="w")
    _connect(host, device_count=1)
    running, may_end, ended = threading.Event(), threading.Event(), threading.Semaphore(0)

    def runs(env: Any) -> None:
        running.set()
        assert may_end.wait(60)

    def report(*args: Any) -> None:
        reported(*args)
        ended.release()

    def abort(*args: Any) -> None:
        aborted(*args)
        may_end.set()
        assert ended.acquire(timeout=60)  # of the running step
        assert ended.acquire(timeout=60)  # of the skipped step, because this came first

    reported, aborted = host.tallies.ended, host.abort
    monkeypatch.setattr(host.tallies, "ended", report)
    monkeypatch.setattr(host, "abort", abort)
    host.dispatch(_run(1, runs))
    host.dispatch(_run(2, runs))
    assert running.wait(60)
    host.close()

    kinds = [message[0] for message in driver.receive()]
    assert kinds.count(REPLY) == 2
    assert DONE not in kinds
