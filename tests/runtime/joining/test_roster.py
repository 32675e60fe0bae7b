"""Which task a process is, who leads, and at which addresses tasks reach each other."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from workbench.distribute import ClusterSpec
from workbench.errors import InvalidArgumentError, UnavailableError
from workbench.runtime.deploy.tasks import Task
from workbench.runtime.joining import addresses
from workbench.runtime.joining.roster import Roster, scheduler_of

CLUSTER = ClusterSpec(
    {"worker": ["127.0.0.1:1", "127.0.0.1:2"], "ps": ["127.0.0.2:3"], "chief": ["127.0.0.3:4"]}
)


def test_the_chief_leads() -> None:
    roster = Roster.of(CLUSTER, Task("worker", 1))
    assert (roster.chief, roster.address, roster.leads) == (Task("chief", 0), "127.0.0.3:4", False)
    assert roster.neighbours == 2
    assert roster.peers == ("127.0.0.1", "127.0.0.2", "127.0.0.3")
    assert Roster.of(CLUSTER, Task("chief", 0)).leads
    assert scheduler_of(CLUSTER) == "tls://127.0.0.3:4"


def test_worker_0_leads_where_there_is_no_chief() -> None:
    spec = ClusterSpec({"ps": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"]})
    assert Roster.of(spec, Task("worker", 0)).leads
    assert scheduler_of(spec) == "tls://127.0.0.1:2"


def test_an_evaluator_joins_from_outside_of_the_cluster() -> None:
    assert not Roster.of(CLUSTER, Task("evaluator", 0)).leads


@pytest.mark.parametrize(
    ("spec", "task", "message"),
    [
        (CLUSTER, Task("worker", 2), r"this task is worker-2, and the cluster has worker-0, worker-1, ps-0"),
        (ClusterSpec({"ps": ["127.0.0.1:1"]}), Task("ps", 0), "has none that leads"),
        (ClusterSpec({"worker": ["nowhere"]}), Task("worker", 0), "'nowhere' is not an address of a task"),
    ],
)
def test_a_task_that_cannot_join_is_told_why(spec: ClusterSpec, task: Task, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        Roster.of(spec, task)


def test_addresses_of_both_versions() -> None:
    assert addresses.host_and_port("[::1]:80") == ("::1", 80)
    assert addresses.text_of("::1", 80) == "[::1]:80"
    assert addresses.host_and_port("node-1:8888") == ("node-1", 8888)
    for wrong in ("node", ":80", "node:", "node:99999", "node:x"):
        with pytest.raises(InvalidArgumentError, match="not an address of a task"):
            addresses.host_and_port(wrong)


def test_a_host_whose_name_means_loopback_is_reached_at_its_outer_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = {"self": "127.0.1.1", "peer": "10.254.0.2", "127.0.0.1": "127.0.0.1"}

    def resolved(host: str, *_: Any, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (names[host], 0))]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    monkeypatch.setattr(addresses, "ip_towards", {"10.254.0.2": "10.254.0.1"}.__getitem__)
    assert addresses.ip_among("self", ["self", "peer"]) == "10.254.0.1"
    assert addresses.ip_among("self", ["self"]) == "127.0.1.1"
    assert addresses.ip_among("127.0.0.1", ["127.0.0.1", "peer"]) == "127.0.0.1"


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(UnavailableError, match="not an address of this machine"):
        addresses.own_ip("192.0.2.1", [])


def test_a_name_that_means_nothing_is_refused() -> None:
    with pytest.raises(UnavailableError, match=r"there is no host 'nowhere\.invalid'"):
        addresses.ip_of("nowhere.invalid")
