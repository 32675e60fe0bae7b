"""The guide of the Help menu: who opens it before it is built is told so, and sees it once it is."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from asyncio import Future
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPResponse
from tornado.httpserver import HTTPServer
from tornado.iostream import StreamClosedError
from tornado.netutil import bind_sockets
from tornado.web import Application

from workbench.cli.guide_site import GuideMissing
from workbench.server import guide


class _Open(guide.GuideHandler):
    """Open to everyone, and independent of a Jupyter server."""

    current_user = "somebody"  # type: ignore[assignment]
    authorizer = SimpleNamespace(is_authorized=lambda *_: True)

    async def prepare(self) -> None:  # type: ignore[override]
        pass

    def set_default_headers(self) -> None:
        pass

    def write_error(self, status_code: int, **kwargs: object) -> None:
        self.finish(str(kwargs["exc_info"][1]))  # type: ignore[index]


@contextlib.asynccontextmanager
async def _served() -> AsyncIterator[Callable[[str], Awaitable[HTTPResponse]]]:
    """The answer of a server to a request for a page of its guide."""
    (bound,) = bind_sockets(0, "127.0.0.1")
    server = HTTPServer(Application([("/guide/(.*)", _Open, {"guide": guide.Guide()})]))
    server.add_socket(bound)
    client = AsyncHTTPClient(force_instance=True)
    address = f"http://127.0.0.1:{bound.getsockname()[1]}/guide/"
    try:
        yield lambda path: client.fetch(address + path, raise_error=False, follow_redirects=False)
    finally:
        client.close()
        server.stop()


async def _answers(*paths: str, then: threading.Event | None = None) -> list[HTTPResponse]:
    """The answers to consecutive requests; the last one is sent after `then` was set."""
    answers = []
    async with _served() as asked:
        for number, path in enumerate(paths, 1):
            if then is not None and number == len(paths):
                then.set()
            answers.append(await asked(path))
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


def test_a_page_that_is_closed_while_the_guide_is_built_leaves_no_error_in_the_log(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    built, flush, gone = threading.Event(), _Open.flush, []

    def built_site() -> Path:
        assert built.wait(60)
        return tmp_path

    def to_nobody(self: _Open, include_footers: bool = False) -> Future[None]:
        sent = flush(self, include_footers)
        if not gone:
            gone.append(True)
            built.set()
            sent = Future()
            sent.set_exception(StreamClosedError())
        return sent

    monkeypatch.setattr(guide, "built_site", built_site)
    monkeypatch.setattr(_Open, "flush", to_nobody)
    asyncio.run(_answers(""))

    assert gone
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take a while to run a thread."""
    monkeypatch.setattr(guide, "_PATIENCE_SECONDS", 60)


@pytest.mark.usefixtures("patient")
def test_a_guide_that_is_built_opens_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(guide, "built_site", lambda: tmp_path)
    (answer,) = asyncio.run(_answers(""))
    assert (answer.code, answer.headers["Location"]) == (302, "/guide/guide/index.html")


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("error", [GuideMissing("no Sphinx here"), PermissionError("no Sphinx here")])
def test_a_guide_that_cannot_be_built_says_why_each_time(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def built_site() -> Path:
        raise error

    monkeypatch.setattr(guide, "built_site", built_site)
    for answer in asyncio.run(_answers("", "guide/index.html")):
        assert answer.code == 503
        assert b"no Sphinx here" in answer.body


def test_a_page_that_waits_is_told_that_the_guide_cannot_be_built(monkeypatch: pytest.MonkeyPatch) -> None:
    looked, failed, begun = threading.Event(), threading.Event(), []

    def built_site() -> Path:
        begun.append(True)
        assert looked.wait(60)
        failed.set()
        raise GuideMissing("Sphinx failed")

    async def reloaded() -> HTTPResponse:
        async with _served() as asked:
            waiting = await asked("")
            assert (waiting.code, waiting.headers["Refresh"]) == (200, "2")
            looked.set()
            assert await asyncio.to_thread(failed.wait, 60)
            for _ in range(1000):
                answer = await asked("")
                if answer.code != 200:
                    break
            assert begun == [True]
            monkeypatch.setattr(guide, "_PATIENCE_SECONDS", 60)
            await asked("")  # a client that got the reason may try again
            return answer

    monkeypatch.setattr(guide, "built_site", built_site)
    monkeypatch.setattr(guide, "_PATIENCE_SECONDS", 0)
    told = asyncio.run(reloaded())

    assert (told.code, "Refresh" in told.headers) == (503, False)
    assert b"Sphinx failed" in told.body
    assert begun == [True, True]
