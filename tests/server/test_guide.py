"""The guide of the Help menu: who opens it before it is built is told so, and sees it once it is."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPResponse
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application

from workbench.cli.guide_site import GuideMissing
from workbench.server import guide


class _Open(guide.GuideHandler):
    """For anybody, and of no Jupyter server."""

    current_user = "somebody"  # type: ignore[assignment]
    authorizer = SimpleNamespace(is_authorized=lambda *_: True)

    async def prepare(self) -> None:  # type: ignore[override]
        pass

    def set_default_headers(self) -> None:
        pass

    def write_error(self, status_code: int, **kwargs: object) -> None:
        self.finish(str(kwargs["exc_info"][1]))  # type: ignore[index]


async def _answers(*paths: str, then: threading.Event | None = None) -> list[HTTPResponse]:
    """The answers to requests one after the other, the last one after `then` was set."""
    (bound,) = bind_sockets(0, "127.0.0.1")
    server = HTTPServer(Application([("/guide/(.*)", _Open, {"guide": guide.Guide()})]))
    server.add_socket(bound)
    client, answers = AsyncHTTPClient(force_instance=True), []
    try:
        for number, path in enumerate(paths, 1):
            if then is not None and number == len(paths):
                then.set()
            url = f"http://127.0.0.1:{bound.getsockname()[1]}/guide/{path}"
            answers.append(await client.fetch(url, raise_error=False, follow_redirects=False))
    finally:
        client.close()
        server.stop()
    return answers


def test_a_page_says_that_the_guide_is_being_built_and_looks_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "guide").mkdir()
    (tmp_path / "guide" / "index.html").write_text("<h1>the guide")
    built, begun = threading.Event(), []

    def built_site() -> Path:
        begun.append(True)
        assert built.wait(60)
        return tmp_path

    monkeypatch.setattr(guide, "built_site", built_site)
    waiting, again, page = asyncio.run(_answers("", "", "guide/index.html", then=built))

    for answer in (waiting, again):
        assert (answer.code, answer.headers["Refresh"]) == (200, "2")
        assert b"Building the guide" in answer.body
    assert page.body == b"<h1>the guide"
    assert len(begun) == 1


def test_a_guide_that_is_built_opens_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(guide, "built_site", lambda: tmp_path)
    (answer,) = asyncio.run(_answers(""))
    assert (answer.code, answer.headers["Location"]) == (302, "/guide/guide/index.html")


def test_a_guide_that_cannot_be_built_says_why_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def built_site() -> Path:
        raise GuideMissing("Sphinx is not installed")

    monkeypatch.setattr(guide, "built_site", built_site)
    for answer in asyncio.run(_answers("", "guide/index.html")):
        assert answer.code == 503
        assert b"Sphinx is not installed" in answer.body
