"""The kind `coordinator_program`: functions scheduled on workers, variables on parameter servers."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tests.reference.interpreter.clusters import default_context
from tests.reference.interpreter.codec import Json
from tests.reference.interpreter.namespaces import strategy_names
from tests.reference.interpreter.programs import run_program
from tests.reference.interpreter.world import World
from tests.reference.observation import Observed
from tests.reference.outcomes import api

_EXPERIMENTAL = "distribute.experimental"


def coordinator_program(given: Json, world: World, observed: Observed) -> None:
    with default_context():
        strategy = _strategy(given, world)
        coordinator = api(f"{_EXPERIMENTAL}.coordinator.ClusterCoordinator")(strategy)
        names: dict[str, Any] = {
            **strategy_names(strategy),
            "coordinator": lambda: coordinator,
            "fetch": lambda: coordinator.fetch,
            "ClusterCoordinator": functools.partial(api, f"{_EXPERIMENTAL}.coordinator.ClusterCoordinator"),
            "shards": lambda: shards,
            "device": lambda: device,
            "is_sharded": lambda: is_sharded,
            "to_tensor": lambda: np.asarray,
            "check_positive": lambda: check_positive,
            "embedding_lookup": functools.partial(api, "nn.embedding_lookup"),
        }
        observed.fields["result"] = run_program(given["code"], names)


def is_sharded(variable: Any) -> bool:
    """Whether `variable` is partitioned over parameter servers."""
    return len(getattr(variable, "variables", ())) > 0


def shards(variable: Any) -> list[tuple[str, str, Any]]:
    """Name, parameter server and value of each shard, or of the whole variable."""
    parts = variable.variables if is_sharded(variable) else [variable]
    return [(part.name, device(part), np.asarray(part)) for part in parts]


def device(variable: Any) -> str:
    """The parameter server on which `variable` lives, as "ps:1"."""
    spec = api("DeviceSpec").from_string(str(variable.device))
    return f"{spec.job}:{spec.task}"


def check_positive(x: Any) -> None:
    """Raises `InvalidArgumentError` unless all of `x` is positive."""
    if not np.all(np.asarray(x) > 0):
        raise api("errors.InvalidArgumentError")(f"{x} is not positive")


def _strategy(given: Json, world: World) -> Any:
    workers, servers = given["workers"], given["ps"]
    make = api(f"{_EXPERIMENTAL}.ParameterServerStrategy")
    spec = {
        "worker": [f"localhost:{2000 + index}" for index in range(workers)],
        "ps": [f"localhost:{3000 + index}" for index in range(servers)],
    }
    resolver = api("distribute.cluster_resolver.SimpleClusterResolver")(api("distribute.ClusterSpec")(spec))
    world.clusters.local(workers + servers)
    if "partitioner" not in given:
        return make(resolver)
    kind, args = given["partitioner"]["type"], given["partitioner"]["args"]
    return make(resolver, variable_partitioner=api(f"{_EXPERIMENTAL}.partitioners.{kind}")(**args))


KINDS = {"coordinator_program": coordinator_program}
