"""Processes for the contract suite, kept for a whole module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.register_assert_rewrite("tests.contracts.communicator")

from tests.contracts.processes import Pool  # noqa: E402  (the line above must come first)


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    pool = Pool()
    yield pool
    pool.close()
