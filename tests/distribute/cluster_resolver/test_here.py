"""Which resolver knows the cluster that a process was started in, and which task the process is."""

from __future__ import annotations

import json
import os

import pytest

from tests.distribute.cluster_resolver.test_resolvers import _step
from workbench.distribute import ClusterSpec
from workbench.distribute.cluster_resolver import (
    SimpleClusterResolver,
    SlurmClusterResolver,
    TFConfigClusterResolver,
)
from workbench.distribute.cluster_resolver.here import resolver_here, task_here
from workbench.errors import InvalidArgumentError
from workbench.runtime.deploy.tasks import Task


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("SLURM") or name in ("TF_CONFIG", "CUDA_VISIBLE_DEVICES"):
            monkeypatch.delenv(name)


def test_tf_config_comes_before_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolver_here() is None
    _step(monkeypatch, 0, 1, "n1", "1")
    assert isinstance(resolver_here(), SlurmClusterResolver)
    config = {"cluster": {"worker": ["a:1"], "ps": ["b:1"]}, "task": {"type": "ps", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    found = resolver_here()
    assert isinstance(found, TFConfigClusterResolver)
    assert task_here(found) == Task("ps", 0)


def test_slurm_tells_which_task_this_is(monkeypatch: pytest.MonkeyPatch) -> None:
    _step(monkeypatch, 1, 3, "n[1-3]", "1(x3)")
    resolver = resolver_here({"worker": 2, "chief": 1})
    assert resolver is not None
    assert task_here(resolver) == Task("worker", 0)


@pytest.mark.parametrize(
    ("node", "local", "address"), [("n9", "0", "n9:8888"), ("n10", "0", "n10:8888"), ("n10", "1", "n10:8889")]
)
def test_a_task_of_slurm_has_the_address_of_the_host_that_it_runs_on(
    monkeypatch: pytest.MonkeyPatch, node: str, local: str, address: str
) -> None:
    # Slurm sorts n9 before n10, the resolver the other way round; tasks were distributed round-robin (-m cyclic).
    rank = {("n9", "0"): 0, ("n10", "0"): 1, ("n10", "1"): 2}[node, local]
    _step(monkeypatch, rank, 3, "n[9-10]", "1,2")
    monkeypatch.setenv("SLURMD_NODENAME", node)
    monkeypatch.setenv("SLURM_LOCALID", local)
    resolver = SlurmClusterResolver()
    task = task_here(resolver)
    assert resolver.cluster_spec().task_address(task.job, task.index) == address


def test_without_a_number_the_task_is_the_one_at_this_machines_address() -> None:
    spec = ClusterSpec({"worker": ["192.0.2.1:1", "127.0.0.1:1"]})
    assert task_here(SimpleClusterResolver(spec)) == Task("worker", 1)
    for ambiguous in (["127.0.0.1:1", "127.0.0.1:2"], ["192.0.2.1:1"]):
        with pytest.raises(InvalidArgumentError, match="does not tell which task this is"):
            task_here(SimpleClusterResolver(ClusterSpec({"worker": ambiguous})))
