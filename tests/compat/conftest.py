"""What tests of old spellings share: each warns again, and clusters of threads and of processes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import workbench as wb
from workbench.compat import modern_spelling


@pytest.fixture(autouse=True)
def every_spelling_warns_again() -> Iterator[None]:
    modern_spelling.forget()
    yield
    modern_spelling.forget()


@pytest.fixture(scope="module", params=["threads", "processes"])
def cluster(request: pytest.FixtureRequest) -> Iterator[wb.Cluster]:
    with wb.connect(replicas=2, processes=request.param == "processes", replace=True) as cluster:
        yield cluster
