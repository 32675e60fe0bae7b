"""One definition of what views draw: TypeScript has it from Python, and the recorded models are of it."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import types
import typing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from workbench.telemetry.snapshot import merge
from workbench.ui.models import MODELS
from workbench.ui.plain import plain

EXTENSION = Path(__file__).parents[2] / "extension"
RECORDED = EXTENSION / "tests" / "recorded"
VIEW_OF = {
    "array_copies": "array_sharding",
    "array_uneven": "array_sharding",
    "collectives": "collectives",
    "dataset_files": "dataset_sharding",
    "dataset_memory": "dataset_sharding",
    "dataset_running": "dataset_sharding",
    "devices": "devices",
    "lost": "collectives",
    "runs": "runs",
    "stuck": "collectives",
    "topology": "topology",
    "topology_busy": "topology",
    "topology_lost": "topology",
    "values": "values",
    "values_difference": "values",
    "values_elements": "values",
}

pytestmark = pytest.mark.skipif(
    not EXTENSION.is_dir(), reason="the sources of the views are not here: installed without them"
)


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    """`extension/models.py`, imported from where it lies."""
    spec = importlib.util.spec_from_file_location("extension_models", EXTENSION / "models.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def recorded(name: str) -> Any:
    return json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))


def misfits(value: Any, kind: Any, fields: Any, where: str = "model") -> list[str]:
    """Where a JSON value is not of a Python type."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        found = [misfits(value, part, fields, where) for part in arguments]
        return [] if any(not wrong for wrong in found) else min(found, key=len)
    if origin is tuple:
        if not isinstance(value, list):
            return [f"{where}: {value!r} is no list"]
        kinds = arguments[:1] * len(value) if arguments[-1] is Ellipsis else arguments
        if len(kinds) != len(value):
            return [f"{where}: {len(value)} items"]
        parts = enumerate(zip(value, kinds, strict=True))
        return [
            wrong for index, (part, one) in parts for wrong in misfits(part, one, fields, f"{where}[{index}]")
        ]
    if dataclasses.is_dataclass(kind):
        expected = fields(kind)
        if not isinstance(value, dict) or set(value) != set(expected):
            return [f"{where}: has {value if not isinstance(value, dict) else sorted(value)}"]
        return [
            wrong
            for name, one in expected.items()
            for wrong in misfits(value[name], one, fields, f"{where}.{name}")
        ]
    fits = (
        isinstance(value, int | float) and not isinstance(value, bool)
        if kind is float
        else type(value) is kind
    )
    return [] if fits else [f"{where}: {value!r} is no {kind}"]


def test_the_typescript_types_are_generated_from_the_python_classes(generator: ModuleType) -> None:
    assert generator.TARGET.read_text(encoding="utf-8") == generator.typescript(), (
        "run `python extension/models.py`, and `python -m tests.extension.record` for new recordings"
    )


def test_the_shapes_that_are_checked_at_run_time_are_generated_from_the_python_classes(
    generator: ModuleType,
) -> None:
    assert generator.SHAPES.read_text(encoding="utf-8") == generator.shapes(), (
        "run `python extension/models.py`"
    )


@pytest.mark.parametrize("name", VIEW_OF)
def test_a_recorded_model_is_of_its_class(generator: ModuleType, name: str) -> None:
    assert misfits(recorded(name), MODELS[VIEW_OF[name]], generator.fields) == []


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda model: model.update(run=None), "model.run"),
        (lambda model: model.pop("status"), "model: has"),
        (lambda model: model["hosts"][0].update(workers={}), "model.hosts[0].workers"),
        (lambda model: model["hosts"][1]["workers"][0].update(pid="7"), "hosts[1].workers[0].pid"),
        (lambda model: model.update(more=1), "model: has"),
    ],
)
def test_a_model_that_is_not_of_its_class_is_noticed(generator: ModuleType, change: Any, where: str) -> None:
    model = recorded("topology")
    change(model)

    (wrong,) = misfits(model, MODELS["topology"], generator.fields)
    assert where in wrong


def test_the_recorded_change_leads_from_one_recorded_snapshot_to_the_other() -> None:
    before, after = (recorded(name)["snapshot"] for name in ("collectives", "stuck"))

    assert json.loads(json.dumps(merge(before, recorded("change")))) == after


def test_what_is_not_finite_becomes_null() -> None:
    @dataclasses.dataclass
    class Figures:
        values: tuple[float, ...]

    assert plain(Figures((1.0, float("nan"), float("inf")))) == {"values": [1.0, None, None]}
