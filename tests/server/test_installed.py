"""Jupyter finds both extensions of an installed workbench, in an environment that has no node."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.commands import output_of
from workbench.extras import DISTRIBUTION


def listed(module: str, tmp_path: Path) -> str:
    """What Jupyter says of its extensions."""
    environment = os.environ | {"PATH": str(tmp_path), "JUPYTER_CONFIG_DIR": str(tmp_path)}
    return output_of([sys.executable, "-m", module, "list"], environment=environment, timeout_seconds=100)


def test_the_extension_of_jupyterlab_is_ok(tmp_path: Path) -> None:
    installed = Path(sys.prefix, "share", "jupyter", "labextensions", "workbench-lab", "package.json")
    if not installed.is_file():
        pytest.skip("the views were not built when workbench was installed: pip install -e . with node")

    assert re.search(
        rf"workbench-lab v\S+ enabled OK \(python, {DISTRIBUTION}\)",
        listed("jupyterlab.labextensions", tmp_path),
    )


def test_the_extension_of_the_server_is_ok(tmp_path: Path) -> None:
    if not Path(sys.prefix, "etc", "jupyter", "jupyter_server_config.d", "workbench.json").is_file():
        pytest.skip("workbench is not installed here: pip install -e .")

    text = listed("jupyter_server.extension.serverextension", tmp_path)
    assert re.search(r"workbench\.server enabled", text)
    assert re.search(r"workbench\.server\s+\S*\s*OK", text)
