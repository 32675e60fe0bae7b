"""`workbench lab`: JupyterLab on copies of the notebooks, in the current folder."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import sysconfig
from pathlib import Path

import workbench
from workbench.cli import software
from workbench.cli.working_copy import bring_up_to_date

QUICKSTART = "01_quickstart.ipynb"
COPY_NAME = "workbench-notebooks"
_JUPYTER_CONFIG = Path(__file__).with_name("jupyter_config")


def run(options: argparse.Namespace) -> int:  # noqa: RET503 - execve does not return
    """Replaces this process by JupyterLab; returns 1 if JupyterLab or the notebook is missing."""
    if importlib.util.find_spec("jupyterlab") is None:
        print(f"JupyterLab is missing: {software.install('jupyterlab', 'ipykernel')}", file=sys.stderr)
        return 1
    shipped = shipped_notebooks()
    if shipped is None:
        print(f"{QUICKSTART} is not part of this installation of workbench: reinstall it", file=sys.stderr)
        return 1
    # A copy, because saving would change the repository that the notebooks of a checkout belong to.
    copy = Path.cwd() / COPY_NAME
    try:
        sentences = bring_up_to_date(shipped, copy)
    except OSError as error:
        print(f"{copy} cannot be written ({error}): go to a folder of your own first", file=sys.stderr)
        return 1
    print("\n".join([*sentences, f"Your notebooks are in {copy}"]), file=sys.stderr)
    command = jupyterlab(copy, port=options.port, browser=not options.no_browser)
    sys.stdout.flush()
    # Replaces this process, so that JupyterLab gets Ctrl-C and the terminal.
    os.execve(command[0], command, environment())


def jupyterlab(folder: Path, *, port: int, browser: bool) -> list[str]:
    """Serves `folder` on loopback, with Jupyter's own token, on `port` or the next free one."""
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={folder}", "--ip=127.0.0.1"]
    command += [
        f"--port={port}",
        "--ServerApp.port_retries=50",
        f"--LabApp.default_url=/lab/tree/{QUICKSTART}",
    ]
    if not browser:
        command.append("--no-browser")
    if os.geteuid() == 0:
        command.append("--allow-root")  # root is usual in containers; the server listens on loopback only
    return command


def environment() -> dict[str, str]:
    """The environment of JupyterLab, with our default settings, which the user's own settings and paths override.

    They turn off the question about news of the Jupyter project, which would cover the first notebook.
    """
    own = os.environ.get("JUPYTER_CONFIG_PATH")
    paths = [own, str(_JUPYTER_CONFIG)] if own else [str(_JUPYTER_CONFIG)]
    return {**os.environ, "JUPYTER_CONFIG_PATH": os.pathsep.join(paths)}


def shipped_notebooks() -> Path | None:
    """The folder of notebooks that came with this workbench: the checkout's, or that of the installation."""
    checkout = Path(workbench.__file__).parents[1] / "notebooks"
    installed = Path(sysconfig.get_path("data"), "share", "workbench", "notebooks")
    return next((folder for folder in (checkout, installed) if (folder / QUICKSTART).is_file()), None)
