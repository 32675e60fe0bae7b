"""Collective timings in other tools' formats: Perfetto/Chrome traces, CSV, and the tables of nccl-tests."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from workbench.telemetry.events import Event
from workbench.telemetry.formatting import NOTHING, printable
from workbench.telemetry.records import bandwidth
from workbench.telemetry.snapshot import EventItem, TableRow

if TYPE_CHECKING:
    import pyarrow as pa


def perfetto(records: pa.Table, events: Iterable[Event | EventItem] = ()) -> dict[str, Any]:
    """A trace in the JSON format of Chrome, for ui.perfetto.dev; write it with `json.dump`.

    Processes are hosts, and threads are replicas. A collective is a slice that contains its wait, and arrows connect
    the replicas of a collective. Times are µs of the driver's clock.

    Args:
      records: A table with `records.schema()`, as from `Feed.to_arrow` and `Run.to_arrow`.
      events: Events, shown as instants.
    """
    rows = [row for row in records.to_pylist() if row["state"] != "entered"]
    rows.sort(key=lambda row: (_key(row), row["replica"]))
    pids = {host: pid for pid, host in enumerate(sorted({row["host"] for row in rows}), start=1)}
    trace: list[dict[str, Any]] = [
        _metadata("process_name", pid, 0, f"host {host}") for host, pid in pids.items()
    ]
    trace += [
        _metadata("thread_name", pids[host], replica, f"r{replica} {host} {device}")
        for host, replica, device in sorted({(row["host"], row["replica"], row["device"]) for row in rows})
    ]
    for row in rows:
        trace.extend(_slices(row, pids[row["host"]]))
    trace.extend(_arrows(rows, pids))
    for event in events:
        trace.append(
            {
                "name": f"{event.name}: {event.message}",
                "cat": event.kind,
                "ph": "i",
                "s": "t" if event.host in pids else "g",
                "ts": event.t_ns / 1000,
                "pid": pids.get(event.host, 0),
                "tid": max(event.replica, 0),
            }
        )
    return {"traceEvents": trace, "displayTimeUnit": "ns"}


def _key(row: dict[str, Any]) -> tuple[str, int, str, int, int]:
    return row["run_id"], row["generation"], row["group"], row["step"], row["seq"]


def _metadata(name: str, pid: int, tid: int, value: str) -> dict[str, Any]:
    return {"name": name, "ph": "M", "pid": pid, "tid": tid, "args": {"name": value}}


def _slices(row: dict[str, Any], pid: int) -> Iterator[dict[str, Any]]:
    offset = row["clock_offset_ns"]
    common = {"ph": "X", "pid": pid, "tid": row["replica"], "ts": (row["t_enter_ns"] + offset) / 1000}
    shown = (
        *("step", "seq", "group", "redop", "dtype", "bytes"),
        *("algorithm", "packs", "transport", "state", "site", "purpose"),
    )
    spent = max(row["t_end_ns"] - row["t_enter_ns"], 0) / 1000
    arguments = {name: row[name] for name in shown}
    kind = "internal" if row["purpose"] else "collective"
    yield common | {"name": row["op"], "cat": kind, "dur": spent, "args": arguments}
    waited = (row["t_start_ns"] - row["t_enter_ns"]) / 1000
    if 0 < waited <= spent:
        yield common | {"name": "wait", "cat": "wait", "dur": waited}


def _arrows(rows: list[dict[str, Any]], pids: dict[str, int]) -> Iterator[dict[str, Any]]:
    """Flow events through all replicas of each collective, in the order in which they entered."""
    members: dict[tuple[str, int, str, int, int], list[dict[str, Any]]] = {}
    for row in rows:
        members.setdefault(_key(row), []).append(row)
    for flow, group in enumerate((g for g in members.values() if len(g) > 1), start=1):
        group = sorted(group, key=lambda row: row["t_enter_ns"] + row["clock_offset_ns"])
        for position, row in enumerate(group):
            phase = "s" if position == 0 else "f" if position == len(group) - 1 else "t"
            arrow = {
                "name": f"{row['op']} step {row['step']} seq {row['seq']}",
                "cat": "collective",
                "ph": phase,
                "id": flow,
                "ts": (row["t_enter_ns"] + row["clock_offset_ns"]) / 1000,
                "pid": pids[row["host"]],
                "tid": row["replica"],
            }
            # An arrow ends at the enclosing slice, not at the next one to begin.
            yield arrow | {"bp": "e"} if phase == "f" else arrow


def write_json(document: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Writes a JSON document, such as a trace."""
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file, allow_nan=False)


def write_parquet(records: pa.Table, path: str | os.PathLike[str]) -> None:
    """Writes the records as Parquet; the columns are those of `records.COLUMNS`."""
    import pyarrow.parquet

    pyarrow.parquet.write_table(records, os.fspath(path), compression="zstd", write_page_checksum=True)


def write_csv(records: pa.Table, path: str | os.PathLike[str]) -> None:
    """Writes the records as CSV with a header line; the columns are those of `records.COLUMNS`.

    A text that a spreadsheet would evaluate, because it begins with "=", "+", "-" or "@", gets a "'" in front.
    """
    import pyarrow as pa
    import pyarrow.csv

    plain = [
        pa.field(field.name, field.type.value_type if pa.types.is_dictionary(field.type) else field.type)
        for field in records.schema
    ]
    table = records.cast(pa.schema(plain))
    for place, field in enumerate(plain):
        if pa.types.is_string(field.type):
            table = table.set_column(place, field, _not_calculated(table.column(place)))
    pyarrow.csv.write_csv(table, os.fspath(path))


def _not_calculated(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    marked = pc.binary_join_element_wise("'", texts, "")
    return pc.if_else(pc.match_substring_regex(texts, r"^[=+\-@\t\r]"), marked, texts)


def nccl_tests_text(rows: Sequence[TableRow]) -> str:
    """The table in the format of nccl-tests, per collective and group, to paste beside `all_reduce_perf`.

    Times are medians of the transfer; "N/A" marks the columns of checked results and in-place runs.
    """
    lines = []
    for title in dict.fromkeys((row.op, row.group, row.n) for row in rows):
        op, group, n = title
        lines += [
            f"# {printable(f'{op} {group}')} nranks {n}",
            f"# {'size':>10}  {'count':>12}  {'type':>8}  {'redop':>6}  {'root':>6}"
            f"  {'time':>7}  {'algbw':>6}  {'busbw':>6}  {'#wrong':>6}",
            f"# {'(B)':>10}  {'(elements)':>12}  {'':>8}  {'':>6}  {'':>6}"
            f"  {'(us)':>7}  {'(GB/s)':>6}  {'(GB/s)':>6}  {'':>6}",
        ]
        for row in rows:
            if (row.op, row.group, row.n) == title:
                algbw, busbw = (NOTHING if x is None else f"{x:.2f}" for x in _median_rates(row))
                lines.append(
                    f"{row.size_bytes:>12}  {row.count:>12}  {printable(_nccl_dtype(row.dtype)):>8}"
                    f"  {printable(row.redop) or 'none':>6}  {-1:>6}"
                    f"  {row.p50_us:>7.2f}  {algbw:>6}  {busbw:>6}  {'N/A':>6}"
                )
    return "\n".join(lines)


def nccl_tests_json(rows: Sequence[TableRow]) -> dict[str, Any]:
    """The table in the format of nccl-tests' `-J` file, plus the name of the collective in each result."""
    results = []
    for row in rows:
        algbw, busbw = _median_rates(row)
        figures = {"time": row.p50_us, "alg_bw": algbw, "bus_bw": busbw, "nwrong": None}
        results.append(
            {
                "collective": row.op,
                "group": row.group,
                "nranks": row.n,
                "size": row.size_bytes,
                "count": row.count,
                "type": _nccl_dtype(row.dtype),
                "redop": row.redop or "none",
                "root": -1,
                "out_of_place": figures,
            }
        )
    rates = [busbw for _, busbw in map(_median_rates, rows) if busbw is not None]
    average = sum(rates) / len(rates) if rates else None
    return {"results": results, "average_bus_bandwidth": {"bandwidth": average, "okay": "unchecked"}}


def _median_rates(row: TableRow) -> tuple[float | None, float | None]:
    rates = bandwidth(row.op, row.size_bytes, row.p50_us * 1000, row.n)
    return rates.algbw, rates.busbw


def _nccl_dtype(dtype: str) -> str:
    names = {"float32": "float", "float64": "double", "float16": "half"}
    return names.get(dtype, dtype)
