"""KubernetesClusterResolver: the pods of a Kubernetes cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.distribute.cluster_resolver.cluster_spec import ClusterSpec
from workbench.distribute.cluster_resolver.resolver import ClusterResolver, address_or_own
from workbench.errors import LibraryMissing


class KubernetesClusterResolver(ClusterResolver):
    """Finds pods by their labels (as tf.distribute.cluster_resolver.KubernetesClusterResolver).

    Addresses are those of the pods, as TensorFlow documents; its code takes those of their hosts. Set `task_type`
    and `task_id` yourself: Kubernetes does not know them.

    Args:
      job_to_label_mapping: Label selectors by job, `{"worker": ["job-name=tensorflow"]}` by default. Pods of a selector
        are numbered in the order of their names.
      tf_server_port: The port of every task.
      rpc_layer: The beginning of addresses, such as "grpc".
      override_client: A client of the `kubernetes` package with credentials; by default one with the pod's own, or
        with those of the kubeconfig file.

    Raises:
      LibraryMissing: if the `kubernetes` package is missing and no client is given.
      TypeError: if `job_to_label_mapping` is not a dict.
    """

    def __init__(
        self,
        job_to_label_mapping: Mapping[str, Sequence[str]] | None = None,
        tf_server_port: int = 8470,
        rpc_layer: str = "grpc",
        override_client: Any = None,
    ) -> None:
        if not (job_to_label_mapping is None or isinstance(job_to_label_mapping, Mapping)):
            raise TypeError(
                f"KubernetesClusterResolver: job_to_label_mapping is a dict from job to label selectors, got "
                f'{job_to_label_mapping!r:.80}; write {{"worker": ["job-name=train"]}}'
            )
        self._selectors = dict(job_to_label_mapping or {"worker": ["job-name=tensorflow"]})
        self._port = tf_server_port
        self._client = _client() if override_client is None else override_client
        self.rpc_layer = rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        """The addresses of the pods that the selectors currently match.

        Raises:
          RuntimeError: if one of them is not running.
        """
        return ClusterSpec(
            {
                job: [
                    f"{address}:{self._port}"
                    for selector in selectors
                    for address in self._addresses(selector)
                ]
                for job, selectors in self._selectors.items()
            }
        )

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The address of a task, by default of this one, "" while that is not set; see `ClusterResolver`."""
        return address_or_own(self, task_type, task_id, rpc_layer)

    def _addresses(self, selector: str) -> list[str]:
        pods = self._client.list_pod_for_all_namespaces(label_selector=selector).items
        for pod in pods:
            if pod.status.phase != "Running":
                raise RuntimeError(
                    f"pod {pod.metadata.name!r} (selector {selector!r}) is {pod.status.phase}, not Running: wait for "
                    "it, or name a selector that leaves it out"
                )
        return [pod.status.pod_ip for pod in sorted(pods, key=lambda pod: pod.metadata.name)]


def _client() -> Any:
    try:
        from kubernetes import client, config
    except ImportError as error:
        raise LibraryMissing(
            "the kubernetes package is not installed: pip install 'replica-workbench[kubernetes]'"
        ) from error
    try:
        config.load_incluster_config()
    except config.ConfigException:  # not in a pod
        config.load_kube_config()
    return client.CoreV1Api()
