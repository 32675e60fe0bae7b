"""One definition of what views draw: TypeScript has it from Python, and the recorded models are of it."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from workbench.telemetry.delta import merge
from workbench.ui.models.messages import MODELS
from workbench.ui.models.model_check import misfits
from workbench.ui.render.plain_values import plain

EXTENSION = Path(__file__).parents[2] / "extension"
RECORDED = EXTENSION / "tests" / "recorded"
SAVED = Path(__file__).with_name("saved_shapes.json")
"""What views that lie in notebooks have, by class: never generated again, only replaced at a release."""
VIEW_OF = {
    "array_copies": "array_sharding",
    "array_uneven": "array_sharding",
    "collectives": "collectives",
    "dataset_files": "dataset_sharding",
    "dataset_memory": "dataset_sharding",
    "dataset_running": "dataset_sharding",
    "devices": "devices",
    "input_measured": "input",
    "input_starving": "input",
    "service_live": "data_service",
    "service_waiting": "data_service",
    "servers_live": "servers",
    "servers_lost": "servers",
    "lost": "collectives",
    "runs": "runs",
    "stuck": "collectives",
    "topology": "topology",
    "topology_busy": "topology",
    "topology_lost": "topology",
    "values": "values",
    "values_apart": "values",
    "values_difference": "values",
    "values_elements": "values",
    "values_numbers": "values",
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


def test_views_that_earlier_versions_saved_are_drawn(generator: ModuleType) -> None:
    now, saved = generator.all_shapes(), json.loads(SAVED.read_text(encoding="utf-8"))
    unlike = [
        f"{model}.{field}"
        for model, fields in saved.items()
        for field in fields.keys() | now.get(model, {}).keys()
        if not _draws(now.get(model, {}).get(field), fields.get(field))
    ]

    assert unlike == [], (
        "a field that comes later needs a default and `metadata=ADDED`; one that was saved has to stay"
    )


def _draws(now: Any, saved: Any) -> bool:
    """Whether files' values of a field fit; None if there are none."""
    if isinstance(saved, dict) and "optional" in saved:
        return isinstance(now, dict) and "optional" in now and _draws(now, saved["optional"])
    if isinstance(now, dict) and "optional" in now:
        return saved is None or _draws(now["optional"], saved)
    return bool(now == saved or (isinstance(now, dict) and saved in now.get("either", ())))


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
