"""The options `--vectors` and `--strategy`, and the table of results by area."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reference.interpreter.clusters import Clusters
from tests.reference.interpreter.world import World
from tests.reference.report import print_report


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--vectors", metavar="DIR", help="folder of reference vectors (default: tests/reference/vectors)"
    )
    parser.addoption(
        "--strategy",
        choices=["tpu"],
        help="run the cases that name no strategy on this one, over emulated devices",
    )


@pytest.fixture(scope="module")
def clusters(request: pytest.FixtureRequest) -> Iterator[Clusters]:
    """The clusters that the cases of a module share."""
    shared = Clusters(tpu=request.config.getoption("strategy", default=None) == "tpu")
    try:
        yield shared
    finally:
        shared.close()


@pytest.fixture
def world(tmp_path: Path, clusters: Clusters) -> World:
    """What one case may use."""
    return World(scratch=tmp_path, clusters=clusters)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    print_report(terminalreporter)
