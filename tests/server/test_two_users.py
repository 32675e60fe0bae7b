"""Two users of one machine, as on a hub: a server each, behind a proxy with TLS; each sees only what is theirs."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import websocket

from tests.identity import Identity, identity
from tests.jupyter_server import announced
from tests.server.conftest import API, PATIENCE_SECONDS, ROOT, TOKEN, Client
from tests.tls_proxy import Route, TlsProxy, tls_proxy

__all__ = ["identity"]

pytestmark = pytest.mark.slow
IDS = {"ann": 61_001, "ben": 61_002}
"""Ids that no account has; the processes need no more than that."""
JOB = """
import os, sys
import numpy as np, workbench as wb

def step():
    return wb.distribute.get_replica_context().all_reduce("sum", np.ones(8, np.float32))

with wb.connect(replicas=1, processes=False):
    strategy = wb.MirroredStrategy()
    with wb.record(f"root/runs/{os.environ['USER']}.parquet"):
        strategy.run(step)
    print("ready", flush=True)
    sys.stdin.read()
"""
BOUND = """
set -e
mount --bind "$1" python
mount --bind "$2" packages
mount --bind "$3" repository
shift 3
cd "$HOME"
exec "$@"
"""
"""With mounts of its own, a process finds Python and packages where all users may go; elsewhere only root may."""
OPENED = """
import os, socket, stat, sys
for path in sys.stdin.read().split("\\0"):
    try:
        if stat.S_ISSOCK(os.stat(path).st_mode):
            socket.socket(socket.AF_UNIX).connect(path)
        else:
            open(path).close()
    except PermissionError:
        continue
    print(path)
"""


@dataclass(frozen=True, slots=True)
class User:
    """Somebody with a server and a job.

    Attributes:
      name: Also in the addresses of their server.
      home: The folder that has all of their files; others may enter it.
      job: Process id of the job.
    """

    name: str
    home: Path
    job: int

    @property
    def base(self) -> str:
        return f"/user/{self.name}/"

    @property
    def token(self) -> str:
        return f"{TOKEN}-{self.name}"


def start(name: str, home: Path, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    """A Python of that user. Nothing in its environment leads to files of others."""
    folder, uid = home.parent, str(IDS[name])
    python = folder / "python" / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    repository = folder / "repository"
    environment = {
        "PATH": os.environ["PATH"],
        "LD_LIBRARY_PATH": str(folder / "python" / "lib"),
        "HOME": str(home),
        "USER": name,
        "LOGNAME": name,
        "LANG": "C.UTF-8",
        "PYTHONPATH": f"{repository}{os.pathsep}{folder / 'packages'}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "JUPYTER_CONFIG_PATH": str(repository / "extension" / "jupyter"),
    }
    bound = (sys.base_prefix, sysconfig.get_path("purelib"), str(ROOT))
    command = ["unshare", "--mount", "sh", "-c", BOUND, "sh", *bound]
    command += ["setpriv", "--reuid", uid, "--regid", uid, "--clear-groups", str(python), *arguments]
    return subprocess.Popen(command, cwd=folder, env=environment, text=True, **options)


@pytest.fixture(scope="module")
def proxy(identity: Identity) -> Iterator[TlsProxy]:
    with tls_proxy(identity.certificate, identity.key) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def users(proxy: TlsProxy) -> Iterator[list[User]]:
    """Ann and Ben, with a running job and a recorded run each."""
    if os.getuid() != 0:
        pytest.skip("only root can start processes of two users")
    tried = subprocess.run(["unshare", "--mount", "true"], capture_output=True, text=True, timeout=30)
    if tried.returncode:
        pytest.skip(f"unshare --mount is not permitted here: {tried.stderr.strip()}")
    # Not pytest's folder, which only this user may enter.
    folder = Path(tempfile.mkdtemp(prefix="workbench-users-"))
    folder.chmod(0o755)
    try:
        with ExitStack() as stack:
            yield _started(folder, proxy, stack)
    finally:
        shutil.rmtree(folder)


def _started(folder: Path, proxy: TlsProxy, stack: ExitStack) -> list[User]:
    for bound in ("python", "packages", "repository"):
        (folder / bound).mkdir()
    jobs, servers = {}, {}
    for name, uid in IDS.items():
        home = folder / name
        (home / "root" / "runs").mkdir(parents=True)
        for path in (home, home / "root", home / "root" / "runs"):
            os.chown(path, uid, uid)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        jobs[name] = start(name, home, "-c", JOB, **pipes)
        stack.callback(_end, jobs[name])
        command = ["-m", "jupyter_server", "--no-browser", "--ServerApp.port=0"]
        command += [f"--ServerApp.base_url=/user/{name}/", f"--ServerApp.root_dir={home / 'root'}"]
        command += [f"--IdentityProvider.token={TOKEN}-{name}"]
        with (folder / f"{name}.log").open("wb") as log:
            servers[name] = start(name, home, *command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        stack.callback(_end, servers[name])
    for name, server in servers.items():
        output = jobs[name].stdout
        assert output is not None
        assert output.readline() == "ready\n"
        runtime, log = folder / name / ".local" / "share" / "jupyter" / "runtime", folder / f"{name}.log"
        told = announced(server, runtime, log, seconds=PATIENCE_SECONDS)
        proxy.routes[f"/user/{name}/"] = Route(told["port"])
    return [User(name, folder / name, job.pid) for name, job in jobs.items()]


def _end(process: subprocess.Popen[str]) -> None:
    """A job ends when its input does."""
    if process.stdin is None:
        process.terminate()
    else:
        process.stdin.close()
    try:
        process.wait(PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(PATIENCE_SECONDS)
        raise
    finally:
        if process.stdout is not None:
            process.stdout.close()


def asked(proxy: TlsProxy, identity: Identity, user: User, path: str, token: str) -> tuple[int, Any]:
    """Status and content of what a user's server answers."""
    connection = http.client.HTTPSConnection(
        "127.0.0.1", proxy.port, timeout=PATIENCE_SECONDS, context=identity.trusting()
    )
    try:
        address = f"{user.base.rstrip('/')}{API}/{path}"
        connection.request("GET", address, headers={"Authorization": f"token {token}"})
        response = connection.getresponse()
        body = response.read()
        return response.status, json.loads(body) if response.status == 200 else None
    finally:
        connection.close()


def test_each_user_sees_only_their_own_clusters_and_runs(
    proxy: TlsProxy, identity: Identity, users: list[User]
) -> None:
    for user in users:
        socket = websocket.create_connection(
            f"wss://127.0.0.1:{proxy.port}{user.base.rstrip('/')}{API}/socket",
            header={"Authorization": f"token {user.token}"},
            origin=proxy.origin,
            timeout=PATIENCE_SECONDS,
            sslopt={"context": identity.trusting()},
        )
        try:
            client = Client(socket)
            client.cluster(lambda cluster: True)
        finally:
            socket.shutdown()
        assert [cluster["pid"] for cluster in client.clusters] == [user.job]
        status, clusters = asked(proxy, identity, user, "clusters", user.token)
        assert status == 200
        assert [cluster["pid"] for cluster in clusters] == [user.job]
        status, runs = asked(proxy, identity, user, "runs", user.token)
        assert status == 200
        assert [(run["name"], run["problem"]) for run in runs["runs"]] == [(user.name, "")]


def test_the_token_of_one_user_opens_nothing_of_the_other(
    proxy: TlsProxy, identity: Identity, users: list[User]
) -> None:
    ann, ben = users
    for path in ("clusters", "runs", f"runs/runs/{ann.name}.parquet"):
        assert asked(proxy, identity, ann, path, ben.token)[0] == 403


def test_no_file_of_one_user_can_be_opened_by_the_other(users: list[User]) -> None:
    ann, ben = users
    files = [path for path in ann.home.rglob("*") if not path.is_dir()]
    kept = {path for path in files if "workbench" in path.parts or path.suffix == ".parquet"}

    assert {path.suffix for path in kept} >= {".json", ".parquet"}
    assert opened(ann, kept) == kept
    assert opened(ben, kept) == set()


def opened(user: User, paths: set[Path]) -> set[Path]:
    """Those that a process of the user can open."""
    with start(user.name, user.home, "-c", OPENED, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        found, _ = process.communicate("\0".join(map(str, paths)), PATIENCE_SECONDS)
    assert process.returncode == 0
    return {Path(path) for path in found.splitlines()}
