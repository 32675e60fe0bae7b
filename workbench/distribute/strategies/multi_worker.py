"""MultiWorkerMirroredStrategy: MirroredStrategy over several hosts, real or emulated on one machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from workbench import runtime
from workbench.backends.library import Library, checked_library
from workbench.communicators.core.options import CommunicationImplementation, CommunicationOptions
from workbench.distribute.cluster_resolver.cluster_spec import ClusterSpec
from workbench.distribute.cluster_resolver.resolver import ClusterResolver, address_or_own, checked_resolver
from workbench.distribute.strategies.mirrored import default_devices
from workbench.distribute.strategies.strategy import Strategy
from workbench.errors import InvalidArgumentError


class ControllerResolver(ClusterResolver):
    """The default `cluster_resolver`: the notebook drives all workers, as the first of them.

    Args:
      hosts: Names of the hosts; each is a task of the job "worker".
    """

    task_type = "worker"
    task_id = 0

    def __init__(self, hosts: Iterable[str]) -> None:
        self._hosts = list(hosts)

    def cluster_spec(self) -> ClusterSpec:
        """The hosts, as tasks of the job "worker"."""
        return ClusterSpec({"worker": self._hosts})

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The name of the first host, or of the given task's; see `ClusterResolver.master`."""
        return address_or_own(self, task_type, task_id, rpc_layer)


class MultiWorkerMirroredStrategy(Strategy):
    """Synchronous computation on the devices of all hosts (as tf.distribute.MultiWorkerMirroredStrategy).

    TensorFlow runs the program once on every worker. Here, one notebook drives all workers, so it makes each call once.
    Each host has its own input pipeline, which feeds its replicas.

    Args:
      cluster_resolver: If no cluster is connected, names the tasks that have formed one by `workbench join`; a single
        task is this machine. A connected cluster must have these tasks; an embedded one represents them by as many
        hosts, workers or devices. The attribute `cluster_resolver` returns it.
      communication_options: Default options of the collectives.
      backend: Array library of variables and `ctx.xp` on CPU devices: "numpy" or "jax".

    Raises:
      FailedPreconditionError: if the connected cluster has other tasks than the resolver names.
      InvalidArgumentError: if hosts have different numbers of devices.
      TypeError: if `cluster_resolver` is not a resolver.

    >>> strategy = wb.MultiWorkerMirroredStrategy()  # on all devices of the cluster
    >>> int(strategy.reduce("SUM", strategy.run(lambda: 1), axis=None))
    2
    """

    def __init__(
        self,
        cluster_resolver: Any = None,
        communication_options: CommunicationOptions | None = None,
        *,
        backend: Library = "numpy",
    ) -> None:
        library = checked_library(backend)
        cluster = runtime.auto_connect(None, resolver=checked_resolver(cluster_resolver, type(self).__name__))
        devices = default_devices(cluster.devices)
        counts = Counter(device.host for device in devices)
        if len(set(counts.values())) > 1:
            found = ", ".join(f"{host}: {count}" for host, count in counts.items())
            raise InvalidArgumentError(
                f"MultiWorkerMirroredStrategy needs as many devices on each host, got {found}; use "
                f"MirroredStrategy([...]) with the devices that you want"
            )
        self._resolver = cluster_resolver
        super().__init__(
            cluster.group(devices, label=type(self).__name__),
            communication_options=communication_options,
            library=library,
        )

    @property
    def cluster_resolver(self) -> Any:
        """The given resolver, or one for the strategy's hosts, with this process as "worker" 0."""
        hosts = dict.fromkeys(device.host for device in self.devices)
        return getattr(self, "_resolver", None) or ControllerResolver(hosts)


class ExperimentalMultiWorkerMirroredStrategy(MultiWorkerMirroredStrategy):
    """MultiWorkerMirroredStrategy with the older arguments (as tf.distribute.experimental.MultiWorkerMirroredStrategy).

    Args:
      communication: Preferred implementation, a member or a name.
      cluster_resolver: See MultiWorkerMirroredStrategy.
    """

    def __init__(
        self,
        communication: CommunicationImplementation | str = CommunicationImplementation.AUTO,
        cluster_resolver: Any = None,
    ) -> None:
        options = CommunicationOptions(implementation=communication)  # type: ignore[arg-type]
        super().__init__(cluster_resolver, options)
