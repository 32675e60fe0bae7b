"""The lab about collectives runs from top to bottom with its solutions, and its checks fail without them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.notebooks.conftest import OutputsOf
from tests.notebooks.executed import cells_with_outputs, errors_with, stored

NAME = "03_collectives.ipynb"
NOTEBOOK = stored(NAME)
CELLS = {cell.id: cell for cell in NOTEBOOK.cells}


PLAUSIBLE = {
    "tree": (
        "    n, distance = len(arrays), 1",
        "    return one_all_reduce(arrays, wire)\n    n, distance = 2, 1",
    ),
    "ring": ("    n = len(arrays)", "    return one_all_reduce(arrays, wire)\n    n = 2"),
    "busbw": ("2 * (n - 1) / n", "(n - 1) / n"),
    "fit": ("1 / (1000 * per_byte)", "1 / per_byte"),
    "together": (
        'ctx.all_reduce("mean", gradients)',
        "{k: ctx.all_reduce('mean', v) for k, v in gradients.items()}",
    ),
    "predict": ("2 * (n - 1) / n", "(n - 1) / n"),
    "crossover": (">=", "<"),
}
"""Of each exercise: a part of the solution, and what somebody might write instead."""


@pytest.fixture(scope="module")
def outputs(outputs_of: OutputsOf) -> dict[str, str]:
    return outputs_of(NAME)


def test_the_notebook_is_stored_without_outputs() -> None:
    assert cells_with_outputs(NAME) == []


def test_all_checks_pass_with_the_solutions(outputs: dict[str, str]) -> None:
    for exercise in ("tree", "ring", "busbw"):
        assert outputs[f"{exercise}-check"] == f"{exercise}: right\n"
    assert "all_reduce mean float64[651]" in outputs["together-check"]
    assert outputs["predict-check"] == "step: right\n"
    assert re.fullmatch(r"all_reduce over 4 replicas: \S+ µs \+ size / \S+ GB/s\n", outputs["fit-check"])


def test_the_ring_sends_least_and_the_tree_has_the_fewest_rounds(outputs: dict[str, str]) -> None:
    counted = re.findall(r"(\w+) +(\d+) rounds +(\d+) bytes", outputs["compare"])

    assert counted == [("ring", "14", "896"), ("tree", "6", "1536"), ("one", "14", "3584")]


def test_replicas_show_what_differs(outputs: dict[str, str]) -> None:
    assert "array([10., 10., 10.])" in outputs["replica"]
    assert "[replica 3, compared with 0]" in outputs["replica"]


def test_sweeps_print_as_nccl_tests_does(outputs: dict[str, str]) -> None:
    for cell in ("sweep", "alone"):
        assert outputs[cell].startswith("# all_reduce MirroredStrategy/1 nranks 4\n")
        assert len(re.findall(r"^ +\d+ +\d+ +float +sum", outputs[cell], re.M)) == 11
    assert outputs["records-check"] == "440 records per sweep\n"


def test_steps_are_predicted_up_to_ten_thousand_replicas(outputs: dict[str, str]) -> None:
    for cell in ("what-if", "network"):
        assert re.search(r"^ +10000 ", outputs[cell], re.M)
    assert outputs["crossover-check"].splitlines() == [
        "       64 bytes: the tree is faster from 4 replicas on",
        "    65536 bytes: the tree is faster from 4 replicas on",
        "  1048576 bytes: the tree is faster from 64 replicas on",
        " 16777216 bytes: the tree is faster from 2048 replicas on",
    ]


@pytest.mark.slow
def test_each_check_refuses_a_plausible_wrong_answer(tmp_path: Path) -> None:
    answers = {}
    for name, (right, wrong) in PLAUSIBLE.items():
        assert right in CELLS[name].source
        answers[name] = CELLS[name].source.replace(right, wrong)
    errors = errors_with(answers, NAME, tmp_path)

    assert set(errors) == {f"{name}-check" for name in PLAUSIBLE}
    assert {error.partition(":")[0] for error in errors.values()} == {"AssertionError"}


@pytest.mark.parametrize(("name", "wrong"), [("tree", "one_all_reduce"), ("ring", "tree_all_reduce")])
def test_another_way_to_the_same_sum_does_not_pass(name: str, wrong: str) -> None:
    here: dict[str, Any] = {}
    for cell in ("wire", "one", "tree"):
        exec(CELLS[cell].source, here)
    here[f"{name}_all_reduce"] = here[wrong]
    with pytest.raises(AssertionError, match=r"rounds|around the ring"):
        exec(CELLS[f"{name}-check"].source, here)
