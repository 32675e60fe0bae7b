"""Stand-ins for the clients of Kubernetes, Compute Engine and Cloud TPU, serving the data of a case.

They have the methods of the real clients that answer the resolvers' questions, and no others.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.reference.interpreter.codec import Json


class CoreClient:
    """Of the Kubernetes client: the pods that a label selector finds."""

    def __init__(self, pods: dict[str, Json]) -> None:
        self._pods = pods

    def list_pod_for_all_namespaces(self, *, label_selector: str) -> Any:
        return SimpleNamespace(items=[_pod(pod) for pod in self._pods.get(label_selector, ())])


class ComputeEngine:
    """Of the Compute Engine client: the instances of a group, page by page, and their addresses."""

    def __init__(self, pages: list[Json]) -> None:
        self._pages = pages

    def instanceGroups(self) -> ComputeEngine:
        return self

    def instances(self) -> ComputeEngine:
        return self

    def listInstances(self, **_request: Any) -> _Page:
        return _Page(self._pages, 0)

    def listInstances_next(self, previous_request: _Page, previous_response: Any) -> _Page | None:
        following = previous_request.number + 1
        return _Page(self._pages, following) if following < len(self._pages) else None

    def get(self, *, instance: str, **_request: Any) -> _Answer:
        (found,) = [item for page in self._pages for item in page if item["name"] == instance]
        return _Answer({"name": instance, "networkInterfaces": [{"networkIP": found["ip"]}]})


class TpuService:
    """Of the Cloud TPU client: the description of a node."""

    def __init__(self, nodes: dict[str, Json]) -> None:
        self._nodes = nodes

    def projects(self) -> TpuService:
        return self

    def locations(self) -> TpuService:
        return self

    def nodes(self) -> TpuService:
        return self

    def get(self, *, name: str) -> _Answer:
        return _Answer(self._nodes[name])


class _Answer:
    def __init__(self, content: Any) -> None:
        self._content = content

    def execute(self) -> Any:
        return self._content


class _Page(_Answer):
    def __init__(self, pages: list[Json], number: int) -> None:
        names = [f"https://www.googleapis.com/compute/v1/instances/{item['name']}" for item in pages[number]]
        super().__init__({"items": [{"instance": name, "status": "RUNNING"} for name in names]})
        self.number = number


def _pod(pod: Json) -> Any:
    status = SimpleNamespace(phase=pod["phase"], host_ip=pod["host_ip"], pod_ip=pod["pod_ip"])
    return SimpleNamespace(metadata=SimpleNamespace(name=pod["name"]), status=status)
