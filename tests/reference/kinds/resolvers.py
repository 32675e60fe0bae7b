"""Kinds about cluster specs and cluster resolvers."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any
from unittest import mock

from tests.reference.interpreter.cloud_stubs import ComputeEngine, CoreClient, TpuService
from tests.reference.interpreter.codec import Json
from tests.reference.interpreter.world import World
from tests.reference.observation import Observed
from tests.reference.outcomes import answer, api

_RESOLVERS = "distribute.cluster_resolver"


def cluster_spec(given: Json, world: World, observed: Observed) -> None:
    observed.phase = "construct"
    make = api("distribute.ClusterSpec")
    spec = make(sparse_keys(given["cluster"]))
    observed.phase = "call"
    observed.fields["results"] = [_ask_spec(make, spec, query) for query in given["queries"]]


def resolver(given: Json, world: World, observed: Observed) -> None:
    observed.phase = "construct"
    with _environment(given.get("env")):
        found = _resolver(given["resolver"])
        observed.phase = "call"
        observed.fields["results"] = [_ask(found, query) for query in given["queries"]]


def slurm_expand_hostlist(given: Json, world: World, observed: Observed) -> None:
    observed.fields["result"] = list(api(f"{_RESOLVERS}.expand_hostlist")(given["hostlist"]))


def slurm_expand_tasks_per_node(given: Json, world: World, observed: Observed) -> None:
    observed.fields["result"] = list(api(f"{_RESOLVERS}.expand_tasks_per_node")(given["tasks_per_node"]))


def sparse_keys(cluster: Json) -> Any:
    """`cluster` with the task numbers of sparse jobs as numbers, which JSON cannot have as keys."""
    if not isinstance(cluster, dict):
        return cluster
    return {
        job: {int(index): address for index, address in tasks.items()} if isinstance(tasks, dict) else tasks
        for job, tasks in cluster.items()
    }


def _resolver(given: Json) -> Any:
    if isinstance(given, str):
        return given
    kwargs = dict(given.get("kwargs", {}))
    match given["type"]:
        case "Simple":
            spec = given["cluster_spec"]
            # A text goes in as it is, because the resolver has to refuse it.
            spec = api("distribute.ClusterSpec")(sparse_keys(spec)) if isinstance(spec, dict) else spec
            return api(f"{_RESOLVERS}.SimpleClusterResolver")(spec, **kwargs)
        case "Union":
            parts = [_resolver(part) for part in given["resolvers"]]
            return api(f"{_RESOLVERS}.UnionResolver", f"{_RESOLVERS}.UnionClusterResolver")(*parts, **kwargs)
        case "Kubernetes":
            return api(f"{_RESOLVERS}.KubernetesClusterResolver")(
                override_client=CoreClient(given["pods"]), **kwargs
            )
        case "GCE":
            engine = ComputeEngine(given["instance_pages"])
            return api(f"{_RESOLVERS}.GCEClusterResolver")(**kwargs, credentials=None, service=engine)
        case "TPU":
            service = TpuService(given["nodes"])
            return api(f"{_RESOLVERS}.TPUClusterResolver")(**kwargs, credentials=None, service=service)
        case kind:
            return api(f"{_RESOLVERS}.{kind}ClusterResolver")(**kwargs)


def _ask(found: Any, query: Json) -> Any:
    name, arguments = (query, {}) if isinstance(query, str) else query
    match name:
        case "set":
            return answer(lambda: _set(found, arguments))
        case "setenv":
            return answer(lambda: os.environ.update(_texts(arguments)))
        case "env":
            return os.environ.get(arguments["name"])
        case _:
            return answer(lambda: _value(found, name, arguments))


def _value(found: Any, name: str, arguments: Any) -> Any:
    attribute = getattr(found, name)
    value = attribute(**arguments) if callable(attribute) else attribute
    if name == "cluster_spec":
        return value.as_dict()
    return list(value) if isinstance(value, tuple) else value


def _set(found: Any, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        setattr(found, name, value)


def _ask_spec(make: Any, spec: Any, query: Json) -> Any:
    name, *arguments = [query] if isinstance(query, str) else query
    match name:
        case "jobs":
            return answer(lambda: sorted(spec.jobs))
        case "bool":
            return answer(lambda: bool(spec))
        case "equals":
            return answer(lambda: spec == make(sparse_keys(arguments[0])))
        case _:
            return answer(lambda: getattr(spec, name)(*arguments))


@contextlib.contextmanager
def _environment(given: Json) -> Iterator[None]:
    """Makes `given` the whole environment; without it, the environment has nothing that resolvers read."""
    with mock.patch.dict(os.environ, _texts(given or {}), clear=True):
        yield


def _texts(variables: Mapping[str, Any]) -> dict[str, str]:
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in variables.items()}


KINDS = {
    fn.__name__: fn for fn in (cluster_spec, resolver, slurm_expand_hostlist, slurm_expand_tasks_per_node)
}
