"""The notebook about emulated TPUs runs from top to bottom, learns, and shows what it promises."""

from __future__ import annotations

import re

import pytest

from tests.notebooks.conftest import OutputsOf
from tests.notebooks.executed import cells_with_outputs

pytest.importorskip("jax", reason="JAX is not installed: pip install -e '.[jax]'")
NAME = "08_tpu_emulated.ipynb"


@pytest.fixture(scope="module")
def outputs(outputs_of: OutputsOf) -> dict[str, str]:
    return outputs_of(NAME)


def test_the_notebook_is_stored_without_outputs() -> None:
    assert cells_with_outputs(NAME) == []


def test_it_reads_more_than_94_percent_of_the_digits(outputs: dict[str, str]) -> None:
    percent = re.match(r"([\d.]+)%", outputs["test"])

    assert percent is not None
    assert float(percent.group(1)) > 94


def test_the_loss_falls(outputs: dict[str, str]) -> None:
    losses = [float(number) for number in re.findall(r"loss (\S+)", outputs["train"])]

    assert len(losses) == 15
    assert losses[-1] < losses[0] / 3


def test_a_branch_on_a_value_is_explained(outputs: dict[str, str]) -> None:
    assert "if replica.replica_id_in_sync_group == 0" in outputs["errors"]
    assert "ctx.select" in outputs["errors"]
    assert "10" in outputs["select"]


def test_the_copies_of_a_variable_are_shown_in_sync(outputs: dict[str, str]) -> None:
    assert "in sync" in outputs["inspect"]


def test_steps_are_measured(outputs: dict[str, str]) -> None:
    assert "step" in outputs["collectives"]


def test_an_assignment_takes_some_cores(outputs: dict[str, str]) -> None:
    assert "'TPU:0', 'TPU:2', 'TPU:4', 'TPU:6'" in outputs["assignment"]
