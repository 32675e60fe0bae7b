"""A coordinator whose workers and parameter server are on two hosts, while the network between these is cut."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.network.notebook import Driver, right
from tests.network.two_hosts import ADDRESSES, TwoHosts, certificates
from tests.own_cluster import ROOT, OwnCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture
def notebook(hosts: TwoHosts, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Driver]:
    """A notebook on the host that the test names; a worker on each, and the server on host-b."""
    here: str = request.param
    shared = Path(ROOT, ".pytest_cache", f"hosts-{tmp_path.name}")  # a path that each host sees; /tmp differs
    shared.mkdir(parents=True)
    with contextlib.ExitStack() as ending:
        files = certificates(shared)
        ending.callback(shared.rmdir)
        ending.callback(lambda: [path.unlink() for path in shared.iterdir()])
        options = ["--protocol", "tls", *(word for pair in files.items() for word in pair)]
        own = OwnCluster(shared, host=ADDRESSES[here], inside=hosts.inside[here], options=options)
        ending.callback(own.close)
        own.wait()
        for host, name in (("a", "a0"), ("b", "b0"), ("b", "b1")):
            own.add(name, host=ADDRESSES[host], inside=hosts.inside[host], nanny=True)
        driver = Driver(hosts.inside[here], own.address, files, 0, module="tests.network.updates")
        ending.callback(driver.close)
        ending.callback(hosts.join)
        yield driver


@pytest.mark.parametrize("notebook", ["a", pytest.param("b", marks=pytest.mark.thorough)], indirect=True)
def test_updates_are_exact_when_the_network_is_cut_for_five_seconds(
    hosts: TwoHosts, notebook: Driver
) -> None:
    # Each process has a /tmp of its own, which distinguishes two processes on one host.
    places = notebook.ask("places")["value"]
    assert [place[:6] for place in places] == ["host-a", "host-b", "host-b"]
    assert right(notebook.ask("work"))["restarts"] == 0

    joining = threading.Timer(5.0, hosts.join)
    notebook.tell("work")
    hosts.cut()
    joining.start()
    right(notebook.answer())
    joining.join(20)

    right(notebook.ask("work"))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask takes a connection for broken after eleven seconds, the least that it can, and not after thirty."""
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP", "11s")


@pytest.mark.thorough
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("notebook", ["b"], indirect=True)
def test_updates_are_exact_when_dask_has_given_up_the_host_that_was_cut_off(
    hosts: TwoHosts, notebook: Driver
) -> None:
    cut_for(25.0, hosts, notebook)


@pytest.mark.thorough
@pytest.mark.parametrize("notebook", ["a"], indirect=True)
def test_updates_are_exact_when_the_network_is_cut_for_a_minute(hosts: TwoHosts, notebook: Driver) -> None:
    cut_for(60.0, hosts, notebook)


def cut_for(seconds: float, hosts: TwoHosts, notebook: Driver) -> None:
    """Cuts the network while functions run, and joins it again."""
    assert right(notebook.ask("work"))["restarts"] == 0

    joining = threading.Timer(seconds, hosts.join)
    notebook.tell("work")
    hosts.cut()
    joining.start()
    right(notebook.answer(240.0))
    joining.join(seconds + 30)

    right(notebook.ask("work"))
