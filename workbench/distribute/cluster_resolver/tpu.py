"""TPUClusterResolver: the hosts of a TPU."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from workbench import runtime
from workbench.distribute.cluster_resolver import google_cloud
from workbench.distribute.cluster_resolver.cluster_spec import ClusterSpec
from workbench.distribute.cluster_resolver.resolver import ClusterResolver, with_layer
from workbench.errors import InvalidArgumentError, NotFoundError

_PORT = 8470
_VARIABLE = "TPU_NAME"
_DISCOVERY = "TPU_API_DISCOVERY_URL"
_LOCAL = "local"
_GRPC = "grpc://"


class TPUSystemMetadata(NamedTuple):
    """Facts about the TPU that workbench is connected to.

    Attributes:
      num_cores: TPU cores of all hosts.
      num_hosts: Hosts.
      num_of_cores_per_host: TPU cores of each host.
      topology: Always None; `DeviceAssignment` describes the wiring of cores.
      devices: The cores, in replica order.
    """

    num_cores: int
    num_hosts: int
    num_of_cores_per_host: int
    topology: None
    devices: tuple[Any, ...]


class TPUClusterResolver(ClusterResolver):
    """Finds the hosts of a TPU (as tf.distribute.cluster_resolver.TPUClusterResolver).

    Args:
      tpu: A name, or one or several "grpc://host:port", separated by commas; "local" for the TPU of this machine; by
        default the variable TPU_NAME.
      zone: The TPU's zone; by default this machine's.
      project: The TPU's project; by default this machine's.
      job_name: The job that the hosts belong to.
      coordinator_name: The job of a coordinator to add to the cluster.
      coordinator_address: Its address.
      credentials: Credentials for googleapiclient; by default the application's default credentials.
      service: A client of the Cloud TPU API to use; credentials are ignored then.
      discovery_url: Address of that API's description; the variable TPU_API_DISCOVERY_URL has priority.

    Raises:
      ValueError: if no TPU is named, or the coordinator has an address but no name.
      NotImplementedError: for a list of several TPUs.
      TypeError: if `tpu` is not a string.
      LibraryMissing: if googleapiclient is missing but needed to look up a name.
    """

    def __init__(
        self,
        tpu: str | None = None,
        zone: str | None = None,
        project: str | None = None,
        job_name: str = "worker",
        coordinator_name: str | None = None,
        coordinator_address: str | None = None,
        credentials: Any = "default",
        service: Any = None,
        discovery_url: str | None = None,
    ) -> None:
        if isinstance(tpu, list | tuple):
            if len(tpu) > 1:
                raise NotImplementedError(
                    f"one resolver is for one TPU, got {list(tpu)}; UnionResolver merges several"
                )
            tpu = tpu[0] if tpu else ""
        elif not tpu:
            tpu = os.environ.get(_VARIABLE, "")
        if not isinstance(tpu, str):
            raise TypeError(f"TPUClusterResolver: tpu is a name, got {type(tpu).__name__}: {tpu!r:.80}")
        name = tpu
        if not name:
            raise ValueError(
                "no TPU is named: pass tpu, such as TPUClusterResolver('grpc://10.0.0.2:8470') or 'local', or set "
                f"{_VARIABLE}"
            )
        if coordinator_address and not coordinator_name:
            raise ValueError(f"coordinator_name is missing: the job of {coordinator_address!r}")
        self._name = name
        self._zone = zone
        self._project = project
        self._coordinator = (coordinator_name, coordinator_address)
        self._credentials = credentials
        self._service = service
        self._discovery_url = os.environ.get(_DISCOVERY, discovery_url)
        self.task_type = job_name
        self.task_id = 0
        self.rpc_layer = None if name == _LOCAL else "grpc"

    @staticmethod
    def connect(
        tpu: str | None = None, zone: str | None = None, project: str | None = None
    ) -> TPUClusterResolver:
        """Connects workbench to the TPU of this machine, and returns its resolver.

        Workbench's workers run on the hosts of a TPU, so it cannot drive a TPU elsewhere through its address.

        Args:
          tpu: "local", the default.
          zone: Not used.
          project: Not used.

        Raises:
          NotFoundError: if there is no TPU here.
        """
        resolver = TPUClusterResolver(tpu or _LOCAL, zone, project)
        if resolver._name != _LOCAL:
            raise NotFoundError(
                f"{resolver._name!r} is not the TPU of this machine: start workbench on the TPU's hosts, or attach to "
                "a Dask cluster that runs there: wb.connect('tls://...')"
            )
        _system()
        return resolver

    def cluster_spec(self) -> ClusterSpec:
        """The current addresses of the TPU's hosts; empty for "local".

        Raises:
          ValueError: if the Cloud TPU API does not know it.
          RuntimeError: if the TPU is not ready, or not healthy.
        """
        if self._name == _LOCAL:
            return ClusterSpec({})
        cluster = {str(self.task_type): self._addresses()}
        job, address = self._coordinator
        if job and address:
            cluster[job] = [address]
        return ClusterSpec(cluster)

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The address of a host if job and number are given, else of the first one; "" for "local".

        Args:
          task_type: See `ClusterResolver.master`.
          task_id: See `ClusterResolver.master`.
          rpc_layer: See `ClusterResolver.master`.
        """
        spec = self.cluster_spec()
        if not spec:
            return ""
        if task_type is None or task_id is None:
            task_type, task_id = str(self.task_type), int(self.task_id or 0)
        return with_layer(spec.task_address(task_type, task_id), rpc_layer or self.rpc_layer)

    def get_master(self) -> str:
        """The address of the first host."""
        return self.master()

    def get_job_name(self) -> str | None:
        """The job that the hosts belong to."""
        return self.task_type

    def get_tpu_system_metadata(self) -> TPUSystemMetadata:
        """Facts about the TPU that workbench is connected to; connects if necessary.

        Raises:
          NotFoundError: if it has no TPU.
          RuntimeError: if hosts have different numbers of cores.
        """
        return _system()

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> Mapping[str, int]:
        """How many TPU cores each host has; see `ClusterResolver` and `get_tpu_system_metadata`."""
        return {"TPU": _system().num_of_cores_per_host}

    def __enter__(self) -> TPUClusterResolver:
        return self

    def __exit__(self, *_: object) -> None:
        """Does nothing, because the cluster belongs to the program that connected."""

    def _addresses(self) -> list[str]:
        if self._name.startswith(_GRPC):
            return [_with_port(part.removeprefix(_GRPC)) for part in self._name.split(",")]
        node = self._node()
        if node.get("state") != "READY":
            raise RuntimeError(
                f"TPU {self._name!r} is {node.get('state')}, not READY: wait for it, or start it"
            )
        if node.get("health", "HEALTHY") != "HEALTHY":
            raise RuntimeError(f"TPU {self._name!r} is ready, but {node['health']}: recreate it")
        endpoints = node.get("networkEndpoints") or [node]
        return [f"{endpoint['ipAddress']}:{endpoint.get('port', _PORT)}" for endpoint in endpoints]

    def _node(self) -> Mapping[str, Any]:
        service = self._service or google_cloud.client("tpu", "v1", self._credentials, self._discovery_url)
        project = self._project or google_cloud.metadata("project/project-id")
        zone = self._zone or google_cloud.metadata("instance/zone").rpartition("/")[2]
        name = f"projects/{project}/locations/{zone}/nodes/{self._name}"
        try:
            node: Mapping[str, Any] = service.projects().locations().nodes().get(name=name).execute()
        except Exception as error:  # each client has its own errors
            raise InvalidArgumentError(
                f"cannot look up TPU {self._name!r}: check its name, project and zone, and your access: {error}"
            ) from error
        return node


def _with_port(address: str) -> str:
    return address if re.search(r":\d+$", address) else f"{address}:{_PORT}"


def _system() -> TPUSystemMetadata:
    devices = [device for device in runtime.auto_connect(None).devices if device.kind == "TPU"]
    if not devices:
        raise NotFoundError(
            "workbench is connected to a cluster without TPUs: wb.connect(tpu=8) emulates one"
        )
    hosts = list(dict.fromkeys(device.host for device in devices))
    counts = {host: sum(device.host == host for device in devices) for host in hosts}
    if len(set(counts.values())) > 1:
        raise RuntimeError(f"hosts have different numbers of TPU cores: {counts}")
    return TPUSystemMetadata(len(devices), len(hosts), counts[hosts[0]], None, tuple(devices))
