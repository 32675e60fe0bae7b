"""The clusters and strategies that cases run on: threads or processes, on one host or several, or emulated TPUs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.reference.interpreter.codec import Json
from tests.reference.outcomes import NotExpressible, api

LOCAL_REPLICAS = 8


@dataclass(slots=True)
class Clusters:
    """The cluster that cases run on, connected when one first needs it; another layout replaces it.

    Attributes:
      tpu: Emulate TPU devices, and run on them what names no strategy.
      processes: Give each replica a process of its own instead of a thread of this one.
      replicas: The number of replicas to start on one host; a case that needs more gets another cluster.
    """

    tpu: bool = False
    processes: bool = False
    replicas: int = LOCAL_REPLICAS
    _cluster: Any = None
    _hosts: int = 0
    _replicas_per_host: int = 0

    def local(self, replicas: int = 1) -> Any:
        """A cluster of one host with at least `replicas` CPU devices."""
        if self.tpu and self._cluster is None:
            # The recorded runs have 64-bit numbers, which JAX supports on request.
            self._cluster = api("connect")(tpu=LOCAL_REPLICAS, environment={"JAX_ENABLE_X64": "1"})
        elif not self.tpu and (self._hosts != 1 or self._replicas_per_host < replicas):
            self._connect(1, max(replicas, self.replicas))
        return self._cluster

    def hosts(self, hosts: int, replicas_per_host: int = 1) -> Any:
        """A cluster of `hosts` hosts with `replicas_per_host` CPU devices each."""
        if (self._hosts, self._replicas_per_host) != (hosts, replicas_per_host):
            self._connect(hosts, replicas_per_host)
        return self._cluster

    def close(self) -> None:
        """Closes the cluster."""
        cluster, self._cluster, self._hosts = self._cluster, None, 0
        if cluster is not None:
            cluster.close()

    def _connect(self, hosts: int, replicas_per_host: int) -> None:
        connect = api("connect")
        self.close()  # strategies are created on the current cluster, so there is only one at a time
        layout = {"hosts": hosts, "replicas_per_host": replicas_per_host}
        place = layout if hosts > 1 else {"replicas": replicas_per_host}
        self._cluster = connect(**place, processes=self.processes)
        self._hosts, self._replicas_per_host = hosts, replicas_per_host


def make_strategy(clusters: Clusters, kind: str | None, replicas: int) -> Any:
    """A strategy of the kind that a case names, mirrored where it names none, over `replicas` CPU devices."""
    clusters.local(replicas)
    if clusters.tpu:
        return _on_tpu(kind, replicas)
    devices = [f"CPU:{index}" for index in range(replicas)]
    match kind:
        case None | "MirroredStrategy" | "MirroredStrategyDefaultOps":
            return api("distribute.MirroredStrategy")(devices)
        case "default":
            return api("distribute.get_strategy")()
        case "OneDeviceStrategy":
            return api("distribute.OneDeviceStrategy")(devices[0])
        case "CentralStorageStrategy":
            return api("distribute.experimental.CentralStorageStrategy")(devices)
        case _:
            ops = api(f"distribute.{kind}")()
            return api("distribute.MirroredStrategy")(devices, cross_device_ops=ops)


def _on_tpu(kind: str | None, replicas: int) -> Any:
    if kind is not None:
        raise NotExpressible(f"is about {kind}")
    assignment = api("distribute.DeviceAssignment").build(num_replicas=replicas)
    return api("distribute.TPUStrategy")(device_assignment=assignment)


def distributed(strategy: Any, values: list[Any]) -> Any:
    """A distributed value whose component on replica r is `values[r]`."""
    return strategy.experimental_distribute_values_from_function(
        lambda context: values[context.replica_id_in_sync_group]
    )


def input_options(given: Json) -> Any:
    """The input options that a case describes."""
    arguments = dict(given)
    if "experimental_replication_mode" in arguments:
        modes = api("distribute.InputReplicationMode")
        arguments["experimental_replication_mode"] = getattr(
            modes, arguments["experimental_replication_mode"]
        )
    return api("distribute.InputOptions")(**arguments)


@contextlib.contextmanager
def default_context() -> Iterator[None]:
    """Leaves the default strategy behind, whatever the program in the block has made current."""
    try:
        yield
    finally:
        with contextlib.suppress(Exception):  # a case fails for what it did, not for its clean-up
            if api("distribute.has_strategy")():
                api("distribute.experimental_set_strategy")(None)
