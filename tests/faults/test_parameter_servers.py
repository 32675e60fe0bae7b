"""Rows 26 and 27: workers and parameter servers end in the midst of updates, and each update counts once."""

from __future__ import annotations

import pytest

from tests.faults.killed_updates import run_rounds


def test_rows_26_and_27_random_kills() -> None:
    done = run_rounds(6, 7, lambda line: None)
    assert done.total >= 6


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_rows_26_and_27_two_hundred_random_kills() -> None:
    done = run_rounds(200, 1, lambda line: None)
    assert done.total >= 200
    assert {kind.partition(",")[0] for kind in done.by_kind} == {"worker", "server"}
