"""A recording keeps every inspection, not only the last."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import workbench as wb
from workbench.ui.inspect.inspections import Inspections
from workbench.ui.models.inspected import Values
from workbench.ui.models.model_check import misfits


def test_two_inspections_of_a_recording_both_come_back(strategy: wb.MirroredStrategy, tmp_path: Path) -> None:
    with strategy.scope():
        w = wb.Variable(np.zeros(3, np.float32), name="w")
    with wb.record(tmp_path / "run.parquet"):
        wb.inspect(w)
        w.assign(np.array([0, np.nan, 0], np.float32))
        wb.inspect(w, elements=...)
        wb.inspect([w, w])
    model = wb.open_run(tmp_path / "run.parquet").model()["values"]

    assert misfits(model, Values) == []
    names = [value["name"] for value in model["values"]]
    assert names[0] == w.name
    assert names[1:] == [f"{w.name} (inspection 2)", *[f"{w.name} (inspection 3)"] * 2]
    assert [value["replicas"][0]["summary"]["nan"] for value in model["values"]] == [0, 1, 1, 1]
    assert model["first"]["value"] == 1


def a_model(name: str, *, first: bool = False, elements: bool = False) -> dict[str, Any]:
    about = {"value": 0}
    return {
        "values": [{"name": name, "kind": "Variable"}],
        "elements": dict(about) if elements else None,
        "looked_at": 0.0,
        "first": {**about, "text": name} if first else None,
    }


def test_the_oldest_make_room_and_what_refers_to_values_still_does() -> None:
    inspections = Inspections()
    inspections.with_earlier(a_model("bad", first=True))
    for number in range(2, 256):
        found = inspections.with_earlier(a_model(f"v{number}", first=True, elements=True))
        assert found["first"] == {"value": 0, "text": "bad"}
        assert found["values"][found["elements"]["value"]]["name"] == f"v{number} (inspection {number})"
    inspections.with_earlier(a_model("", elements=True))
    found = inspections.with_earlier(a_model("last", elements=True))
    assert len(found["values"]) == 256
    assert found["first"] is None  # gone with its value
    assert found["values"][-2]["name"] == "Variable (inspection 256)"
    assert found["elements"] == {"value": 255}
