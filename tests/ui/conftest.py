"""Clusters for the tests of what people see; each lives as long as the module that uses it."""

from __future__ import annotations

import html.parser
from collections.abc import Iterator

import pytest

import workbench as wb
from workbench.backends import stretches


@pytest.fixture(scope="module")
def cluster() -> Iterator[wb.Cluster]:
    """Two replicas in processes of their own."""
    with wb.connect(replicas=2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def strategy(cluster: wb.Cluster) -> wb.MirroredStrategy:
    return wb.MirroredStrategy()


class Tags(html.parser.HTMLParser):
    """The tags and the text of some HTML."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.tags += [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def safe_text() -> type[Tags]:
    """Reads HTML, to look at its tags and its text."""
    return Tags


@pytest.fixture
def low_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of arrays of more than 2**20 elements four stretches of 2**16 are read."""
    monkeypatch.setattr(stretches, "MOST_READ", 1 << 20)
    monkeypatch.setattr(stretches, "_MOST_STRETCHES", 4)
