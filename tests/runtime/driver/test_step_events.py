"""What the driver notices beside the collectives: in the feed, and for listeners."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest

from tests.runtime.conftest import runner
from workbench import runtime
from workbench.communicators import Reduction
from workbench.errors import CollectiveMismatch, ReplicaLost
from workbench.runtime import Cluster
from workbench.runtime.comm.messages import FETCH, OUTPUT, REPLY
from workbench.runtime.replica.env import ReplicaEnv
from workbench.telemetry.events import Event


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with runtime.connect(replicas=2) as cluster:
        yield cluster


def test_lines_that_replicas_print_are_in_the_feed(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    def speak(env: ReplicaEnv) -> None:
        if env.rank == 1:
            print("<b>hello</b>")

    runner(cluster.group(cluster.devices, label="speakers"))(speak)

    (event,) = cluster.feed.snapshot().events
    assert (event.kind, event.name, event.replica, event.host) == ("log", "stdout", 1, "a")
    assert event.message == "<b>hello</b>"
    assert "[replica 1] <b>hello</b>" in capsys.readouterr().out


def test_replicas_that_are_not_together_are_an_alert_that_names_one_and_the_step(cluster: Cluster) -> None:
    run = runner(cluster.group(cluster.devices, label="unlike"))

    def differ(env: ReplicaEnv) -> None:
        shape = (2 + env.rank,)
        env.communicator.all_reduce([np.ones(shape)], Reduction("sum", site="train.py:3"))

    with pytest.raises(CollectiveMismatch):
        run(differ)
    with pytest.raises(ZeroDivisionError):
        run(lambda env: 1 / 0)  # it shows in the cell that ran it

    event, *failed = sorted(cluster.feed.snapshot().events, key=lambda event: event.kind)
    assert [one.message.partition(": ")[2].partition(" at ")[0] for one in failed] == [
        "step 0 failed on replica 0: CollectiveMismatch",
        "step 1 failed on replica 0: ZeroDivisionError",
    ]
    assert (event.kind, event.name, event.severity, event.step) == ("alert", "mismatch", "error", 0)
    assert event.message.startswith("unlike: ")
    assert "all_reduce" in event.message


def test_a_lost_replica_is_an_alert_that_names_it(cluster: Cluster) -> None:
    heard: list[Event] = []
    cluster.event_listeners.append(heard.append)
    run = runner(cluster.group(cluster.devices, label="victims"))

    def end(env: ReplicaEnv) -> None:
        if env.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(ReplicaLost):
        run(end)

    (event,) = [event for event in cluster.feed.snapshot().events if event.kind == "alert"]
    assert (event.name, event.severity, event.replica, event.step) == ("replica_lost", "error", 1, 0)
    assert "victims: worker 1" in event.message
    assert "SIGKILL" in event.message
    assert [one.message for one in heard if one.kind == "alert"] == [event.message]


def test_strategies_on_the_same_worker_are_told_of_its_loss_in_one_alert(cluster: Cluster) -> None:
    groups = [cluster.group(cluster.devices, label=label) for label in ("old", "first", "second")]
    # As if its strategy had been garbage-collected while steps were in progress.
    cluster.gang.abandoned.append(groups[0])

    def end(env: ReplicaEnv) -> None:
        if env.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(ReplicaLost):
        runner(groups[1])(end)

    (event,) = [event for event in cluster.feed.snapshot().events if event.kind == "alert"]
    assert (event.name, event.replica) == ("replica_lost", 1)
    assert event.message.startswith("first, second: worker 1")


def test_a_strategy_that_was_rebuilt_has_an_alert_of_its_own(cluster: Cluster) -> None:
    first, second = (cluster.group(cluster.devices, label=label) for label in ("first", "second"))

    def end(env: ReplicaEnv) -> None:
        if env.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    runner(first)(lambda env: None)
    for _ in range(2):
        with pytest.raises(ReplicaLost):
            runner(first)(end)
        runner(first)(lambda env: None)  # the other one is rebuilt only on use
    assert (first.generation, second.generation) == (2, 0)

    lost = [event for event in cluster.feed.snapshot().events if event.name == "replica_lost"]
    assert [(event.generation, event.group, event.message.partition(":")[0]) for event in lost] == [
        (0, "", "first, second"),
        (0, second.name, "second"),
        (1, first.name, "first"),
    ]


def test_an_error_of_who_listens_loses_no_message(cluster: Cluster) -> None:
    def fails(event: Event) -> None:
        raise ValueError("not ready to listen")

    gang = cluster.gang
    request = gang.requests.ask(gang.workers["0"], FETCH, 0, [])
    arrived = [(OUTPUT, 0, "stdout", "a line"), (REPLY, request, True, pickle.dumps("the answer"))]
    worker = SimpleNamespace(name="0", host="a", steps=SimpleNamespace(receive=lambda: arrived))
    cluster.event_listeners.append(fails)
    try:
        with pytest.raises(ValueError, match="not ready to listen"):
            gang._receive_from(worker)  # type: ignore[arg-type]
    finally:
        cluster.event_listeners.remove(fails)

    assert gang.requests.answer(gang.workers["0"], request, 10.0) == "the answer"
