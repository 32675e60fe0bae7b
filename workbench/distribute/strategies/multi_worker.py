"""MultiWorkerMirroredStrategy: MirroredStrategy over several hosts, real ones or hosts laid out on one machine."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from workbench import runtime
from workbench.backends.library import Library, checked_library
from workbench.communicators.core.options import CommunicationImplementation, CommunicationOptions
from workbench.distribute.strategies.mirrored import default_devices
from workbench.distribute.strategies.strategy import Strategy
from workbench.errors import InvalidArgumentError


@dataclass(frozen=True, slots=True)
class ControllerResolver:
    """The `cluster_resolver` where none was passed: the notebook drives all workers, as the first of them.

    Attributes:
      task_type: Always "worker".
      task_id: Always 0.
    """

    task_type: str = "worker"
    task_id: int = 0


class MultiWorkerMirroredStrategy(Strategy):
    """Synchronous computation on the devices of all hosts (as tf.distribute.MultiWorkerMirroredStrategy).

    TensorFlow runs the program once on every worker. Here, one notebook drives all workers, so it makes each call once.
    Each host has its own input pipeline, which feeds its replicas.

    Args:
      cluster_resolver: Where no cluster is connected, the tasks that have formed one by `workbench join`; a cluster of
        one task is this machine. Code that asks for the resolver gets it.
      communication_options: Default options of the collectives.
      backend: Array library of variables and `ctx.xp` on CPU devices: "numpy" or "jax".

    Raises:
      InvalidArgumentError: if hosts have different numbers of devices.

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
        cluster = runtime.auto_connect(None, resolver=cluster_resolver)
        devices = default_devices(cluster.devices)
        counts = Counter(device.host for device in devices)
        if len(set(counts.values())) > 1:
            found = ", ".join(f"{host}: {count}" for host, count in counts.items())
            raise InvalidArgumentError(
                f"MultiWorkerMirroredStrategy needs as many devices on each host, got {found}; use "
                f"MirroredStrategy([...]) with the devices that you want"
            )
        self._resolver = cluster_resolver or ControllerResolver()
        super().__init__(
            cluster.group(devices, label=type(self).__name__),
            communication_options=communication_options,
            library=library,
        )

    @property
    def cluster_resolver(self) -> Any:
        """The resolver that was passed, or one that says "worker" 0."""
        return getattr(self, "_resolver", None) or ControllerResolver()


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
