"""Cluster resolvers, whose clouds are stand-ins that serve the data of a case."""

from __future__ import annotations

import json
import os
from typing import Any
from unittest import mock

import tensorflow as tf

from tests.differential.cases.tensorflow.notation import described
from tests.reference.interpreter.cloud_stubs import ComputeEngine, CoreClient, TpuService
from tests.reference.interpreter.codec import Json

_resolvers = tf.distribute.cluster_resolver


def resolver(given: Json) -> Json:
    """What a resolver answers, one answer per query."""
    variables = given.get("env", {}).items()
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in variables}
    with mock.patch.dict(os.environ, texts, clear=True):
        made = _made(given["resolver"])
        return {"results": [_answer(made, query) for query in given["queries"]]}


def cluster(jobs: Json) -> Any:
    """A cluster, of jobs as JSON has them: it has texts for the numbers of tasks."""
    return tf.train.ClusterSpec(
        {
            job: {int(number): address for number, address in tasks.items()}
            if isinstance(tasks, dict)
            else tasks
            for job, tasks in jobs.items()
        }
    )


def _made(given: Json) -> Any:
    kwargs = given.get("kwargs", {})
    match given["type"]:
        case "Simple":
            return _resolvers.SimpleClusterResolver(cluster(given["cluster_spec"]), **kwargs)
        case "Union":
            return _resolvers.UnionResolver(*map(_made, given["resolvers"]), **kwargs)
        case "Kubernetes":
            return _resolvers.KubernetesClusterResolver(override_client=CoreClient(given["pods"]), **kwargs)
        case "GCE":
            engine = ComputeEngine(given["instance_pages"])
            return _resolvers.GCEClusterResolver(**kwargs, credentials=None, service=engine)
        case "TPU":
            service = TpuService(given["nodes"])
            return _resolvers.TPUClusterResolver(**kwargs, credentials=None, service=service)
        case kind:
            return getattr(_resolvers, f"{kind}ClusterResolver")(**kwargs)


def _answer(made: Any, query: Json) -> Any:
    name, arguments = (query, {}) if isinstance(query, str) else query
    try:
        if name == "set":
            return [setattr(made, key, value) for key, value in arguments.items()][-1]
        found = getattr(made, name)
        found = found(**arguments) if callable(found) else found
        return (
            found.as_dict() if name == "cluster_spec" else list(found) if isinstance(found, tuple) else found
        )
    except Exception as error:
        return described(error)
