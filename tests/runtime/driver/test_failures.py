"""What errors are made of: how a worker ended, and where replicas waited."""

from __future__ import annotations

import pytest

from workbench.runtime.deploy.worker_link import EndKind, WorkerEnd
from workbench.runtime.driver.step import Wait


@pytest.mark.parametrize("op", ["all_reduce", "an op: with # in it"])
def test_the_name_of_a_collective_is_read_as_it_was_written(op: str) -> None:
    wait = Wait(op, 12, "train.py:41")

    assert Wait.read(wait.collective, wait.site) == wait


@pytest.mark.parametrize("name", ["", "merge_call", "all_reduce #", "all_reduce #x", " #3"])
def test_a_text_that_names_no_collective_is_none(name: str) -> None:
    assert Wait.read(name) is None


def test_the_end_of_a_worker_reads_as_a_sentence() -> None:
    end = WorkerEnd(EndKind.LEFT, "failed inside workbench", "KeyError: 'stalled: x'")

    assert str(end) == "failed inside workbench: KeyError: 'stalled: x'"
    assert str(WorkerEnd(EndKind.LOST, "exited with code 3")) == "exited with code 3"
