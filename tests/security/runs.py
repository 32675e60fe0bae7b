"""Recorded runs in which every text is hostile, as a file from a stranger may be."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.extension.test_models import recorded
from workbench.telemetry.clocks import Anchor
from workbench.telemetry.events import Event
from workbench.telemetry.records import COLUMNS, TEXT_COLUMNS, schema
from workbench.telemetry.runs.run_metadata import RUN_KEY, Facts
from workbench.telemetry.runs.saved_models import LOOKS_KEY, Looks
from workbench.ui.models.messages import MODELS

MS = 1_000_000
LOOKED_AT = {
    "topology": "topology_busy",
    "devices": "devices",
    "values": "values",
    "array_sharding": "array_uneven",
    "dataset_sharding": "dataset_files",
    "input": "input_starving",
    "data_service": "service_live",
    "servers": "servers_live",
}
"""View -> the recorded model whose texts are replaced."""


def with_texts(value: Any, text: Callable[[str, str], str], name: str = "") -> Any:
    """JSON with each string replaced by `text(name of the field, string)`."""
    if isinstance(value, dict):
        return {key: with_texts(part, text, key) for key, part in value.items()}
    if isinstance(value, list):
        return [with_texts(part, text, name) for part in value]
    return text(name, value) if isinstance(value, str) else value


def write_run(path: Path, texts: Sequence[str]) -> Path:
    """Writes a run in which every text of records, events, models and limits is one of `texts`.

    Two replicas per collective, so that they join; the last one is stuck. Each text comes in each column.
    """
    rows: list[dict[str, Any]] = []
    for number, text in enumerate(texts):
        rows += [_record(text, number, replica) for replica in (0, 1)]
    rows.append(_record(texts[-1], len(texts), 0) | {"t_start_ns": 0, "t_end_ns": 0, "state": "entered"})
    plain = [pa.field(field.name, _plain(field.type), nullable=False) for field in schema()]
    table = pa.table({name: [row[name] for row in rows] for name in COLUMNS}, pa.schema(plain))
    facts = Facts(Anchor(1, 2), 3, 4, tuple(map(_event, itertools.count(), texts)))
    pq.write_table(
        table.cast(schema()).replace_schema_metadata(
            {RUN_KEY: facts.encode(), LOOKS_KEY: Looks(_models(texts), tuple(texts[:3])).encode()}
        ),
        path,
    )
    return path


def _models(texts: Sequence[str]) -> dict[str, str]:
    endless = itertools.cycle(texts)
    models = {view: with_texts(recorded(name), lambda *_: next(endless)) for view, name in LOOKED_AT.items()}
    assert models.keys() <= MODELS.keys()
    return {view: json.dumps(model) for view, model in models.items()}


def _record(text: str, number: int, replica: int) -> dict[str, Any]:
    begin = number * MS
    texts = dict.fromkeys(TEXT_COLUMNS, text) | {"run_id": "run", "purpose": text if number % 2 else ""}
    # For the run of one group, everything in it gets a table, lanes and lateness.
    texts |= {"group": "g"} if number % 3 else {}
    texts |= {"state": "ok"} if number % 5 else {}
    return texts | {
        "generation": 0,
        "step": number,
        "seq": 0,
        "count": 8,
        "bytes": 64,
        "packs": 2,
        "replica": replica,
        "t_enter_ns": begin + replica * 50_000,
        "t_start_ns": begin + 50_000,
        "t_end_ns": begin + 90_000,
        "clock_offset_ns": 0,
        "clock_err_ns": 10,
        "n": 2,
    }


def _event(number: int, text: str) -> Event:
    event = Event("log", text, text, number * MS, "info", 0, text, number, text, 0)
    kinds = ("log", "alert", "lifecycle", text)
    severities = ("info", "warning", "error", text)
    return dataclasses.replace(event, kind=kinds[number % 4], severity=severities[number // 4 % 4])


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
