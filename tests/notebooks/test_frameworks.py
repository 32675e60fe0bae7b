"""One function trains alike on NumPy, PyTorch, JAX and compiled JAX, as the notebook about frameworks shows."""

from __future__ import annotations

import importlib.util
import re

import pytest

from tests.notebooks.conftest import OutputsOf
from tests.notebooks.executed import cells_with_outputs

pytest.importorskip("jax", reason="JAX is not installed: pip install -e '.[jax]'")
NAME = "06_bring_your_framework.ipynb"


@pytest.fixture(scope="module")
def outputs(outputs_of: OutputsOf) -> dict[str, str]:
    return outputs_of(NAME)


def test_the_notebook_is_stored_without_outputs() -> None:
    assert cells_with_outputs(NAME) == []


def test_all_frameworks_come_to_the_same_losses(outputs: dict[str, str]) -> None:
    differences = [float(text) for text in re.findall(r"to NumPy (\S+)", outputs["compare"])]

    assert len(differences) == (4 if importlib.util.find_spec("torch") else 3)
    assert max(differences) < 1e-5


def test_the_loss_falls_with_each_framework(outputs: dict[str, str]) -> None:
    for cell in ("numpy", "jax", "tpu"):
        found = re.search(r"loss (\S+) → (\S+) in 33 steps", outputs[cell])

        assert found is not None
        assert float(found[2]) < float(found[1]) / 2


def test_the_runs_are_shown_side_by_side(outputs: dict[str, str]) -> None:
    shown = ["NumPy", "JAX"] + ["PyTorch"] * bool(importlib.util.find_spec("torch"))

    for name in shown:
        assert re.search(rf"PerReplica .*{name}.* over 2 replicas", outputs["side"])
        assert name in outputs["timing"]
    assert outputs["timing"].count("all_reduce ") == len(shown)


def test_what_is_missing_is_told_before_anything_runs(outputs: dict[str, str]) -> None:
    missing = [name for name in ("jax", "torch") if not importlib.util.find_spec(name)]

    assert re.findall(r"(\w+) is missing: run `\./wb install \1`", outputs["missing"]) == missing
