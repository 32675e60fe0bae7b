"""Our views among the pages of a Dask scheduler: listed as dask-labextension lists them, live, and gone when closed."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from distributed import Client, LocalCluster

import workbench as wb
from workbench.errors import FailedPreconditionError

PATIENCE_SECONDS = 60.0
NAMES = ["collectives", "lanes", "lateness", "sweep"]


@pytest.fixture(scope="module")
def dask(built: ModuleType) -> Iterator[Client]:
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=False,
            protocol="tcp",
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def cluster(dask: Client) -> Iterator[wb.Cluster]:
    with wb.connect(dask) as cluster:
        yield cluster


def get(client: Client, path: str) -> tuple[int, bytes]:
    port = int(client.dashboard_link.rpartition(":")[2].partition("/")[0])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def listed(client: Client) -> dict[str, str]:
    """The list that dask-labextension reads."""
    status, body = get(client, "/individual-plots.json")
    assert status == 200
    found: dict[str, str] = json.loads(body)
    return found


def ours(client: Client) -> dict[str, str]:
    return {name: path for name, path in listed(client).items() if "Workbench" in name}


def step(value: float) -> float:
    print("a secret", value)
    return float(wb.distribute.get_replica_context().all_reduce("sum", value))


def test_nothing_is_added_unasked(cluster: wb.Cluster, dask: Client) -> None:
    assert ours(dask) == {}
    assert get(dask, "/individual-workbench-lanes")[0] == 404


def test_pages_are_in_the_list_beside_those_of_dask(cluster: wb.Cluster, dask: Client) -> None:
    before = listed(dask)
    with wb.dask_pages() as pages:
        assert ours(dask) == {
            f"Individual Workbench {name.title()}": f"/individual-workbench-{name}" for name in NAMES
        }
        assert listed(dask).items() >= before.items()
        assert list(pages.urls) == NAMES
        for url in pages.urls.values():
            status, body = get(dask, "/" + url.rpartition("/")[2])
            assert status == 200
            assert b'from "./workbench/widget.js"' in body
        for name in ("widget", "exports"):
            assert get(dask, f"/workbench/{name}.js")[0] == 200
    assert ours(dask) == {}
    assert get(dask, "/individual-workbench-lanes")[0] == 404
    assert get(dask, "/workbench/model.json")[0] == 404


def test_they_come_back_and_forget_what_was_before(cluster: wb.Cluster, dask: Client) -> None:
    for _ in range(2):
        with wb.dask_pages(cluster):
            assert len(ours(dask)) == 4
            assert model(dask)["snapshot"]["counters"]["collectives"] == 0
            wb.MirroredStrategy().run(step, args=(1.0,))
            wait_for_collectives(dask, 1)


def test_they_show_times_and_nothing_that_was_printed(cluster: wb.Cluster, dask: Client) -> None:
    with wb.dask_pages(cluster):
        strategy = wb.MirroredStrategy()
        for _ in range(3):
            strategy.run(step, args=(42.125,))
        shown = wait_for_collectives(dask, 3)

        assert shown["snapshot"]["table"][0]["op"] == "all_reduce"
        assert shown["snapshot"]["events"] == []
        assert "a secret" not in json.dumps(shown)
        assert "42.125" not in json.dumps(shown)
        assert get(dask, f"/workbench/model.json?version={shown['version']}")[0] in (200, 204)


def model(client: Client) -> Any:
    status, body = get(client, "/workbench/model.json")
    assert status == 200
    return json.loads(body)


def wait_for_collectives(client: Client, count: int) -> Any:
    """The model when so many have been folded: each request is a round trip, and there are enough of them."""
    for _ in range(2000):
        shown = model(client)
        if shown["snapshot"]["counters"]["collectives"] >= count:
            return shown
    raise TimeoutError(f"{count} collectives did not come")


@pytest.mark.parametrize(
    "path", ["/workbench/../errors.py", "/workbench/%2e%2e/errors.py", "/workbench/sources.sha256"]
)
def test_only_the_views_are_served(cluster: wb.Cluster, dask: Client, path: str) -> None:
    with wb.dask_pages(cluster):
        assert get(dask, path)[0] in (403, 404)
        assert get(dask, "/individual-workbench-values")[0] == 404


def test_an_embedded_cluster_serves_no_pages() -> None:
    with wb.connect(replicas=1, processes=False), pytest.raises(FailedPreconditionError, match="serves none"):
        wb.dask_pages()


def test_without_a_cluster_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.ui.cluster.asked_cluster.current_cluster", lambda: None)
    with pytest.raises(FailedPreconditionError, match=r"wb\.connect"):
        wb.dask_pages()
