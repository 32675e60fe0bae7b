"""A server that tests put files on, for URLs of HTTP and S3."""

from __future__ import annotations

from collections.abc import Iterator

import fsspec
import pytest

from tests.data.sources.web_server import SECRET, Web, forget_files, serving
from workbench.data.sources import remote


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serving() as web:
        yield web


@pytest.fixture
def fresh(web: Web, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A server without files and troubles, and file systems that forget what they saw."""
    monkeypatch.setattr(remote, "_PAUSE_SECONDS", 0.0)
    access = {"key": "test", "secret": SECRET, "client_kwargs": {"region_name": "x"}}
    monkeypatch.setitem(fsspec.config.conf, "s3", access | {"endpoint_url": web.url})
    web.begin_anew()
    yield
    web.release.set()
    fsspec.filesystem("memory").store.clear()
    forget_files()
