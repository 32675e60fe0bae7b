"""Rows 38, 45, 48: opening a file runs nothing, and no name leads out of the folder that it is meant for."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import workbench as wb
from tests.security.payloads import PAYLOADS, encodable
from tests.security.runs import LOOKED_AT, write_run
from tests.server.conftest import API, Server, server
from workbench.errors import DataCorruption, InvalidArgumentError, NotFoundError, WorkbenchError
from workbench.runtime.deploy.registry import Registry
from workbench.server.layout_names import keep
from workbench.telemetry.records import COLUMNS
from workbench.telemetry.runs.checksummed import sealed
from workbench.telemetry.runs.run_metadata import RUN_KEY
from workbench.telemetry.runs.saved_models import LOOKS_KEY, Looks

__all__ = ["server"]

LEADING_OUT = (
    "..",
    "../outside.parquet",
    "../../outside.parquet",
    "runs/../../outside.parquet",
    "%2e%2e/outside.parquet",
    "..%2foutside.parquet",
    "%252e%252e%252foutside.parquet",
    "..%5coutside.parquet",
    "%2fetc%2fpasswd",
    "/etc/passwd",
    "//etc/passwd",
    "runs/link.parquet",
    "runs/folder/outside.parquet",
    "runs/hostile.parquet%00.txt",
    "%00",
    "runs/%c0%ae%c0%ae/outside.parquet",
    "runs/..;/outside.parquet",
    "~root/x.parquet",
    "file:%2f%2f%2fetc%2fpasswd",
)


class Bomb:
    """Makes a folder when it is unpickled."""

    def __init__(self, proof: Path) -> None:
        self.proof = proof

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.proof),)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts = [encodable(payload)[:400] for payload in PAYLOADS]
    return write_run(tmp_path_factory.mktemp("runs") / "hostile.parquet", texts)


def test_a_run_full_of_pickles_is_read_as_data(hostile: Path, tmp_path: Path) -> None:
    proof = tmp_path / "executed"
    bomb = pickle.dumps(Bomb(proof))
    table = pq.read_table(hostile)
    metadata = dict(table.schema.metadata)
    kind = {
        b"ARROW:extension:name": b"arrow.py_extension_type",
        b"ARROW:extension:metadata": bomb,
    }
    with_pickles = pa.field("extra", pa.binary(), metadata=kind)
    table = table.append_column(with_pickles, pa.array([bomb] * table.num_rows, pa.binary()))
    table = table.replace_schema_metadata(metadata | {b"pandas": bomb, b"pickle": bomb})
    pq.write_table(table, tmp_path / "run.parquet")

    model = wb.open_run(tmp_path / "run.parquet").model()
    assert model["collectives"]["snapshot"]["table"]
    for key in (RUN_KEY, LOOKS_KEY):
        for data in (bomb, sealed(bomb), sealed(b"[" * 100_000), sealed(b'{"__proto__": 1}')):
            damaged = table.replace_schema_metadata(metadata | {key: data})
            pq.write_table(damaged, tmp_path / "damaged.parquet")
            with pytest.raises(DataCorruption, match=r"damaged\.parquet"):
                wb.open_run(tmp_path / "damaged.parquet").model()
    assert not proof.exists()


def test_columns_of_python_objects_are_refused(hostile: Path, tmp_path: Path) -> None:
    proof = tmp_path / "executed"
    table = pq.read_table(hostile)
    for name in COLUMNS:
        bombs = pa.array([pickle.dumps(Bomb(proof))] * table.num_rows, pa.binary())
        place = table.schema.get_field_index(name)
        pq.write_table(table.set_column(place, name, bombs), tmp_path / "run.parquet")
        with pytest.raises(DataCorruption, match=name):
            wb.open_run(tmp_path / "run.parquet")
    assert not proof.exists()


def test_models_that_are_no_models_are_left_out_and_named(hostile: Path, tmp_path: Path) -> None:
    table = pq.read_table(hostile)
    for text in ('{"__proto__": {"hit": 1}}', "[]", "3", '"x"', "null", "[" * 50_000, "{", '{"status": 3}'):
        looks = Looks(dict.fromkeys(LOOKED_AT, text)).encode()
        pq.write_table(
            table.replace_schema_metadata(dict(table.schema.metadata) | {LOOKS_KEY: looks}), tmp_path / "x"
        )
        model = wb.open_run(tmp_path / "x").model()
        assert [model[view] for view in LOOKED_AT] == [None] * len(LOOKED_AT)
        json.dumps(model)


def test_a_baseline_of_a_sweep_that_is_a_pickle_is_refused(tmp_path: Path) -> None:
    from workbench.ui.collectives.sweep_baseline import load_baselines

    proof = tmp_path / "executed"
    for data in (pickle.dumps(Bomb(proof)), b"[" * 100_000, b'{"format": "workbench sweep 1", "sweeps": 3}'):
        (tmp_path / "sweep.json").write_bytes(data)
        with pytest.raises(InvalidArgumentError, match=r"sweep\.json"):
            load_baselines(tmp_path / "sweep.json")
    assert not proof.exists()


def test_a_name_of_a_run_is_one_of_the_list_or_nothing(hostile: Path) -> None:
    runs = wb.runs(hostile.parent)
    assert len(runs) == 1
    for name in ("../x", "/etc/passwd", "\0", str(hostile) + "\0", "", ".", "..", *PAYLOADS):
        with pytest.raises(NotFoundError, match="no recorded run"):
            runs[name]


def test_names_of_layouts_are_names(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "clusters")
    for payload in PAYLOADS:
        try:
            keep([payload], registry)
        except InvalidArgumentError:
            continue
        assert payload.isprintable()
        assert [path.name for path in registry.folder.iterdir()] == ["layouts.json"]
    with pytest.raises(WorkbenchError, match="there is no layout"):
        wb.layout("../../etc/passwd")


@pytest.mark.parametrize("route", ["runs/{}", "runs?compare={}&compare=runs/hostile.parquet", "clusters/{}"])
def test_no_route_leads_out_of_the_servers_folder(server: Server, hostile: Path, route: str) -> None:
    runs = server.root / "runs"
    runs.mkdir(exist_ok=True)
    (runs / "hostile.parquet").write_bytes(hostile.read_bytes())
    outside = server.root.parent / "outside.parquet"
    outside.write_bytes(hostile.read_bytes())
    for link, target in ((runs / "link.parquet", outside), (runs / "folder", outside.parent)):
        if not link.is_symlink():
            link.symlink_to(target)

    for path in LEADING_OUT:
        answer = server.request("GET", f"{API}/{route.format(path)}")
        assert answer.status in (400, 403, 404), path
        assert b"root:" not in answer.body
        assert str(server.home).encode() not in answer.body
    if route.startswith("runs"):
        assert server.request("GET", f"{API}/{route.format('runs/hostile.parquet')}").status == 200
        assert server.request("GET", f"{API}/runs").json()["runs"][0]["path"] == "runs/hostile.parquet"
