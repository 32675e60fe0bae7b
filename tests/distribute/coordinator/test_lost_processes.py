"""Workers and servers are killed while functions run: each update counts once."""

from __future__ import annotations

import json
import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench import distribute
from workbench.errors import UnavailableError


def kill(cluster: Any, service: Any) -> None:
    """Kills the process of a service, if it has one."""
    (name,) = service._group.worker_names
    if not cluster.gang.workers[name].lost:
        os.kill(cluster.gang.workers[name].pid, signal.SIGKILL)


@pytest.mark.timeout(300)
def test_updates_are_exact_while_workers_and_servers_are_killed() -> None:
    chosen = random.Random(14)
    with wb.connect(replicas=4, replace=True) as cluster:
        strategy = distribute.ParameterServerStrategy(servers=2)
        coordinator = distribute.coordinator.ClusterCoordinator(strategy)
        with strategy.scope():
            a, b = wb.Variable(0), wb.Variable(0)

        @wb.function
        def step() -> None:
            a.assign_add(1)
            b.assign_add(2)
            a.assign_add(1)

        services = [lane.service for lane in coordinator._lanes] + strategy.hosting.servers
        for kills in range(12):
            for _ in range(60):
                coordinator.schedule(step)
            kill(cluster, chosen.choice(services))
            coordinator.join()

            assert (int(a), int(b)) == (120 * (kills + 1), 120 * (kills + 1))
        assert sum(service.restarts for service in services) >= 6


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_worker_that_ends_between_an_update_and_its_answer(nth: int, tmp_path: Path) -> None:
    rule = {"point": "servers.sent", "nth": nth, "action": "kill", "once": str(tmp_path / "killed")}
    with wb.connect(replicas=2, replace=True, environment={"WB_FAULTS": json.dumps([rule])}):
        strategy = distribute.ParameterServerStrategy(servers=1)
        coordinator = distribute.coordinator.ClusterCoordinator(strategy)
        with strategy.scope():
            v = wb.Variable(0)

        def step() -> None:
            v.assign_add(1)
            v.assign_add(10)

        for _ in range(5):
            coordinator.schedule(step)
        coordinator.join()

        assert int(v) == 55
        assert coordinator._lanes[0].service.restarts == 1


def test_datasets_are_made_again_on_the_worker_that_takes_the_place(tmp_path: Path) -> None:
    rule = {"point": "coordinator.after_call", "nth": 3, "action": "kill", "once": str(tmp_path / "killed")}
    with wb.connect(replicas=2, replace=True, environment={"WB_FAULTS": json.dumps([rule])}):
        strategy = distribute.ParameterServerStrategy(servers=1)
        coordinator = distribute.coordinator.ClusterCoordinator(strategy)
        iterator = iter(coordinator.create_per_worker_dataset(lambda: wb.data.Dataset.range(100)))

        @wb.function
        def take(it: Any) -> int:
            return int(next(it))

        values = [coordinator.schedule(take, args=(iterator,)).fetch() for _ in range(5)]

        assert values == [0, 1, 0, 1, 2]


def test_a_function_that_ends_its_process_is_given_up() -> None:
    with wb.connect(replicas=2, replace=True):
        strategy = distribute.ParameterServerStrategy(servers=1)
        coordinator = distribute.coordinator.ClusterCoordinator(strategy)

        def end() -> None:
            import os

            os._exit(3)

        coordinator.schedule(end)

        told = r"end has begun 4 times and never ended: worker 0 on \S+ exited with code 3 \(4 times\)\. It is not run"
        with pytest.raises(UnavailableError, match=told):
            coordinator.join()
        assert coordinator.schedule(lambda: 1).fetch() == 1
