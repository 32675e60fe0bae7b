"""Other tools can read what is exported."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.telemetry.simulation import MS, Call, Replicas, steps
from workbench.telemetry.events import Event
from workbench.telemetry.export.trace_files import nccl_tests_json, nccl_tests_text, perfetto, write_csv
from workbench.telemetry.feed.feed import Feed
from workbench.telemetry.records import COLUMNS


def small_feed(*calls: Call) -> Feed:
    replicas = Replicas(["a", "a", "b"], {"b": 777})
    replicas.record(*(calls or steps(3, [0, 1500, 300_000])))
    feed = Feed(now_ns=lambda: 0)
    for data in replicas.drain():
        feed.ingest(data)
    return feed


def trace_of(feed: Feed, *events: Event) -> list[dict[str, Any]]:
    trace = json.loads(json.dumps(perfetto(feed.to_arrow(), events), allow_nan=False))
    assert set(trace) == {"traceEvents", "displayTimeUnit"}
    result: list[dict[str, Any]] = trace["traceEvents"]
    return result


def test_hosts_are_integer_processes_and_replicas_threads() -> None:
    trace = trace_of(small_feed())
    assert all(type(event["pid"]) is int and type(event["tid"]) is int for event in trace)
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in trace if e["name"] == "thread_name"}
    assert names == {(1, 0): "r0 a cpu:0", (1, 1): "r1 a cpu:1", (2, 2): "r2 b cpu:2"}
    assert {e["args"]["name"] for e in trace if e["name"] == "process_name"} == {"host a", "host b"}


def test_slices_have_microseconds_of_the_drivers_clock() -> None:
    trace = trace_of(small_feed())
    slices = [e for e in trace if e["ph"] == "X" and e["cat"] == "collective" and e["args"]["step"] == 0]
    assert [(e["tid"], e["ts"], e["dur"]) for e in slices] == [
        (0, 1000.0, 400.0),
        (1, 1001.5, 398.5),
        (2, 1300.0, 100.0),
    ]
    waits = [e for e in trace if e["name"] == "wait" and e["ts"] < 1400]
    assert [(e["tid"], e["ts"], e["dur"]) for e in waits] == [(0, 1000.0, 300.0), (1, 1001.5, 298.5)]


def test_flows_lead_once_through_all_replicas_of_a_collective() -> None:
    flows: dict[int, list[dict[str, Any]]] = {}
    for event in trace_of(small_feed()):
        if event["ph"] in "stf":
            flows.setdefault(event["id"], []).append(event)
    assert len(flows) == 3
    for flow in flows.values():
        assert [event["ph"] for event in flow] == ["s", "t", "f"]
        assert [event["tid"] for event in flow] == [0, 1, 2]
        assert flow[-1]["bp"] == "e"
        assert [event["ts"] for event in flow] == sorted(event["ts"] for event in flow)


def test_unfinished_collectives_are_left_out_of_the_trace() -> None:
    feed = small_feed(Call([MS, None, None], 0, state="entered"))
    assert trace_of(feed) == []


def test_events_are_instants() -> None:
    lost = Event("lifecycle", "replica_lost", "killed", 5_500, "error", 2, "b")
    (instant,) = (e for e in trace_of(small_feed(), lost) if e["ph"] == "i")
    assert (instant["name"], instant["ts"], instant["pid"], instant["tid"]) == (
        "replica_lost: killed",
        5.5,
        2,
        2,
    )


def test_csv_has_a_header_and_a_line_per_record(tmp_path: Path) -> None:
    feed = small_feed()
    write_csv(feed.to_arrow(), tmp_path / "run.csv")
    with (tmp_path / "run.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert [{name: str(value) for name, value in row.items()} for row in feed.to_arrow().to_pylist()] == rows


def test_the_nccl_tests_table_parses_as_that_of_all_reduce_perf() -> None:
    feed = small_feed(
        Call([MS] * 3, MS + 50_000, nbytes=1 << 20), Call([9 * MS] * 3, 10 * MS, seq=1, op="barrier")
    )
    lines = nccl_tests_text(feed.table()).splitlines()
    assert lines[0] == "# all_reduce g nranks 3"
    assert lines[1].split()[1:] == [
        "size",
        "count",
        "type",
        "redop",
        "root",
        "time",
        "algbw",
        "busbw",
        "#wrong",
    ]
    assert lines[3].split() == ["1048576", "262144", "float", "sum", "-1", "50.00", "20.97", "27.96", "N/A"]
    assert lines[7].split()[5:] == ["1000.00", "–", "–", "N/A"]


def test_the_nccl_tests_json_has_its_field_names() -> None:
    feed = small_feed(Call([MS] * 3, MS + 50_000, nbytes=1 << 20))
    report = json.loads(json.dumps(nccl_tests_json(feed.table()), allow_nan=False))
    (result,) = report["results"]
    assert (result["size"], result["count"], result["type"], result["redop"], result["root"]) == (
        1 << 20,
        1 << 18,
        "float",
        "sum",
        -1,
    )
    assert result["out_of_place"]["time"] == 50
    assert result["out_of_place"]["bus_bw"] == pytest.approx(20.97152 * 4 / 3)
    assert report["average_bus_bandwidth"]["bandwidth"] == pytest.approx(27.962, abs=0.001)
    assert nccl_tests_json(())["average_bus_bandwidth"]["bandwidth"] is None
