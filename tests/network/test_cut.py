"""A strategy over two hosts whose network is cut, for a moment and for longer, and joined again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.network.notebook import Driver
from tests.network.two_hosts import ADDRESSES, TwoHosts, certificates
from tests.own_cluster import ROOT, OwnCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
_AT_ONCE_SECONDS = 2.0


@pytest.fixture
def start(hosts: TwoHosts, tmp_path: Path) -> Iterator[Callable[[int], Driver]]:
    """Starts scheduler, a worker on each host, and the notebook on the first, by hand and with TLS."""
    # A path that each host sees; /tmp differs.
    shared = Path(ROOT, ".pytest_cache", f"hosts-{tmp_path.name}")
    shared.mkdir(parents=True)
    files = certificates(shared)
    options = [word for pair in files.items() for word in pair]
    address = ADDRESSES["a"]
    own = OwnCluster(shared, host=address, inside=hosts.inside["a"], options=["--protocol", "tls", *options])
    drivers: list[Driver] = []

    def started(minimum: int) -> Driver:
        own.wait()
        for host in ("a", "b"):
            own.add(host, host=ADDRESSES[host], inside=hosts.inside[host], nanny=True)
        drivers.append(Driver(hosts.inside["a"], own.address, files, minimum))
        return drivers[0]

    try:
        yield started
    finally:
        hosts.join()
        for driver in drivers:
            driver.close()
        own.close()
        for path in shared.iterdir():
            path.unlink()
        shared.rmdir()


def _did(answer: dict[str, Any]) -> Any:
    assert not answer["error"], answer
    return answer["value"]


def test_a_cut_network(hosts: TwoHosts, start: Callable[[int], Driver]) -> None:
    driver = start(0)
    assert driver.ask("hosts")["value"] == ["host-a", "host-b"]
    assert _did(driver.ask("step")) == {"replicas": 2.0, "steps": 1.0}

    hosts.cut()  # for less time than it takes to give a worker up
    joining = threading.Timer(1.5, hosts.join)
    joining.start()
    assert _did(driver.ask("step")) == {"replicas": 2.0, "steps": 2.0}
    joining.join()

    hosts.cut()
    lost = driver.ask("step")
    assert lost["type"] == "ReplicaStalled"
    assert "no heartbeat" in lost["error"]
    first = driver.ask("step")
    assert first["type"] == "ReplicaLost"
    told = [driver.ask("step") for _ in range(3)]
    assert all(answer["seconds"] < _AT_ONCE_SECONDS for answer in told), told
    assert "replica 1 of MirroredStrategy cannot run: worker b on host host-b" in told[-1]["error"]
    assert "the network is cut" in told[-1]["error"]
    assert "since" in told[-1]["error"]

    hosts.join()
    back = driver.until(
        "step", lambda answer: answer["value"] is not None, "the step after the network is back"
    )
    # The failed steps were undone; this one is whole.
    assert back["value"] == {"replicas": 2.0, "steps": 3.0}


def test_the_host_that_is_left_goes_on_alone_and_takes_the_other_back(
    hosts: TwoHosts, start: Callable[[int], Driver]
) -> None:
    driver = start(1)
    assert _did(driver.ask("step")) == {"replicas": 2.0, "steps": 1.0}

    hosts.cut()
    assert driver.ask("step")["type"] == "ReplicaStalled"
    assert _did(driver.ask("step")) == {"replicas": 1.0, "steps": 2.0}
    assert _did(driver.ask("size")) == 1
    assert any(
        "MirroredStrategy continues with 1 of 2 replicas, without replica 1" in line
        for line in _did(driver.ask("diagnose"))
    )
    told = [message for message in _did(driver.ask("log")) if "continues with 1 of 2" in message]
    assert "worker b on host host-b" in told[0]

    hosts.join()
    grown = driver.until(
        "step", lambda answer: _did(answer)["replicas"] == 2.0, "the growth after the network is back"
    )
    after = _did(driver.ask("step"))
    assert after == {"replicas": 2.0, "steps": grown["value"]["steps"] + 1.0}
    assert not any("continues with" in line for line in _did(driver.ask("diagnose")))
