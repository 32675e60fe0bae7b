"""Kubernetes and Compute Engine through their own client libraries, over recorded answers of their APIs."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import workbench as wb
from workbench.errors import BackendUnavailable

resolvers = wb.distribute.cluster_resolver
PODS = {
    "kind": "PodList",
    "apiVersion": "v1",
    "metadata": {"resourceVersion": "1"},
    "items": [
        {
            "metadata": {"name": "b"},
            "status": {"phase": "Running", "podIP": "172.16.0.2", "hostIP": "10.0.0.1"},
        },
        {
            "metadata": {"name": "a"},
            "status": {"phase": "Running", "podIP": "172.16.0.1", "hostIP": "10.0.0.1"},
        },
    ],
}


class _Answers(http.server.BaseHTTPRequestHandler):
    """Serves recorded answers by path, as the Kubernetes API does."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = json.dumps(PODS).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def api() -> Iterator[tuple[str, list[str]]]:
    """The address of a server with recorded answers, and what it is asked."""
    asked: list[str] = []
    handler = type("Handler", (_Answers,), {"asked": asked})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join(10)


def test_pods_are_found_by_the_kubernetes_client(api: tuple[str, list[str]]) -> None:
    client = pytest.importorskip(
        "kubernetes.client",
        reason="the client of Kubernetes is not installed: pip install -e '.[kubernetes]'",
    )
    address, asked = api
    configuration = client.Configuration()
    configuration.host = address
    with client.ApiClient(configuration) as connection:
        resolver = resolvers.KubernetesClusterResolver(
            {"worker": ["app=train"]}, override_client=client.CoreV1Api(connection)
        )
        spec = resolver.cluster_spec().as_dict()
        connection.rest_client.pool_manager.clear()

    assert spec == {"worker": ["172.16.0.1:8470", "172.16.0.2:8470"]}
    asked_for = urlsplit(asked[0])
    assert asked_for.path == "/api/v1/pods"
    assert parse_qs(asked_for.query)["labelSelector"] == ["app=train"]


def test_machines_of_a_group_are_found_by_googles_client() -> None:
    pytest.importorskip(
        "googleapiclient",
        reason="the client of Google's APIs is not installed: pip install -e '.[google-cloud]'",
    )
    from googleapiclient.discovery import build
    from googleapiclient.http import RequestMockBuilder

    listed = {
        "items": [{"instance": "https://www.googleapis.com/compute/v1/x/instances/i1", "status": "RUNNING"}]
    }
    machine = {"name": "i1", "networkInterfaces": [{"networkIP": "10.1.2.3"}]}
    recorded = RequestMockBuilder(
        {
            "compute.instanceGroups.listInstances": (None, json.dumps(listed)),
            "compute.instances.get": (None, json.dumps(machine)),
        },
        check_unexpected=True,
    )
    with build(
        "compute", "v1", developerKey="none", requestBuilder=recorded, static_discovery=True
    ) as service:
        resolver = resolvers.GCEClusterResolver("p", "z", "g", 8470, service=service)
        assert resolver.cluster_spec().as_dict() == {"worker": ["10.1.2.3:8470"]}
    assert resolver.master() == "grpc://10.1.2.3:8470"
    with pytest.raises(RuntimeError, match="all machines of the group 'g' belong to the job 'worker'"):
        resolver.task_type = "ps"
    resolver.task_id = 3
    with pytest.raises(ValueError, match="job 'worker' has no task 3"):
        resolver.master()


@pytest.mark.parametrize(
    ("library", "make", "extra"),
    [
        ("kubernetes", lambda: resolvers.KubernetesClusterResolver(), "kubernetes"),
        ("googleapiclient", lambda: resolvers.GCEClusterResolver("p", "z", "g", 1), "google-cloud"),
    ],
)
def test_a_missing_client_library_says_what_to_install(
    library: str, make: Any, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, library, None)
    with pytest.raises(ImportError, match=rf"pip install .*\[{extra}\]") as caught:
        make()
    assert isinstance(caught.value, BackendUnavailable)
