"""The quickstart notebook runs from top to bottom, learns, and shows what it promises."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.datasets import load_digits

from tests.notebooks.conftest import OutputsOf
from tests.notebooks.executed import cells_with_outputs

NAME = "01_quickstart.ipynb"


@pytest.fixture(scope="module")
def outputs(outputs_of: OutputsOf) -> dict[str, str]:
    return outputs_of(NAME)


def test_the_notebook_is_stored_without_outputs() -> None:
    assert cells_with_outputs(NAME) == []


def test_the_drawn_digits_are_a_0_a_1_and_a_2(outputs: dict[str, str]) -> None:
    """A person sees it; here the mean of all digits that are drawn alike does, and the 1 has no arm as a 4 has."""
    digits = load_digits()
    means = np.stack([digits.data[digits.target == digit].mean(0) for digit in range(10)]) / 16
    lines = outputs["data"].splitlines()
    drawn = [
        [" ░▒▓█".index(line[18 * digit + 2 * column]) / 4 for line in lines for column in range(8)]
        for digit in range(3)
    ]

    assert [int(((means - digit) ** 2).sum(1).argmin()) for digit in drawn] == [0, 1, 2]
    one = np.array(drawn[1]).reshape(8, 8)
    assert (one[1:] > 0.25).sum(1).max() <= 4  # one arm of a 4 would be wider


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


@pytest.mark.parametrize("cell", ["overview", "close"])
def test_the_run_is_shown_at_a_glance_and_stays_so_when_the_cluster_is_closed(
    outputs: dict[str, str], cell: str
) -> None:
    for figure in ("steps per second", "replicas live", "time waited", "not finite"):
        assert figure in outputs[cell]


def test_the_split_of_the_data_is_explained(outputs: dict[str, str]) -> None:
    assert "AUTO" in outputs["sharding"]
