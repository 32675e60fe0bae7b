"""`workbench dashboard` opens a browser, and shows nobody else on the machine the token."""

from __future__ import annotations

import asyncio
import stat
import webbrowser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urlsplit

import pytest

from tests.dashboards.conftest import PATIENCE_SECONDS, built, hatch_build, run_file
from workbench.cli import dashboard, main
from workbench.dashboards.address import Address
from workbench.dashboards.recordings import Recordings

__all__ = ["built", "hatch_build", "run_file"]


def test_a_browser_is_started_with_a_file_that_only_its_owner_can_read(
    built: ModuleType, run_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def look() -> Path:
        loop, opened = asyncio.get_running_loop(), asyncio.Event()
        addresses: list[str] = []

        def open_browser(address: str) -> bool:
            addresses.append(address)
            loop.call_soon_threadsafe(opened.set)
            return True

        monkeypatch.setattr(webbrowser, "open", open_browser)
        serving = asyncio.ensure_future(dashboard._serve(Recordings(run_file), Address(), browser=True))
        await asyncio.wait_for(opened.wait(), PATIENCE_SECONDS)
        url = capsys.readouterr().out.splitlines()[0]
        file = Path(unquote(urlsplit(addresses[0]).path))
        assert addresses == [file.as_uri()]
        assert f'content="0; url={url}"' in file.read_text(encoding="utf-8")
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        return file

    assert not asyncio.run(look()).parent.exists()


def test_a_file_that_is_not_there_is_named_once(
    built: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dashboard", "/nope.parquet", "--no-browser"]) == 1

    said = capsys.readouterr().err
    assert said == "workbench dashboard: there is no recorded run '/nope.parquet'\n"
