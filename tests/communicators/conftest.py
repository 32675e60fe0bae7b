"""Processes for the contract suite, kept for a whole module, and threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.register_assert_rewrite("tests.contracts.communicator")

from tests.contracts.processes import Pool  # noqa: E402  (the line above must come first)


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    pool = Pool()
    yield pool
    pool.close()


@pytest.fixture
def together() -> Iterator[Callable[..., list[Any]]]:
    """Runs functions at the same time; gives their results or exceptions."""
    with ThreadPoolExecutor(8) as pool:

        def run(*functions: Callable[[], Any]) -> list[Any]:
            futures = [pool.submit(function) for function in functions]
            return [future.exception(60) or future.result() for future in futures]

        yield run
