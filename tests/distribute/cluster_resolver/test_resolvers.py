"""Resolvers that read the environment: given clusters, TF_CONFIG, unions, Slurm. `tests/reference` has more cases."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.errors import InvalidArgumentError, NotFoundError

resolvers = wb.distribute.cluster_resolver
TWO = wb.distribute.ClusterSpec({"worker": ["a:1", "b:1"]})


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("SLURM_") or name in (
            "TF_CONFIG",
            "CUDA_VISIBLE_DEVICES",
            "WORKBENCH_SLURM_GPUS",
            "TPU_NAME",
        ):
            monkeypatch.delenv(name)


def _step(monkeypatch: pytest.MonkeyPatch, rank: int, tasks: int, hosts: str, per_node: str) -> None:
    """The environment that srun sets for a task."""
    for name, value in {
        "PROCID": rank,
        "STEP_NUM_TASKS": tasks,
        "STEP_NODELIST": hosts,
        "STEP_TASKS_PER_NODE": per_node,
    }.items():
        monkeypatch.setenv(f"SLURM_{name}", str(value))


def test_a_resolver_of_ones_own_needs_a_spec_and_a_master() -> None:
    with pytest.raises(TypeError, match="abstract"):
        resolvers.ClusterResolver()  # type: ignore[abstract]

    class Fixed(resolvers.ClusterResolver):
        def cluster_spec(self) -> Any:
            return TWO

        def master(self, task_type: Any = None, task_id: Any = None, rpc_layer: Any = None) -> str:
            return self.address_of("worker", 0, rpc_layer)

    assert Fixed().master(rpc_layer="grpc") == "grpc://a:1"
    assert Fixed().environment == ""
    assert (Fixed().task_type, Fixed().task_id) == (None, None)
    assert resolvers.UnionResolver(Fixed()).cluster_spec() == TWO


def test_a_given_cluster() -> None:
    resolver = resolvers.SimpleClusterResolver(TWO, task_type="worker", num_accelerators={"GPU": 2})
    resolver.task_id, resolver.rpc_layer = 1, "grpc"

    assert resolver.master("worker", 0) == "grpc://a:1"
    assert resolver.num_accelerators() == {"GPU": 2}
    assert resolvers.SimpleClusterResolver(TWO).num_accelerators() == {}
    with pytest.raises(TypeError, match=r'num_accelerators is a dict .* got 2; write \{"GPU": 2\}'):
        resolvers.SimpleClusterResolver(TWO, num_accelerators=2)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="takes a ClusterSpec, got dict"):
        resolvers.SimpleClusterResolver({"worker": ["a:1"]})


def test_tf_config_is_read_at_every_question(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = resolvers.TFConfigClusterResolver()
    assert not resolver.cluster_spec()
    assert resolver.master() == ""

    config = {"cluster": TWO.as_dict(), "task": {"type": "worker", "index": "1"}, "rpc_layer": "grpc"}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    assert (resolver.task_type, resolver.task_id, resolver.master()) == ("worker", 1, "grpc://b:1")

    resolver.task_id = 0
    assert resolver.master() == "grpc://a:1"
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": {"worker": {"2": "c:1", "5": "f:1"}}}))
    assert resolver.cluster_spec().as_dict() == {"worker": {2: "c:1", 5: "f:1"}}


def test_what_is_given_in_the_place_of_tf_config_is_read_like_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": {"5": ["a:1", "b:1"]}, "task": {"type": 5}}))
    resolver = resolvers.TFConfigClusterResolver(task_id="1")  # type: ignore[arg-type]

    assert (resolver.task_type, resolver.task_id, resolver.master()) == ("5", 1, "b:1")
    resolver.task_id = "x"  # type: ignore[assignment]
    with pytest.raises(ValueError, match="TFConfigClusterResolver: the task's index is a number, got 'x'"):
        resolver.master()


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("{not json", "TF_CONFIG is not JSON: .*line 1 column 2"),
        (
            '{"cluster": {"worker": ["a", "b"]}, "task": {"index": "x"}}',
            "the task's index is a number, got 'x'",
        ),
        ('{"cluster": {"worker": ["a", "b"]}, "task": 3}', '"task" is a dict with "type" and "index", got 3'),
        ('{"cluster": {"worker": ["a", "b"]}}', "TF_CONFIG names no task: add"),
    ],
)
def test_a_wrong_tf_config_says_what_is_wrong(
    config: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_CONFIG", config)
    with pytest.raises(ValueError, match=says):
        resolvers.TFConfigClusterResolver().master()


def test_a_union_numbers_tasks_on_or_keeps_their_numbers() -> None:
    sparse = resolvers.SimpleClusterResolver(wb.distribute.ClusterSpec({"worker": {5: "f:1"}}))
    dense = resolvers.SimpleClusterResolver(TWO, task_type="worker", task_id=1)

    assert resolvers.UnionResolver(dense, dense).cluster_spec().num_tasks("worker") == 4
    merged = resolvers.UnionResolver(dense, sparse)
    assert merged.cluster_spec().as_dict() == {"worker": {0: "a:1", 1: "b:1", 5: "f:1"}}
    assert (merged.task_type, merged.task_id, merged.master("worker", 5)) == ("worker", 1, "f:1")
    with pytest.raises(KeyError, match="two tasks of the number 5"):
        resolvers.UnionResolver(sparse, sparse).cluster_spec()


def test_parts_of_a_union_that_number_tasks_themselves_make_all_keep_their_numbers() -> None:
    sparse = resolvers.SimpleClusterResolver(wb.distribute.ClusterSpec({"worker": {5: "f:1"}}))
    dense = resolvers.SimpleClusterResolver(TWO)

    for parts in ((dense, dense, sparse), (dense, sparse, dense), (sparse, dense, dense)):
        with pytest.raises(KeyError, match="two tasks of the number 0"):
            resolvers.UnionResolver(*parts).cluster_spec()


def test_a_union_asks_its_first_resolver_each_time() -> None:
    first = resolvers.SimpleClusterResolver(TWO, master="m:1")
    union = resolvers.UnionResolver(first)
    first.task_type, first.task_id, first.rpc_layer = "worker", 1, "grpc"

    assert (union.task_type, union.task_id, union.rpc_layer) == ("worker", 1, "grpc")
    assert (union.master(), union.master("worker", 0)) == ("grpc://m:1", "a:1")
    union.task_type, union.task_id, union.rpc_layer = "ps", 3, "http"
    assert (union.task_type, union.task_id, union.rpc_layer) == ("ps", 3, "http")
    assert (union.master(), union.master("worker", 0)) == ("grpc://m:1", "http://a:1")
    with pytest.raises(ValueError, match="takes rpc_layer, task_type and task_id by name, got environment"):
        resolvers.UnionResolver(first, environment="cloud")


def test_slurm_deals_tasks_to_jobs_in_the_order_of_names(monkeypatch: pytest.MonkeyPatch) -> None:
    _step(monkeypatch, 3, 5, "n[9-10]", "2,3")
    resolver = resolvers.SlurmClusterResolver(jobs={"worker": 4, "ps": 1})

    assert resolver.get_task_info() == (None, None)
    assert resolver.master() == ""
    spec = resolver.cluster_spec().as_dict()
    assert spec == {"ps": ["n10:8888"], "worker": ["n10:8889", "n10:8890", "n9:8888", "n9:8889"]}
    assert resolver.get_task_info() == ("worker", 2)
    assert resolver.master() == "grpc://n9:8888"


def test_slurm_works_without_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    _step(monkeypatch, 1, 2, "n[1-2]", "1(x2)")
    resolver = resolvers.SlurmClusterResolver(port_base=np.int64(7000))  # type: ignore[arg-type]

    assert resolver.cluster_spec().as_dict() == {"worker": ["n1:7000", "n2:7000"]}
    assert resolver.num_accelerators() == {"GPU": 0}
    assert "CUDA_VISIBLE_DEVICES" not in os.environ


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"jobs": {}}, RuntimeError, "have 0 tasks, Slurm started 2"),
        ({"jobs": {"worker": 3, "ps": -1}}, ValueError, r"jobs\['ps'\] must be an integer of at least 0"),
        ({"tasks_per_node": "1(x2)"}, ValueError, "tasks_per_node must be an integer"),
        ({"tasks_per_node": {"n1": 2.0}}, ValueError, "tasks_per_node must be an integer"),
        ({"gpus_per_node": -4}, ValueError, "gpus_per_node must be an integer of at least 0"),
        ({"gpus_per_node": 4, "gpus_per_task": -1}, ValueError, "gpus_per_task must be an integer"),
        ({"gpus_per_node": 2**31}, ValueError, "no host has more than 4,096 GPUs"),
        ({"tasks_per_node": 2**40}, RuntimeError, "have 2199023255552 tasks, Slurm started 2"),
    ],
)
def test_slurm_refuses_numbers_that_make_no_cluster(
    arguments: dict[str, Any], error: type[Exception], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _step(monkeypatch, 1, 2, "n[1-2]", "1(x2)")
    with pytest.raises(error, match=says):
        resolvers.SlurmClusterResolver(**arguments)


def test_slurm_refuses_a_task_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    _step(monkeypatch, 9, 2, "n[1-2]", "1(x2)")
    with pytest.raises(RuntimeError, match="SLURM_PROCID is 9, and tasks have numbers from 0 to 1"):
        resolvers.SlurmClusterResolver()


@pytest.mark.parametrize("variable", ["SLURM_PROCID", "SLURM_STEP_NUM_TASKS"])
@pytest.mark.parametrize("value", ["", "a", "1.5", "-1", "9" * 12])
def test_slurm_says_which_variable_is_no_number(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _step(monkeypatch, 1, 2, "n[1-2]", "1(x2)")
    monkeypatch.setenv(variable, value)
    with pytest.raises(
        RuntimeError, match=f"{variable}, .*, is a whole number from 0 to 1,000,000, got '{value}'"
    ):
        resolvers.SlurmClusterResolver()


def test_slurm_gives_each_task_its_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CUDA_VISIBLE_DEVICES", "WORKBENCH_SLURM_GPUS"):
        monkeypatch.setenv(name, "")  # undone after the test, whatever the resolver sets
    _step(monkeypatch, 1, 2, "n1", "2")
    resolver = resolvers.SlurmClusterResolver(gpus_per_node=4)
    resolver.cluster_spec()

    assert os.environ["CUDA_VISIBLE_DEVICES"] == "2,3"
    assert resolver.num_accelerators() == {"GPU": 2}


def test_slurm_deals_the_gpus_that_cuda_names(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CUDA_VISIBLE_DEVICES", "WORKBENCH_SLURM_GPUS"):
        monkeypatch.setenv(name, "")  # undone after the test, whatever the resolver sets
    _step(monkeypatch, 1, 2, "n1", "2")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5, GPU-1f,GPU-2a")
    for resolver in (resolvers.SlurmClusterResolver(), resolvers.SlurmClusterResolver()):
        resolver.cluster_spec()
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-1f,GPU-2a"

    # A second resolver distributes what the first one started with, not what it left. A program that sets the
    # variable starts afresh.
    again = resolvers.SlurmClusterResolver(gpus_per_node=2)
    assert again.num_accelerators() == {"GPU": 1}
    again.cluster_spec()
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "5"
    assert resolvers.SlurmClusterResolver().num_accelerators() == {"GPU": 2}
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "6,7")
    resolvers.SlurmClusterResolver().cluster_spec()
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "7"


@pytest.mark.parametrize("hidden", ["", "-1", "NoDevFiles"])
def test_slurm_deals_no_gpus_that_are_hidden(monkeypatch: pytest.MonkeyPatch, hidden: str) -> None:
    _step(monkeypatch, 0, 1, "n1", "1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    resolver = resolvers.SlurmClusterResolver()
    resolver.cluster_spec()

    assert resolver.num_accelerators() == {"GPU": 0}
    assert os.environ["CUDA_VISIBLE_DEVICES"] == hidden


@pytest.mark.parametrize(
    ("step", "arguments", "says"),
    [
        ((0, 2, "n[1-2]", "1(x2)"), {"jobs": {"worker": 3}}, "have 3 tasks, Slurm started 2"),
        ((0, 3, "n[1-2]", "1(x2)"), {}, "have 2 tasks, Slurm started 3"),
        ((0, 2, "n[1-2]", "1"), {}, "names 2 hosts and numbers of tasks for 1"),
        (
            (0, 2, "n1", "2"),
            {"gpus_per_node": 1, "gpus_per_task": 1},
            "2 tasks of a host need 1 GPUs each, it has 1",
        ),
    ],
)
def test_a_step_that_does_not_add_up_is_refused(
    step: Any, arguments: Any, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _step(monkeypatch, *step)
    with pytest.raises(RuntimeError, match=says):
        resolvers.SlurmClusterResolver(**arguments)


def test_outside_of_a_step_slurm_says_which_variable_is_missing() -> None:
    with pytest.raises(RuntimeError, match="SLURM_PROCID, the number of this task, is not set"):
        resolvers.SlurmClusterResolver()


def test_a_range_of_hosts_that_no_cluster_has_is_refused_at_once() -> None:
    with pytest.raises(InvalidArgumentError, match="more than 1,000,000 hosts"):
        resolvers.expand_hostlist("n[0-99999999999]")
    with pytest.raises(InvalidArgumentError, match="malformed numbers of tasks"):
        resolvers.expand_tasks_per_node("1(x99999999999)")
    with pytest.raises(InvalidArgumentError, match="malformed numbers of tasks"):
        resolvers.expand_tasks_per_node("99999999999")
    assert resolvers.expand_hostlist("rack[1-2]-gpu,m") == ["rack1-gpu", "rack2-gpu", "m"]
    assert resolvers.expand_hostlist("[1-2],m,") == ["1", "2", "m"]
    with pytest.raises(InvalidArgumentError, match="malformed host list"):
        resolvers.expand_hostlist("n[1-2] , m")


@pytest.mark.parametrize("index", ["1e999", "-1e999", '"x"', "[]"])
def test_an_index_that_is_no_number_is_told(index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CONFIG", f'{{"task": {{"type": "worker", "index": {index}}}}}')
    with pytest.raises(InvalidArgumentError, match="TF_CONFIG: the task's index is a number"):
        _ = resolvers.TFConfigClusterResolver().task_id


def test_a_session_master_counts_also_if_it_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {"worker": ["a:1", "b:1"]}, "session_master": ""}')
    assert resolvers.TFConfigClusterResolver().master() == ""


def test_a_task_with_a_number_above_0_is_not_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = '{"cluster": {"worker": {"1": "b:1"}}, "task": {"type": "worker", "index": 1}}'
    monkeypatch.setenv("TF_CONFIG", cluster)
    assert resolvers.TFConfigClusterResolver().master() == "b:1"


def test_a_simple_resolver_takes_the_leader_as_a_text() -> None:
    with pytest.raises(TypeError, match="jobs is a dict from job to number of tasks, got"):
        resolvers.SlurmClusterResolver(["worker"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="port_base must be a whole number, got str 'x'"):
        resolvers.SlurmClusterResolver(port_base="x")  # type: ignore[arg-type]
    with pytest.raises(
        TypeError, match="job_to_label_mapping is a dict from job to label selectors, got 'worker'"
    ):
        resolvers.KubernetesClusterResolver("worker")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="master is an address, got NoneType"):
        resolvers.SimpleClusterResolver(wb.distribute.ClusterSpec({}), master=None)


def test_a_tpu_elsewhere_is_not_driven_through_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotFoundError, match="is not the TPU of this machine"):
        resolvers.TPUClusterResolver.connect("grpc://10.0.0.2:8470")
    with pytest.raises(ValueError, match="no TPU is named"):
        resolvers.TPUClusterResolver()
    monkeypatch.setenv("TPU_NAME", "local")
    assert resolvers.TPUClusterResolver().master() == ""
    with (
        wb.connect(replicas=1, processes=False),
        pytest.raises(NotFoundError, match="a cluster without TPUs"),
    ):
        resolvers.TPUClusterResolver.connect()


def test_a_resolver_tells_its_task_and_asks_nobody_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = resolvers.TFConfigClusterResolver()
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert repr(resolver) == "<TFConfigClusterResolver: this process is none of the tasks>"
    monkeypatch.setenv("TF_CONFIG", json.dumps({"task": {"type": "worker", "index": 2}}))
    assert repr(resolver) == "<TFConfigClusterResolver: this process is worker 2>"
    monkeypatch.setenv("TF_CONFIG", "{")
    assert repr(resolver).startswith("<TFConfigClusterResolver: TF_CONFIG is not JSON")

    spec = wb.distribute.ClusterSpec({"worker": ["a:1"]})
    assert repr(resolvers.SimpleClusterResolver(spec)) == (
        "<SimpleClusterResolver: ClusterSpec({'worker': ['a:1']})>"
    )


class _Nodes:
    """A client of the Cloud TPU API that knows one TPU."""

    def __getattr__(self, name: str) -> Any:
        return lambda **_: self

    def get(self, *, name: str) -> _Nodes:
        if not name.endswith("/known"):
            raise OSError(404, name)
        return self

    def execute(self) -> Any:
        return {"state": "READY", "health": "HEALTHY", "ipAddress": "10.0.0.2", "port": "8470"}


def _tpu(*args: Any, **kwargs: Any) -> Any:
    return resolvers.TPUClusterResolver(*args, zone="z", project="p", service=_Nodes(), **kwargs)


def test_addresses_of_tpus_are_separated_by_commas_and_have_a_port() -> None:
    resolver = _tpu("grpc://10.0.0.2,grpc://10.0.0.3:9000")

    assert resolver.cluster_spec().as_dict() == {"worker": ["10.0.0.2:8470", "10.0.0.3:9000"]}
    assert resolver.master("worker", 1) == "grpc://10.0.0.3:9000"


def test_a_tpu_leads_unless_job_and_number_are_given() -> None:
    resolver = _tpu("known", job_name="trainer")

    assert resolver.master("worker") == resolver.master("trainer", 0) == "grpc://10.0.0.2:8470"
    with pytest.raises(ValueError, match="no job 'worker'"):
        resolver.master("worker", 0)


def test_a_tpu_that_the_api_does_not_know_is_named() -> None:
    with pytest.raises(ValueError, match=r"cannot look up TPU 'lost': check its name.*nodes/lost"):
        _tpu("lost").cluster_spec()


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"tpu": []}, ValueError, "no TPU is named"),
        ({"tpu": ["a", "b"]}, NotImplementedError, "one resolver is for one TPU"),
        ({"tpu": 5}, TypeError, "tpu is a name, got int: 5"),
        ({"tpu": "a", "coordinator_address": "c:1"}, ValueError, "coordinator_name is missing"),
    ],
)
def test_what_names_no_tpu_is_refused(arguments: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        _tpu(**arguments)
