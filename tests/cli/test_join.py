"""`workbench join` in processes on this machine: how a cluster forms, what is said, and how it ends."""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import psutil
import pytest

import workbench as wb
from tests.joined import PATIENCE_SECONDS, JoinedTask, free_address
from tests.until import until
from workbench.distribute.cluster_resolver import DaskClusterResolver, TFConfigClusterResolver
from workbench.errors import UnavailableError
from workbench.runtime.joining.secret import FILE_VARIABLE

pytestmark = pytest.mark.timeout(240)

SLOW_START = "import time\ntime.sleep(300)"
"""What a worker does before it is there."""


class Start(Protocol):
    """Starts a task with the arguments of the command, and further variables."""

    def __call__(self, *arguments: str, **environment: str) -> JoinedTask: ...


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / "secret"))
    with contextlib.ExitStack() as tasks:

        def started(*arguments: str, **environment: str) -> JoinedTask:
            task = JoinedTask(*arguments, secret_file=tmp_path / "secret", environment=environment)
            tasks.callback(task.close)
            return task

        yield started


def _count(strategy: wb.distribute.Strategy) -> float:
    def step() -> object:
        return wb.distribute.get_replica_context().all_reduce("SUM", 1.0)

    return float(strategy.reduce("MEAN", strategy.run(step), axis=None))


def test_tasks_in_terminals_train_end_and_come_back(start: Start, tmp_path: Path) -> None:
    address = free_address()
    chief = start("chief", "--chief", address, "--jobs", "worker=1,ps=1")
    chief.says("chief-0 has joined from 127.0.0.1 (1 of 3 tasks, waiting for worker-0, ps-0)")
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600
    worker = start("worker:0", "--chief", address)
    server = start("ps:0", "--chief", address)
    chief.says(f"all 3 tasks are there; in a notebook: wb.connect('tls://{address}')")

    with wb.connect(f"tls://{address}", minimum_replicas=1) as cluster:
        assert sorted(device.job for device in cluster.devices) == ["chief", "ps", "worker"]
        strategy = wb.MirroredStrategy()
        assert _count(strategy) == 2.0
        spec = DaskClusterResolver(cluster.client).cluster_spec()
        assert {job: spec.task_indices(job) for job in spec.jobs} == {"chief": [0], "ps": [0], "worker": [0]}

        worker.process.kill()
        chief.says("worker-0 was lost (2 of 3 tasks, waiting for worker-0)")
        again = start("worker:0", "--chief", address)
        again.says("worker-0 has joined")
        chief.says("worker-0 has joined again")
        _until_two(strategy)

    assert chief.interrupt() == 0
    for task in (again, server):
        assert task.process.wait(PATIENCE_SECONDS) == 0
    said = [line for task in (chief, worker, again, server) for line in task.lines]
    assert not [line for line in said if " - INFO - " in line]  # Dask's own


def _until_two(strategy: wb.distribute.Strategy) -> None:
    for _ in range(200):
        with contextlib.suppress(wb.errors.WorkbenchError):  # the cost of the loss
            if _count(strategy) == 2.0:
                return
    raise AssertionError("the worker did not take part again")


def test_tasks_end_with_their_chief(start: Start) -> None:
    address = free_address()
    chief = start("chief", "--chief", address, "--jobs", "worker=1")
    worker = start("worker:0", "--chief", address)
    worker.says("worker-0 has joined")
    _ends_with(chief, worker)


def _ends_with(chief: JoinedTask, worker: JoinedTask) -> None:
    assert chief.interrupt() == 0
    worker.says("the chief has ended the cluster")
    assert worker.process.wait(PATIENCE_SECONDS) == 0


def test_a_task_ends_with_its_chief_while_its_workers_start(start: Start) -> None:
    address = free_address()
    chief = start("chief", "--chief", address)
    chief.says("in a notebook")
    worker = start("worker:0", "--chief", address, DASK_DISTRIBUTED__WORKER__PRELOAD=SLOW_START)
    worker.says("secret")
    task = psutil.Process(worker.process.pid)
    until(lambda: len(task.children(recursive=True)) == 3, "fork server, resource tracker and worker")
    _ends_with(chief, worker)


def test_a_task_ends_with_its_chief_though_its_worker_does_not_answer(start: Start) -> None:
    address = free_address()
    chief = start("chief", "--chief", address)
    worker = start("worker:0", "--chief", address)
    worker.says("worker-0 has joined")
    task = psutil.Process(worker.process.pid)
    (stopped,) = (
        process for process in task.children(recursive=True) if process.parent() not in (None, task)
    )
    stopped.suspend()
    _ends_with(chief, worker)
    assert not stopped.is_running()


def test_a_task_that_is_interrupted_leaves_and_the_chief_names_it(start: Start) -> None:
    address = free_address()
    chief = start("chief", "--chief", address, "--jobs", "worker=1")
    worker = start("worker:0", "--chief", address)
    chief.says("all 2 tasks are there")
    assert worker.interrupt() == 0
    chief.says("worker-0 was lost (1 of 2 tasks, waiting for worker-0)")


def test_a_chief_that_was_killed_gets_its_tasks_back(start: Start) -> None:
    address = free_address()
    chief = start("chief", "--chief", address)
    worker = start("worker:0", "--chief", address)
    worker.says("worker-0 has joined")
    chief.process.send_signal(signal.SIGKILL)
    worker.says("worker-0 has lost the cluster")
    start("chief", "--chief", address).says("worker-0 has joined")


def test_one_process_may_give_several_devices(start: Start) -> None:
    address = free_address()
    start("chief", "--chief", address, "--replicas", "2").says("in a notebook")
    with wb.connect(f"tls://{address}"):
        strategy = wb.MirroredStrategy()
        assert strategy.num_replicas_in_sync == 2
        assert _count(strategy) == 2.0


def test_tf_config_forms_a_cluster_that_its_resolver_finds(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = {"worker": [free_address(), free_address()]}
    for index in range(2):
        start(TF_CONFIG=json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}}))
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster}))
    strategy = wb.MultiWorkerMirroredStrategy(TFConfigClusterResolver())
    try:
        assert strategy.num_replicas_in_sync == 2
        assert _count(strategy) == 2.0
        assert wb.connect(TFConfigClusterResolver()) is wb.runtime.current_cluster()
    finally:
        found = wb.runtime.current_cluster()
        assert found is not None
        found.close()


def test_parameter_servers_and_workers_are_the_tasks_of_the_resolver(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = {job: [free_address()] for job in ("chief", "worker", "ps")}
    for job in cluster:
        start(TF_CONFIG=json.dumps({"cluster": cluster, "task": {"type": job, "index": 0}}))
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster}))
    assert wb.runtime.current_cluster() is None or wb.runtime.current_cluster().closed  # type: ignore[union-attr]
    strategy = wb.distribute.ParameterServerStrategy(TFConfigClusterResolver())
    try:
        with strategy.scope():
            count = wb.Variable(0, name="count")
        coordinator = wb.distribute.coordinator.ClusterCoordinator(strategy)
        for _ in range(10):
            coordinator.schedule(lambda: count.assign_add(1))
        coordinator.join()
        assert int(count) == 10
        found = wb.runtime.current_cluster()
        assert found is not None
        assert sorted(device.job for device in found.devices) == ["chief", "ps", "worker"]
    finally:
        strategy.close()
        found = wb.runtime.current_cluster()
        assert found is not None
        found.close()


def test_connecting_names_the_tasks_that_have_not_joined(start: Start) -> None:
    address = free_address()
    start("chief", "--chief", address).says("in a notebook")
    spec = wb.distribute.ClusterSpec({"chief": [address], "worker": ["127.0.0.1:1", "127.0.0.1:2"]})
    resolver = wb.distribute.cluster_resolver.SimpleClusterResolver(spec)
    with pytest.raises(UnavailableError, match=r"worker-0, worker-1 of 3 tasks have not joined"):
        wb.connect(resolver, timeout_seconds=1.0)


def test_a_task_with_another_secret_is_not_let_in(start: Start) -> None:
    address = free_address()
    chief = start("chief", "--chief", address)
    chief.says("in a notebook")
    stranger = start("worker:0", "--chief", address, WORKBENCH_SECRET="f" * 64)
    stranger.says("has a different secret from this task")
    assert stranger.process.wait(PATIENCE_SECONDS) == 1
    assert "WORKBENCH_SECRET" in stranger.lines[-1]


def test_a_notebook_with_another_secret_is_not_let_in(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    address = free_address()
    start("chief", "--chief", address).says("in a notebook")
    monkeypatch.setenv("WORKBENCH_SECRET", "f" * 64)
    with pytest.raises(UnavailableError, match="needs the secret of its tasks"):
        wb.connect(f"tls://{address}")


def test_a_second_task_of_one_number_is_told_to_take_another(start: Start) -> None:
    address = free_address()
    start("chief", "--chief", address).says("in a notebook")
    second = start("chief:0", "--chief", address)
    second.says("cannot listen at")
    assert second.process.wait(PATIENCE_SECONDS) == 1
    start("worker:0", "--chief", address).says("worker-0 has joined")
    twin = start("worker:0", "--chief", address, "--timeout", "2")
    twin.says("give this one another number")
    assert twin.process.wait(PATIENCE_SECONDS) == 1


def test_nobody_waits_for_ever(start: Start) -> None:
    address = free_address()
    lonely = start("worker:0", "--chief", address, "--timeout", "1")
    lonely.says("no scheduler of chief-0 answers")
    assert lonely.process.wait(PATIENCE_SECONDS) == 1
    chief = start("chief", "--chief", address, "--jobs", "worker=2", "--timeout", "4")
    chief.says("worker-0, worker-1 did not join within 4 s")
    assert chief.process.wait(PATIENCE_SECONDS) == 1


def test_a_task_whose_time_is_over_before_its_workers_have_started_says_only_that(start: Start) -> None:
    chief = start(
        "chief",
        "--chief",
        free_address(),
        "--jobs",
        "worker=1",
        "--timeout",
        "1",
        DASK_DISTRIBUTED__WORKER__PRELOAD=SLOW_START,
    )
    chief.says("chief-0, worker-0 did not join within 1 s")
    assert chief.process.wait(PATIENCE_SECONDS) == 1
    chief.close()
    assert not [line for line in chief.lines if "exception" in line or "Traceback" in line]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing tells which cluster to join"),
        (("Chief one",), "write a task like chief, worker:1 or ps:0"),
        (("worker:3", "--jobs", "worker=2"), "worker-3 is not among the tasks that --jobs names"),
        (("worker:0", "--chief", "somewhere"), "not an address of a task"),
        (("chief", "--chief", "192.0.2.1:80", "--timeout", "1"), "not an address of this machine"),
    ],
)
def test_what_cannot_be_is_said_at_once(start: Start, arguments: tuple[str, ...], message: str) -> None:
    task = start(*arguments)
    task.says(message)
    assert task.process.wait(PATIENCE_SECONDS) == 1
