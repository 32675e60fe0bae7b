"""The checks of `python -m tests.gpu` as tests, for machines with a GPU."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gpu import checks
from tests.gpu.hardware import hardware
from tests.gpu.results import Skip
from tests.leaks import Resources, leaked_since
from workbench.errors import BackendUnavailable

pytestmark = [pytest.mark.gpu, pytest.mark.slow]


@pytest.fixture(scope="module", autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """But one socket for each of the two ids of which `nccl-one-rank` makes a communicator: NCCL keeps those."""
    before = Resources.now()
    yield
    assert [text for text in leaked_since(before) if text != "2 more open socket"] == []


@pytest.fixture(scope="module", autouse=True)
def needs_a_gpu() -> None:
    try:
        hardware()
    except BackendUnavailable as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", checks.ALL)
def test_check(name: str) -> None:
    try:
        rows = list(checks.ALL[name](True))
    except Skip as reason:
        pytest.skip(str(reason))
    assert [row.line() for row in rows if row.state == "FAILED"] == []
