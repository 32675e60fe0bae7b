"""A cluster whose replicas have processes of their own, for the checks of what they hold and do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import workbench as wb


@pytest.fixture(scope="module")
def strategy() -> Iterator[wb.MirroredStrategy]:
    with wb.connect(replicas=2):
        yield wb.MirroredStrategy()
