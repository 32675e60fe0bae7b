"""What a machine may lack: each is one clear error at once, or does not matter."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

CONNECT = """
import sys, workbench as wb
from workbench.errors import UnavailableError
try:
    with wb.connect(replicas=2, processes=sys.argv[1] == "processes"):
        strategy = wb.MirroredStrategy()
        print("connected", *strategy.local_results(strategy.run(lambda: 1)))
except UnavailableError as error:
    print("UnavailableError", error)
"""


def _connected(how: str, *before: str, environment: dict[str, str] | None = None) -> str:
    """The output of a script that connects in this environment."""
    done = subprocess.run(
        [*before, sys.executable, "-c", CONNECT, how],
        capture_output=True,
        text=True,
        timeout=50,
        env=dict(os.environ) | (environment or {}),
    )
    return done.stdout + done.stderr[-2000:]


def _unshared(*flags: str) -> tuple[str, ...]:
    """A command that runs another one in its own namespaces; skips if that is not permitted."""
    tried = subprocess.run(["unshare", *flags, "true"], capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"unshare {' '.join(flags)} is not permitted here: {tried.stderr.strip()}")
    return "unshare", *flags


def test_without_a_loopback_interface_connecting_says_so_at_once() -> None:
    alone = _unshared("--net")
    said = _connected("processes", *alone)
    assert "UnavailableError 127.0.0.1 cannot be used" in said
    assert "ip link set lo up" in said


def test_a_limit_of_the_size_of_files_is_named() -> None:
    limited = (
        "import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20,) * 2); "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    said = _connected("processes", sys.executable, "-c", limited)
    assert "UnavailableError this process may write files of 1,048,576 bytes only" in said
    assert "ulimit -f unlimited" in said
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def test_a_long_path_for_temporary_files_does_not_matter(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 200)
    long.mkdir()
    assert _connected("processes", environment={"TMPDIR": str(long)}) == "connected 1 1\n"


def test_shared_memory_that_is_read_only_does_not_matter() -> None:
    mounted = _unshared("--mount")
    read_only = 'mount -t tmpfs -o ro tmpfs /dev/shm && exec "$@"'
    assert _connected("processes", *mounted, "sh", "-c", read_only, "sh") == "connected 1 1\n"


CLOSED = """
import workbench as wb
from distributed import LocalCluster
from workbench.errors import UnavailableError
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as dask:
        cluster = wb.connect(dask)
        strategy = wb.MirroredStrategy()
        print(*strategy.local_results(strategy.run(lambda: 1)))
    for _ in range(3):
        try:
            strategy.run(lambda: 1)
        except UnavailableError as error:
            print(error)
    cluster.close()
"""


def test_a_cluster_that_its_user_has_closed_is_told_in_each_step(tmp_path: Path) -> None:
    # In a process of its own, because Dask leaves a thread behind if a client closes after its cluster.
    script = tmp_path / "closed.py"
    script.write_text(CLOSED)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=50)
    first, *others = done.stdout.splitlines()
    assert first == "1 1"
    assert len(others) == 3, done.stderr
    assert all("was closed: start the cluster again" in line for line in others)
