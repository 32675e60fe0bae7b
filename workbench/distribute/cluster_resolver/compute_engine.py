"""GCEClusterResolver: the machines of an instance group of Google Compute Engine."""

from __future__ import annotations

from typing import Any

from workbench.distribute.cluster_resolver import google_cloud
from workbench.distribute.cluster_resolver.cluster_spec import ClusterSpec
from workbench.distribute.cluster_resolver.resolver import ClusterResolver, address_or_own


class GCEClusterResolver(ClusterResolver):
    """Finds the running machines of a group (as tf.distribute.cluster_resolver.GCEClusterResolver).

    Args:
      project: The project's name.
      zone: The group's zone.
      instance_group: The group's name.
      port: The port of every task.
      task_type: The job that the machines belong to.
      task_id: The number of this machine, unique in the group, which does not number its machines.
      rpc_layer: The beginning of addresses, such as "grpc".
      credentials: Credentials for googleapiclient; by default the application's default credentials.
      service: A client of the API to use; credentials are ignored then.

    Raises:
      LibraryMissing: if googleapiclient is missing and no client is given.
    """

    def __init__(
        self,
        project: str,
        zone: str,
        instance_group: str,
        port: int,
        task_type: str = "worker",
        task_id: int = 0,
        rpc_layer: str = "grpc",
        credentials: Any = "default",
        service: Any = None,
    ) -> None:
        self._group = {"project": project, "zone": zone}
        self._instance_group = instance_group
        self._port = port
        self._task_type = task_type
        self._service = google_cloud.client("compute", "v1", credentials) if service is None else service
        self.task_id = task_id
        self.rpc_layer = rpc_layer

    @property
    def task_type(self) -> str:
        """The job that the machines belong to."""
        return self._task_type

    @task_type.setter
    def task_type(self, task_type: str) -> None:
        raise RuntimeError(
            f"all machines of the group {self._instance_group!r} belong to the job {self._task_type!r}: pass task_type "
            "to GCEClusterResolver"
        )

    def cluster_spec(self) -> ClusterSpec:
        """The addresses of the machines that are running, sorted as strings: 10.0.0.10 before 10.0.0.9."""
        addresses: list[str] = []
        groups = self._service.instanceGroups()
        request = groups.listInstances(
            **self._group,
            instanceGroup=self._instance_group,
            body={"instanceState": "RUNNING"},
            orderBy="name",
        )
        while request is not None:
            answer = request.execute()
            for item in answer.get("items", ()):
                name = item["instance"].rpartition("/")[2]
                instance = self._service.instances().get(**self._group, instance=name).execute()
                addresses.append(f"{instance['networkInterfaces'][0]['networkIP']}:{self._port}")
            request = groups.listInstances_next(previous_request=request, previous_response=answer)
        return ClusterSpec({self._task_type: sorted(addresses)})

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The address of a task, of this one by default; see `ClusterResolver`."""
        return address_or_own(self, task_type, task_id, rpc_layer)
