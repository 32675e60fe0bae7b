"""The environment of Binder, made as repo2docker does it, but in a virtual environment; and its JupyterLab."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.chromium import why_not
from tests.e2e.conftest import PATIENCE_SECONDS, ROOT, TOKEN, Lab, browser, context, page, started

__all__ = ["browser", "context", "page"]

BASE = "/user/somebody-7h2kq/"
"""JupyterHub gives everybody's server such a path."""


@dataclass(frozen=True, slots=True)
class Image:
    """What repo2docker would make an image of.

    Attributes:
      repository: A copy of what git tracks here; also the home of the image's user, as repo2docker has it.
      environment: The virtual environment.
    """

    repository: Path
    environment: Path

    def run(self, *command: str) -> str:
        """Runs a command of the build in the repository's folder; its output.

        Raises:
          AssertionError: if it fails.
        """
        variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run(
            command,
            cwd=self.repository,
            env=variables | {"PATH": self.path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=900,
        )
        assert done.returncode == 0, f"{' '.join(command)} failed:\n{done.stdout}"
        return done.stdout

    @property
    def path(self) -> str:
        """Where programs are found: the environment's first."""
        return os.pathsep.join((str(self.environment / "bin"), os.environ["PATH"]))


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    """The steps of repo2docker's Dockerfile that are ours: copy the repository, install, run postBuild."""
    if why := why_not():
        pytest.skip(why)
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, so what belongs to the repository is not known")
    home = tmp_path_factory.mktemp("binder")
    image = Image(home / "repository", home / "environment")
    try:
        _copy_repository(image.repository)
        image.run(sys.executable, "-m", "venv", str(image.environment))
        image.run("pip", "install", "--no-cache-dir", "-r", "binder/requirements.txt")
        image.run("./binder/postBuild")
        yield image
    finally:
        shutil.rmtree(home)  # 1.4 GB, which pytest would otherwise keep for three more runs


def _copy_repository(target: Path) -> None:
    """Copies the files that git tracks, as they are in the working tree, without build outputs."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    ).stdout
    for name in listed.rstrip("\0").split("\0"):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


@pytest.fixture(scope="module")
def process(image: Image) -> Iterator[subprocess.Popen[bytes]]:
    """`start` with JupyterLab's command, as a hub calls it."""
    command = ["./binder/start", "jupyter-lab", "--ip=127.0.0.1", "--port=0", f"--ServerApp.base_url={BASE}"]
    command += [
        f"--IdentityProvider.token={TOKEN}",
        "--no-browser",
        "--allow-root",
        "--expose-app-in-browser",
    ]
    variables = {"PATH": image.path, "HOME": str(image.repository), "LANG": "C.UTF-8"}
    variables["WORKBENCH_RUNTIME_DIR"] = os.environ["WORKBENCH_RUNTIME_DIR"]
    with (image.repository / "log").open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=image.repository,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


@pytest.fixture(scope="module")
def lab(image: Image, process: subprocess.Popen[bytes]) -> Lab:
    """Its JupyterLab; `browser` and `page` open this one."""
    runtime = image.repository / ".local" / "share" / "jupyter" / "runtime"
    return started(process, runtime, image.repository / "log", image.repository)
