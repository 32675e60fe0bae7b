"""`workbench lab` finds the notebook and starts JupyterLab on it, on loopback and with a token."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NoReturn

import pytest

import workbench
from workbench.cli import lab, main

ROOT = Path(__file__).parents[2]


class Started(Exception):
    """Stands for the process that became JupyterLab; carries its command."""


@pytest.fixture
def exec_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    def record(path: str, command: list[str], environment: dict[str, str]) -> NoReturn:
        assert path == command[0]
        assert environment == lab.environment()
        raise Started(command)

    monkeypatch.setattr(os, "execve", record)


@pytest.fixture
def wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An installation without a checkout; returns its data folder."""
    monkeypatch.setattr(workbench, "__file__", str(tmp_path / "site-packages" / "workbench" / "__init__.py"))
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    shipped = tmp_path / "share" / "workbench" / "notebooks"
    shipped.mkdir(parents=True)
    (shipped / lab.QUICKSTART).write_text("{}", encoding="ascii")
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return shipped


@pytest.mark.usefixtures("exec_is_recorded")
def test_lab_becomes_jupyterlab_on_the_quickstart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Started) as started:
        main(["lab", "--port", "9999", "--no-browser"])

    command = started.value.args[0]
    assert command[:3] == [sys.executable, "-m", "jupyterlab"]
    assert {"--port=9999", "--no-browser", "--ip=127.0.0.1"} <= set(command)
    assert f"--LabApp.default_url=/lab/tree/{lab.QUICKSTART}" in command
    assert not any("token" in part.lower() for part in command)  # Jupyter creates its own


def test_jupyterlab_asks_about_news_only_where_the_user_wants_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from jupyterlab_server.settings_utils import get_settings

    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "/opt/jupyter")
    path = lab.environment()["JUPYTER_CONFIG_PATH"]
    assert path.split(os.pathsep)[:-1] == ["/opt/jupyter"]
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", path)
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path))

    def fetch_news() -> tuple[str, str | None]:
        """The default and the user's choice, as JupyterLab's own server returns them."""
        app, name = f"{sys.prefix}/share/jupyter/lab", "@jupyterlab/apputils-extension:notification"
        found, _ = get_settings(f"{app}/settings", f"{app}/schemas", str(tmp_path), name)
        return found["schema"]["properties"]["fetchNews"]["default"], found["settings"].get("fetchNews")

    assert fetch_news() == ("false", None)
    choice = tmp_path / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
    choice.parent.mkdir(parents=True)
    choice.write_text('{"fetchNews": "true"}', encoding="ascii")
    assert fetch_news() == ("false", "true")


@pytest.mark.usefixtures("exec_is_recorded")
def test_notebooks_of_a_checkout_are_worked_on_as_copies(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = lab.shipped_notebooks()
    assert shipped == Path(workbench.__file__).parents[1] / "notebooks"

    with pytest.raises(Started) as started:
        main(["lab"])

    copy = tmp_path / lab.COPY_NAME
    assert f"--ServerApp.root_dir={copy}" in started.value.args[0]
    assert {path.name for path in copy.glob("*.ipynb")} == {path.name for path in shipped.glob("*.ipynb")}
    assert str(copy) in capsys.readouterr().err


def test_git_does_not_look_at_the_copies() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    asked = f"{lab.COPY_NAME}/{lab.QUICKSTART}"
    ignored = subprocess.run(
        ["git", "check-ignore", asked], cwd=ROOT, capture_output=True, text=True, timeout=60
    )

    assert ignored.stdout.strip() == asked


@pytest.mark.usefixtures("exec_is_recorded")
def test_notebooks_of_an_installation_are_worked_on_as_copies(wheel: Path) -> None:
    with pytest.raises(Started) as started:
        main(["lab"])

    copy = Path.cwd() / lab.COPY_NAME
    assert f"--ServerApp.root_dir={copy}" in started.value.args[0]
    assert (copy / lab.QUICKSTART).is_file()


def test_a_folder_that_cannot_be_written_is_named(wheel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (Path.cwd() / lab.COPY_NAME).write_text("no folder", encoding="ascii")

    assert main(["lab"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{Path.cwd() / lab.COPY_NAME} cannot be written (")


def test_an_installation_without_notebooks_says_so(wheel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (wheel / lab.QUICKSTART).unlink()

    assert main(["lab"]) == 1
    assert "reinstall" in capsys.readouterr().err


def test_a_missing_jupyterlab_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    assert main(["lab"]) == 1
    assert "-m pip install jupyterlab" in capsys.readouterr().err
