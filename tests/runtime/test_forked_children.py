"""A process that is forked off the driver or a worker owns nothing of it; its parent goes on untouched."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import workbench as wb
from workbench import forks
from workbench.checkpoint import save
from workbench.checkpoint.folder import folder_at
from workbench.errors import ClusterClosed
from workbench.runtime import connect_cluster
from workbench.runtime.deploy.registry import Registry

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here"),
    # Python's warning, since 3.12, about every fork of a process with threads.
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
    # JAX's warning about every fork once it has devices, which an earlier test may have requested.
    pytest.mark.filterwarnings("ignore:.*multithreaded.*:RuntimeWarning"),
]
PATIENCE_SECONDS = 60.0


@pytest.fixture(scope="module")
def sockets_of_others() -> set[str]:
    """Those that whatever runs the tests has open, before there is a cluster."""
    return sockets()


@pytest.fixture(scope="module", params=["processes", "threads", "hosts"])
def cluster(request: pytest.FixtureRequest, sockets_of_others: set[str]) -> Iterator[wb.Cluster]:
    layouts: dict[str, dict[str, Any]] = {
        "processes": {"replicas": 2},
        "threads": {"replicas": 2, "processes": False},
        "hosts": {"hosts": 2, "replicas_per_host": 1},
    }
    with wb.connect(**layouts[request.param]) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def strategy(cluster: wb.Cluster) -> wb.MirroredStrategy:
    return wb.MirroredStrategy(cluster.devices)


def summed() -> Any:
    return wb.distribute.get_replica_context().all_reduce("sum", np.ones(3))


def pids(cluster: wb.Cluster) -> list[int]:
    return [worker.pid for worker in cluster.gang.workers.values()]


def forked(body: Callable[[], object]) -> int:
    """Exit code of a child that runs `body` and ends as programs end, with everything that runs `atexit`."""
    pid = os.fork()
    if not pid:
        code = 1
        try:
            body()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(BaseException):
                _end_as_programs_do()
            os._exit(code)  # pytest's own part of a child must not run
    return code_of(pid)


def _end_as_programs_do() -> None:
    import atexit

    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()


def code_of(pid: int) -> int:
    """Waits for a child; one that hangs is ended."""
    watch = threading.Timer(PATIENCE_SECONDS, os.kill, (pid, 9))
    watch.start()
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    finally:
        watch.cancel()
        watch.join(PATIENCE_SECONDS)


def test_a_child_is_told_that_the_cluster_is_its_parents(
    strategy: wb.MirroredStrategy, cluster: wb.Cluster
) -> None:
    with strategy.scope():
        variable = wb.Variable(np.zeros(3))
    strategy.run(lambda: variable.assign_add(summed()))
    large = strategy.run(lambda: np.zeros(100_000))
    parent, before = os.getpid(), pids(cluster)
    here = cluster.gang.shipping.codec.by_reference  # and so is what replicas hold

    def body() -> None:
        uses: list[Callable[[], object]] = [
            lambda: strategy.run(summed),
            lambda: cluster.group(cluster.devices, label="x"),
        ]
        if not here:
            uses += [variable.numpy, lambda: strategy.local_results(large)]
        for use in uses:
            with pytest.raises(ClusterClosed, match=f"belongs to process {parent}"):
                use()
        assert wb.current_cluster() is None
        assert "stopped" in repr(cluster)
        cluster.close()

    assert forked(body) == 0
    strategy.run(lambda: variable.assign_add(summed()))
    assert variable.numpy().tolist() == [4.0, 4.0, 4.0]
    assert pids(cluster) == before
    assert wb.current_cluster() is cluster


def test_steps_go_on_while_children_come_and_go(strategy: wb.MirroredStrategy, cluster: wb.Cluster) -> None:
    before = pids(cluster)
    codes: list[int] = []

    def children() -> None:
        codes.extend(forked(lambda: None) for _ in range(5))

    thread = threading.Thread(target=children)
    thread.start()
    while thread.is_alive():
        assert strategy.reduce("sum", strategy.run(summed), axis=None).tolist() == [4.0, 4.0, 4.0]
    thread.join(PATIENCE_SECONDS)
    assert codes == [0] * 5
    assert pids(cluster) == before


def test_a_child_does_not_count_what_its_parent_saves_as_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    path, codes = folder_at("memory://forked/x").name, list[int]()

    def body() -> None:
        assert not save.is_saving_to(path)

    def fork(point: str) -> None:
        if point == "checkpoint.before_manifest":
            assert save.is_saving_to(path)
            codes.append(forked(body))

    monkeypatch.setattr(save, "fault", fork)
    wb.Checkpoint(epoch=3).write(path)

    assert codes == [0]
    assert not save.is_saving_to(path)


def test_a_child_that_is_forked_while_locks_are_held_does_not_wait_for_them(
    strategy: wb.MirroredStrategy, cluster: wb.Cluster
) -> None:
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with cluster.gang.lock, cluster.feed._lock, connect_cluster._lock:
            held.set()
            done.wait(PATIENCE_SECONDS)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(PATIENCE_SECONDS)

    def body() -> None:
        cluster.feed.snapshot()
        with pytest.raises(ClusterClosed):
            strategy.run(summed)

    try:
        assert forked(body) == 0
    finally:
        done.set()
        thread.join(PATIENCE_SECONDS)


def sockets() -> set[str]:
    """Those that this process has open."""
    links = (os.readlink(entry.path) for entry in os.scandir("/proc/self/fd") if os.path.lexists(entry.path))
    return {link for link in links if link.startswith("socket:")}


def test_a_child_shares_no_socket_of_its_parent(
    cluster: wb.Cluster, strategy: wb.MirroredStrategy, sockets_of_others: set[str]
) -> None:
    strategy.run(summed)
    ours = sockets() - sockets_of_others

    def body() -> None:
        left = sockets() & ours
        assert not left, left

    assert ours or cluster.devices[0].worker.startswith("inproc")
    assert forked(body) == 0


def test_a_connection_that_has_sent_more_than_was_read_is_let_go_too(
    cluster: wb.Cluster, strategy: wb.MirroredStrategy, sockets_of_others: set[str]
) -> None:
    if cluster.gang.shipping.codec.by_reference:
        pytest.skip("workers that are threads have no connections")
    strategy.run(summed)
    ours = sockets() - sockets_of_others
    stream = cluster.client.scheduler_comm.comm.stream

    async def wait_for(events: int) -> None:
        """Runs what Tornado does with a connection at that moment, and afterwards."""
        stream.io_loop.update_handler(stream.fileno(), events)

    def body() -> None:
        left = sockets() & ours
        assert not left, left

    cluster.client.sync(wait_for, stream.io_loop.ERROR)
    try:
        assert forked(body) == 0
    finally:
        cluster.client.sync(wait_for, stream.io_loop.READ)
    strategy.run(summed)


def test_a_recording_is_the_parents(
    cluster: wb.Cluster, strategy: wb.MirroredStrategy, tmp_path: Path
) -> None:
    with wb.record(tmp_path / "run.parquet", cluster) as recording:
        strategy.run(summed)
        assert forked(recording.close) == 0
        assert not recording.path.exists()
        strategy.run(summed)
    assert wb.open_run(recording.path) is not None


def test_a_child_does_not_withdraw_its_parents_announcement(cluster: wb.Cluster) -> None:
    import workbench.server.announcing as announcing

    announcement = announcing.announce(cluster)
    assert announcement is not None
    assert forked(announcement.close) == 0
    assert announcement.entry in Registry().entries()
    announcement.close()
    assert announcement.entry not in Registry().entries()


def _times_two(number: int) -> int:
    return 2 * number


def test_children_of_multiprocessing_work_beside_a_cluster(
    strategy: wb.MirroredStrategy, cluster: wb.Cluster
) -> None:
    before = pids(cluster)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for _ in range(3):
            assert pool.map(_times_two, range(4)) == [0, 2, 4, 6]
            strategy.run(summed)
        pool.close()
        pool.join()
    strategy.run(summed)
    assert pids(cluster) == before


def test_a_dataloader_with_workers_feeds_a_training(
    strategy: wb.MirroredStrategy, cluster: wb.Cluster
) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
    before = pids(cluster)
    data = torch.utils.data.TensorDataset(torch.arange(32.0).reshape(16, 2))
    loader = torch.utils.data.DataLoader(data, batch_size=4, num_workers=2, multiprocessing_context="fork")
    total = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own warning about this machine
        for _ in range(2):
            for (batch,) in loader:
                result = strategy.run(lambda rows: float(rows.sum()), args=(batch.numpy(),))
                total += strategy.reduce("mean", result, axis=None)
    assert total == 2 * sum(range(32))
    assert pids(cluster) == before


def test_what_a_replica_forks_does_not_hide_that_its_worker_was_killed() -> None:
    def fork_and_tell() -> tuple[int, int]:
        pid = os.fork()
        if not pid:
            threading.Event().wait(PATIENCE_SECONDS)
            os._exit(0)
        return pid, os.getpid()

    with wb.connect(replicas=2, stall_seconds=PATIENCE_SECONDS, replace=True) as cluster:
        strategy = wb.MirroredStrategy()
        strategy.run(summed)
        children = strategy.local_results(strategy.run(fork_and_tell))
        child, worker = children[1]
        try:
            psutil.Process(worker).kill()
            with pytest.raises(wb.errors.ReplicaLost):
                strategy.run(summed)
            strategy.run(summed)
        finally:
            for pid, _ in children:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9)
        assert worker not in pids(cluster)
        assert child


def test_descriptors_that_were_let_go_are_the_null_device_and_keep_their_number(tmp_path: Path) -> None:
    with open(tmp_path / "file", "w") as file:
        file.write("kept back")

        def body() -> None:
            forks.let_go(file.fileno(), -1, 100_000)
            assert os.fstat(file.fileno()).st_rdev == os.stat(os.devnull).st_rdev
            assert not os.get_inheritable(file.fileno())
            file.flush()

        assert forked(body) == 0
        assert (tmp_path / "file").read_text() == ""


SCRIPT = """
import os, sys
import numpy as np
import workbench as wb

def step():
    variable.assign_add(wb.distribute.get_replica_context().all_reduce("sum", np.ones(3)))

if __name__ == "__main__":
    wb.connect(replicas=2)
    strategy = wb.MirroredStrategy()
    with strategy.scope():
        variable = wb.Variable(np.zeros(3))
    strategy.run(step)
    child = os.fork()
    if not child:
        sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    strategy.run(step)
    print(variable.numpy().tolist())
"""


def test_a_child_of_a_script_may_end_with_sys_exit() -> None:
    import subprocess

    # Since 3.12, Python warns about each fork of a process with threads, which this test tries.
    quietly = [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", SCRIPT]
    done = subprocess.run(quietly, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True)
    assert done.stdout == "[4.0, 4.0, 4.0]\n"
    assert done.stderr == ""
