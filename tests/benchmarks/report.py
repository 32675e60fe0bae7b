"""The results as Markdown: bars, one table per suite, what was not measured."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.benchmarks.bars import BARS
from tests.benchmarks.environments import INSTALL
from tests.benchmarks.machine import Machine
from tests.benchmarks.summary import QUIET_CORES, Figure, Key, figures, times_as_fast

_METHOD = (
    "A cell is the median over the rounds of their medians, then the smallest and largest round, then how many times "
    "as fast `workbench` is. Rounds in which other processes used more than "
    f"{QUIET_CORES} cores are left out where three quiet ones remain; `~` marks cells where they could not be."
)


def markdown(rows: list[dict[str, Any]], machine: Machine, *, rounds: int, scale: float) -> str:
    """The whole report."""
    found = figures(rows)
    parts = [
        f"# Benchmarks of {machine.date}, {machine.cpu}",
        machine.text(),
        f"{rounds} rounds in turn (A B C A B C …), time budgets × {scale:g}. {_METHOD}",
    ]
    parts += ["## Bars", _bars(found)]
    for suite, replicas in dict.fromkeys((key.suite, key.replicas) for key in found):
        title = f"## {suite}" + (f", {replicas} replicas" if replicas else "")
        parts += [title, *_tables(suite, replicas, found)]
    parts += list(_troubles(rows))
    return "\n\n".join(parts) + "\n"


def _bars(found: dict[Key, Figure]) -> str:
    lines = ["| what | ours | bar | measured | met |", "|---|---|---|---|---|"]
    for bar in BARS:
        value = bar.value(found)
        if bar.ours not in found:
            continue
        ours = found[bar.ours]
        what = f"{bar.ours.suite}: {bar.ours.what}"
        if bar.ours.replicas > 2:
            what += f", {bar.ours.replicas} replicas"
        told = f"{ours.median:.3g} {ours.unit}" + (
            "" if bar.ours.who == "workbench" else f" ({bar.ours.who})"
        )
        if bar.peer is None:
            limit, measured = (
                f"{bar.sign} {bar.limit:g} {ours.unit}",
                "" if value is None else f"{value:.3g} {ours.unit}",
            )
        else:
            limit = f"≥ {bar.limit:g} × {bar.peer.who}"
            measured = "" if value is None else f"{value:.2f} ×"
        met = "not measured" if value is None else "yes" if bar.met(value) else "**no**"
        lines.append(f"| {what} | {told} | {limit} | {measured} | {met} |")
    return "\n".join(lines)


def _tables(suite: str, replicas: int, found: dict[Key, Figure]) -> Iterable[str]:
    """One table per unit, because cases with one unit share columns."""
    mine = {key: figure for key, figure in found.items() if (key.suite, key.replicas) == (suite, replicas)}
    for unit in dict.fromkeys(figure.unit for figure in mine.values()):
        cells = {key: figure for key, figure in mine.items() if figure.unit == unit}
        columns = list(dict.fromkeys(key.what for key in cells))
        lines = [f"| {unit} | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
        for who in dict.fromkeys(key.who for key in cells):
            row = [_cell(Key(suite, replicas, who, what), found) for what in columns]
            lines.append(f"| {who} | " + " | ".join(row) + " |")
        yield "\n".join(lines)


def _cell(key: Key, found: dict[Key, Figure]) -> str:
    figure = found.get(key)
    if figure is None:
        return ""
    low, high = figure.spread
    text = ("~" if figure.noisy else "") + _short(figure.median)
    if len(figure.by_round) > 1:
        text += f" [{_short(low)}..{_short(high)}]"
    if figure.unit == "s" and key.suite == "failure":
        text += f" p95 {_short(figure.p95)}, max {_short(figure.highest)}"
    ours = found.get(key._replace(who="workbench"))
    if ours is not None and ours is not figure:
        text += f" ({_short(times_as_fast(ours, figure))}×)"
    return text


def _short(value: float) -> str:
    if abs(value) >= 1e6:
        return f"{value / 1e6:.3g}M"
    if abs(value) >= 1e4:
        return f"{value / 1e3:.3g}k"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _troubles(rows: list[dict[str, Any]]) -> Iterable[str]:
    failed = dict.fromkeys(
        f"* {r['suite']}, {r['who']}, {r['what']}: {r['error']}" for r in rows if "error" in r
    )
    if failed:
        yield "## Failed\n\n" + "\n".join(failed)
    missing = [row for row in rows if "missing" in row]
    if missing:
        lines = [f"* {row['suite']}, {row['who']}: {row['missing']}" for row in missing]
        how = [
            f"* {name}: `{INSTALL[name]}`" for name in dict.fromkeys(row["environment"] for row in missing)
        ]
        yield "\n".join(["## Not measured\n", *lines, "\nHow to get them:\n", *how])
