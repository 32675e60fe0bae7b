"""`workbench join` on two hosts: a cluster forms, trains, and stays one while its network is cut and joined again."""

from __future__ import annotations

import contextlib
import json
import secrets
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.joined import JoinedTask
from tests.network.notebook import Driver, right
from tests.network.two_hosts import ADDRESSES, TwoHosts

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

CLUSTER = {"chief": ["host-a:2222"], "worker": ["host-b:2222"]}


class Site:
    """What runs on the hosts of a test; all of it has one secret, which no file carries."""

    def __init__(self, hosts: TwoHosts, running: contextlib.ExitStack) -> None:
        self.hosts = hosts
        self._running = running
        self._secret = {"WORKBENCH_SECRET": secrets.token_hex(32)}

    def task(self, host: str, **environment: str) -> JoinedTask:
        """A task that joins by what its environment says."""
        task = JoinedTask(
            secret_file=Path("/tmp/none"),
            environment={**environment, **self._secret},
            inside=self.hosts.inside[host],
        )
        self._running.callback(task.close)
        return task

    def tf_task(self, host: str, job: str) -> JoinedTask:
        """Task 0 of a job of CLUSTER."""
        return self.task(host, TF_CONFIG=_config(job))

    def notebook(
        self,
        host: str,
        address: str = "",
        minimum: int = 0,
        *,
        module: str = "tests.network.driver",
        **environment: str,
    ) -> Driver:
        """A notebook that attaches to the cluster."""
        inside, secret = self.hosts.inside[host], {**environment, **self._secret}
        driver = Driver(inside, address, {}, minimum, secret, module=module)
        self._running.callback(driver.close)
        return driver


@pytest.fixture
def site(hosts: TwoHosts) -> Iterator[Site]:
    with contextlib.ExitStack() as running:
        yield Site(hosts, running)
        hosts.join()


def _config(job: str) -> str:
    return json.dumps({"cluster": CLUSTER, "task": {"type": job, "index": 0}})


def _works(answer: Mapping[str, Any]) -> bool:
    return answer["value"] is not None


def test_a_cluster_that_is_cut_for_five_seconds_loses_no_step(site: Site) -> None:
    chief = site.tf_task("a", "chief")
    chief.says("chief-0 has joined from 10.254.0.1 (1 of 2 tasks, waiting for worker-0)")
    site.tf_task("b", "worker")
    chief.says(f"in a notebook: wb.connect('tls://{ADDRESSES['a']}:2222')")
    notebook = site.notebook("a", TF_CONFIG=_config("chief"))
    assert notebook.ask("hosts")["value"] == ["host-a", "host-b"]
    assert notebook.ask("step")["value"] == {"replicas": 2.0, "steps": 1.0}

    site.hosts.cut()
    joining = threading.Timer(5.0, site.hosts.join)
    joining.start()
    assert notebook.ask("step")["type"] == "ReplicaStalled"  # within stall_seconds, so nothing hangs
    back = notebook.until("step", _works, "the step after the network is back")
    joining.join(10)
    assert back["value"] == {"replicas": 2.0, "steps": 2.0}
    assert chief.interrupt() == 0


def _coordinator(site: Site) -> tuple[JoinedTask, Driver]:
    """A second cluster on the same hosts: its chief, and a notebook whose updates go to a server on host-b."""
    cluster = {
        "chief": ["host-a:3222"],
        "worker": ["host-a:3223", "host-b:3223"],
        "ps": ["host-b:3224"],
    }

    def config(job: str, index: int) -> str:
        return json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})

    chief = site.task("a", TF_CONFIG=config("chief", 0))
    for host, job, index in (("a", "worker", 0), ("b", "worker", 1), ("b", "ps", 0)):
        site.task(host, TF_CONFIG=config(job, index))
    chief.says("all 4 tasks are there")
    notebook = site.notebook("a", module="tests.network.updates", TF_CONFIG=config("chief", 0))
    places = notebook.ask("places")["value"]
    assert [place[:6] for place in places] == ["host-a", "host-b", "host-b"]
    assert right(notebook.ask("work"))["restarts"] == 0
    return chief, notebook


@pytest.mark.thorough
def test_clusters_that_are_cut_for_a_minute_grow_together_again_and_count_steps_and_updates_once(
    site: Site,
) -> None:
    """One minute serves both: a strategy that goes on in one half, and a lost parameter server and worker."""
    coordinating, updating = _coordinator(site)
    chief, worker = site.tf_task("a", "chief"), site.tf_task("b", "worker")
    chief.says("all 2 tasks are there")
    notebook = site.notebook("a", minimum=1, TF_CONFIG=_config("chief"))
    assert notebook.ask("step")["value"] == {"replicas": 2.0, "steps": 1.0}

    updating.tell("work")
    site.hosts.cut()
    joining = threading.Timer(60.0, site.hosts.join)
    joining.start()
    assert notebook.ask("step")["type"] == "ReplicaStalled"
    assert notebook.ask("step")["value"] == {"replicas": 1.0, "steps": 2.0}
    worker.says("worker-0 has lost the cluster")
    chief.says("worker-0 was lost (1 of 2 tasks, waiting for worker-0)")
    assert notebook.ask("step")["value"] == {"replicas": 1.0, "steps": 3.0}
    joining.join(90)

    worker.says("worker-0 has joined the cluster")
    chief.says("worker-0 has joined again")
    steps = 3.0
    while True:
        answer = notebook.ask("step")
        if _works(answer):  # each successful step counts once
            steps += 1.0
            assert answer["value"]["steps"] == steps
            if answer["value"]["replicas"] == 2.0:
                break
    assert chief.interrupt() == 0
    worker.says("the chief has ended the cluster")

    assert right(updating.answer(240.0))["restarts"] > 0
    right(updating.ask("work"))
    assert coordinating.interrupt() == 0


def test_tasks_of_srun_form_a_cluster_however_slurm_deals_them(site: Site) -> None:
    # Two tasks on host-a and one on host-b, distributed round-robin: number 1 runs on host-b.
    places = [("a", 0), ("b", 0), ("a", 1)]
    tasks = [
        site.task(
            host,
            SLURM_PROCID=str(rank),
            SLURM_STEP_NUM_TASKS="3",
            SLURM_STEP_NODELIST="host-a,host-b",
            SLURM_STEP_TASKS_PER_NODE="2,1",
            SLURMD_NODENAME=f"host-{host}",
            SLURM_LOCALID=str(local),
        )
        for rank, (host, local) in enumerate(places)
    ]
    tasks[0].says("all 3 tasks are there")
    assert "worker-2 on host-b" in tasks[1].lines[0]
    notebook = site.notebook("b", f"tls://{ADDRESSES['a']}:8888")
    assert notebook.ask("step")["value"] == {"replicas": 3.0, "steps": 1.0}
    assert tasks[0].interrupt() == 0
    for task in tasks[1:]:
        task.says("the chief has ended the cluster")
