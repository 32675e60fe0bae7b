"""Several TPU hosts: one program on all of them, compared before it runs; all start anew when one is lost."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from typing import Any

import numpy as np
import psutil
import pytest

import workbench as wb
from workbench.distribute import get_replica_context
from workbench.errors import DeadlineExceededError, ReplicaError, ReplicaLost, TracingError


@pytest.fixture
def hosts() -> Iterator[Any]:
    """Two hosts with two emulated devices each."""
    with wb.connect(hosts=2, tpu=2) as connected:
        yield connected


def total(strategy: Any) -> float:
    def step(x: Any) -> Any:
        ctx = get_replica_context()
        return ctx.all_reduce("SUM", x * (ctx.replica_id_in_sync_group + 1))

    return float(strategy.local_results(strategy.run(step, (np.float32(1),)))[3])


def run_until_it_is_noticed(strategy: Any) -> None:
    for _ in range(100):
        total(strategy)


def test_replicas_are_numbered_host_by_host(hosts: Any) -> None:
    strategy = wb.TPUStrategy()

    assert [(device.host, device.short) for device in strategy.devices] == [
        ("a", "TPU:0"),
        ("a", "TPU:1"),
        ("b", "TPU:0"),
        ("b", "TPU:1"),
    ]
    assert total(strategy) == 10


@pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="this system has no SCHED_BATCH, which Linux has")
def test_threads_of_emulated_devices_do_not_push_each_other_off_their_cores(hosts: Any) -> None:
    strategy = wb.TPUStrategy()
    total(strategy)

    for worker in hosts.gang.workers.values():
        policies = [os.sched_getscheduler(each.id) for each in psutil.Process(worker.pid).threads()]
        assert policies.count(os.SCHED_BATCH) >= 2
        assert os.sched_getscheduler(worker.pid) == os.SCHED_OTHER


def test_programs_that_differ_by_host_are_refused_before_they_run(hosts: Any) -> None:
    strategy = wb.TPUStrategy()

    def depends_on_the_process(x: Any) -> Any:
        return x * os.getpid()

    with pytest.raises(TracingError, match="hosts traced different programs: that of b is not that of a"):
        strategy.run(depends_on_the_process, (np.float32(1),))
    assert total(strategy) == 10


def test_jax_listens_at_loopback_and_its_cpu_collectives_at_the_machines_name(
    hosts: Any,
) -> None:
    assert total(wb.TPUStrategy()) == 10

    listening = {
        connection.laddr.ip.removeprefix("::ffff:")
        for worker in hosts.gang.workers.values()
        for connection in psutil.Process(worker.pid).net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }
    of_this_machine = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None)}
    assert "127.0.0.1" in listening
    assert listening <= {"127.0.0.1", "::1", *of_this_machine}


def test_a_failure_on_one_host_is_told_and_the_other_does_not_wait(hosts: Any) -> None:
    strategy = wb.TPUStrategy()
    strategy.run(lambda: 1)
    victim = next(iter(hosts.gang.workers.values())).pid

    def fails_there(x: Any) -> Any:
        if os.getpid() == victim:
            raise ZeroDivisionError("on one host")
        return get_replica_context().all_reduce("SUM", x)

    with pytest.raises(ZeroDivisionError, match="on one host") as caught:
        strategy.run(fails_there, (np.float32(1),))

    assert isinstance(caught.value, ReplicaError)
    assert total(strategy) == 10


def test_collectives_of_all_hosts_are_in_the_samples(hosts: Any) -> None:
    strategy = wb.TPUStrategy()

    def step(x: Any) -> Any:
        return get_replica_context().all_reduce("SUM", x * 2)

    (found,) = strategy.sample_collectives(step, (np.ones(1000, np.float32),), steps=3)
    rows = [row for row in wb.collectives(strategy).rows if row.algorithm == "sampled"]

    assert found.samples == 3 * 4
    assert [(row.op, row.size_bytes, row.samples) for row in rows] == [("all_reduce", 4000, 3)]


def test_narrowing_of_an_argument_is_said_in_the_cell_once_by_each_host(
    hosts: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Although nobody runs a replica function while arguments are put on the devices."""
    strategy = wb.TPUStrategy()
    for _ in range(2):
        strategy.run(lambda x: x, (np.ones(3),))

    lines = capsys.readouterr().err.splitlines()
    told = sorted(line.partition("]")[0] for line in lines if "JAX narrows" in line)
    assert told == ["[replica 0", "[replica 2"]


def test_a_step_that_waits_for_a_stopped_host_ends_by_its_deadline(hosts: Any) -> None:
    strategy = wb.TPUStrategy()
    options = wb.distribute.RunOptions(timeout_seconds=1)

    @wb.function
    def step(x: Any) -> Any:
        return get_replica_context().all_reduce("SUM", x)

    strategy.local_results(strategy.run(step, (np.float32(1),), options=options))  # compiled
    stopped = list(hosts.gang.workers.values())[1].pid
    os.kill(stopped, signal.SIGSTOP)
    try:
        # Before the stopped host is detected, which takes longer.
        with pytest.raises(DeadlineExceededError, match=r"'step' did not end within 1 s.*RunOptions"):
            strategy.local_results(strategy.run(step, (np.float32(1),), options=options))
    finally:
        os.kill(stopped, signal.SIGKILL)

    assert total(strategy) == 10


def test_all_hosts_start_anew_when_one_is_killed(hosts: Any) -> None:
    strategy = wb.TPUStrategy()
    assert total(strategy) == 10
    before = {name: worker.pid for name, worker in hosts.gang.workers.items()}

    os.kill(list(before.values())[1], signal.SIGKILL)
    with pytest.raises(ReplicaLost):
        run_until_it_is_noticed(strategy)

    assert total(strategy) == 10
    assert all(worker.pid != before[name] for name, worker in hosts.gang.workers.items())


def test_values_of_variables_are_said_to_be_lost_with_all_hosts(hosts: Any) -> None:
    strategy = wb.TPUStrategy()
    with strategy.scope():
        w = wb.Variable(1.0, name="w")
    strategy.run(lambda: w.assign_add(1.0))

    for worker in list(hosts.gang.workers.values()):
        os.kill(worker.pid, signal.SIGKILL)

    said: list[str] = []
    while (
        not said or "variable.assign" not in said[-1]
    ):  # a step may have been in progress: then it fails first
        with pytest.raises(ReplicaLost) as caught:
            run_until_it_is_noticed(strategy)
        said.append(str(caught.value))
        assert len(said) <= 2
    assert all("killed" in each for each in said)
    assert "'w:0'" in said[-1]
