"""The quickstart notebook runs from top to bottom, learns, and shows what it promises."""

from __future__ import annotations

import re

import pytest

from tests.notebooks.executed import cells_with_outputs, executed

NAME = "01_quickstart.ipynb"


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return executed(NAME, tmp_path_factory.mktemp("quickstart"))


def test_the_notebook_is_stored_without_outputs() -> None:
    assert cells_with_outputs(NAME) == []


def test_it_reads_more_than_95_percent_of_the_digits(outputs: dict[str, str]) -> None:
    percent = re.match(r"([\d.]+)%", outputs["test"])

    assert percent is not None
    assert float(percent.group(1)) > 95


def test_the_loss_falls(outputs: dict[str, str]) -> None:
    losses = [float(number) for number in re.findall(r"loss (\S+)", outputs["train"])]

    assert len(losses) == 15
    assert losses[-1] < losses[0] / 3


def test_the_copies_of_a_variable_are_shown_in_sync(outputs: dict[str, str]) -> None:
    assert "in sync" in outputs["inspect-variable"]


def test_the_loss_is_shown_by_replica(outputs: dict[str, str]) -> None:
    assert "over 2 replicas" in outputs["inspect-loss"]


def test_the_cost_of_the_collectives_is_shown(outputs: dict[str, str]) -> None:
    assert "all_reduce" in outputs["collectives"]


def test_the_split_of_the_data_is_explained(outputs: dict[str, str]) -> None:
    assert "AUTO" in outputs["sharding"]
