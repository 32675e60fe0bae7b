"""`workbench lab` finds the notebook and starts JupyterLab on it, on loopback and with a token."""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
from pathlib import Path
from typing import NoReturn

import pytest

import workbench
from workbench.cli import lab, main


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
def test_lab_becomes_jupyterlab_on_the_quickstart() -> None:
    with pytest.raises(Started) as started:
        main(["lab", "--port", "9999", "--no-browser"])

    command = started.value.args[0]
    assert command[:3] == [sys.executable, "-m", "jupyterlab"]
    assert {"--port=9999", "--no-browser", "--ip=127.0.0.1"} <= set(command)
    assert f"--LabApp.default_url=/lab/tree/{lab.QUICKSTART}" in command
    assert not any("token" in part.lower() for part in command)  # Jupyter makes its own


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
        """Default and choice of the user, as JupyterLab's own server has them."""
        app, name = f"{sys.prefix}/share/jupyter/lab", "@jupyterlab/apputils-extension:notification"
        found, _ = get_settings(f"{app}/settings", f"{app}/schemas", str(tmp_path), name)
        return found["schema"]["properties"]["fetchNews"]["default"], found["settings"].get("fetchNews")

    assert fetch_news() == ("false", None)
    choice = tmp_path / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
    choice.parent.mkdir(parents=True)
    choice.write_text('{"fetchNews": "true"}', encoding="ascii")
    assert fetch_news() == ("false", "true")


def test_a_checkout_is_worked_on_in_place() -> None:
    assert lab.notebooks() == Path(workbench.__file__).parents[1] / "notebooks"


def test_an_installed_notebook_is_copied_to_where_the_user_is(wheel: Path) -> None:
    assert lab.notebooks() == Path.cwd() / lab.COPY_NAME
    assert (Path.cwd() / lab.COPY_NAME / lab.QUICKSTART).is_file()


def test_a_copy_that_was_worked_on_is_kept(wheel: Path) -> None:
    mine = Path.cwd() / lab.COPY_NAME
    mine.mkdir()
    (mine / lab.QUICKSTART).write_text("my work", encoding="ascii")

    assert lab.notebooks() == mine
    assert (mine / lab.QUICKSTART).read_text(encoding="ascii") == "my work"


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
