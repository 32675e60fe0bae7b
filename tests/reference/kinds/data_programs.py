"""The kind `data_program`: lines of code over the data API, with a scratch folder."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.reference.interpreter.codec import Json, dtype_name
from tests.reference.interpreter.files import record_file
from tests.reference.interpreter.namespaces import array_names
from tests.reference.interpreter.programs import run_program
from tests.reference.interpreter.world import World
from tests.reference.observation import Observed
from tests.reference.outcomes import api

_PUBLIC = {
    **{name: (f"data.{name}",) for name in ("Dataset", "Options", "IteratorSpec")},
    **{
        name: (f"data.{name}",) for name in ("TextLineDataset", "TFRecordDataset", "FixedLengthRecordDataset")
    },
    "TensorSpec": ("data.TensorSpec", "TensorSpec"),
    "SqlDataset": ("data.experimental.SqlDataset",),
    "to_variant": ("data.experimental.to_variant",),
    "from_variant": ("data.experimental.from_variant",),
    "experimental": ("data.experimental",),
    "service": ("data.experimental.service",),
    "errors": ("errors",),
    "set_seed": ("data.set_seed", "random.set_seed"),
}


def data_program(given: Json, world: World, observed: Observed) -> None:
    names: dict[str, Callable[[], Any]] = {
        **array_names(),
        **{name: functools.partial(api, *spellings) for name, spellings in _PUBLIC.items()},
        **_file_names(world.scratch),
        "spec": lambda: encode_spec,
        "values": lambda: lambda dataset: [plain(element) for element in dataset],
        "snapshot": lambda: functools.partial(_snapshot, world.scratch, api("data.experimental.snapshot")),
    }
    observed.fields["result"] = run_program(given["code"], names)


def plain(value: Any) -> Any:
    """`value` with arrays turned into Python numbers, texts and lists."""
    match value:
        case tuple() | list():
            return type(value)(plain(item) for item in value)
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case np.ndarray() | np.generic():
            return plain(value.tolist())
        case bytes():
            return value.decode()
        case _:
            return value


def encode_spec(spec: Any) -> Any:
    """An element spec as the vectors write it."""
    match spec:
        case tuple() | list():
            return {"tuple": [encode_spec(item) for item in spec]}
        case dict():
            return {"dict": {key: encode_spec(item) for key, item in spec.items()}}
    if hasattr(spec, "element_spec"):
        return {"dataset": encode_spec(spec.element_spec)}
    return {"t": dtype_name(spec.dtype), "s": None if spec.shape is None else list(spec.shape)}


def _file_names(scratch: Path) -> dict[str, Callable[[], Any]]:
    def path(name: str) -> str:
        return str(scratch / name)

    def write_records(name: str, records: list[Any]) -> None:
        data = [record.encode() if isinstance(record, str) else bytes(record) for record in records]
        (scratch / name).write_bytes(record_file(data))

    return {
        "path": lambda: path,
        "write_text": lambda: lambda name, text: (scratch / name).write_bytes(text.encode()),
        "write_records": lambda: write_records,
        "exists": lambda: lambda name: (scratch / name).exists(),
        "listdir": lambda: lambda name="": sorted(os.listdir(scratch / name)),
    }


def _snapshot(scratch: Path, public: Callable[..., Any], dataset: Any, name: str, **options: Any) -> Any:
    return dataset.apply(public(str(scratch / name), **options))


KINDS = {"data_program": data_program}
