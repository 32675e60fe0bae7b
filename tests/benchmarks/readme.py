"""What the guide says of benchmarks, made of the results files in the repository; nothing there is written by hand.

    python -m tests.benchmarks.readme     # after `python -m tests.benchmarks`, with the results file committed

The page of benchmarks has all bars, that of the comparison the section that `side_by_side` makes.
A row is one case of workbench that has a bar, with what the peers needed for the same case in the same rounds. Each
suite is that of the newest file that has it, and the text above the table dates it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks import side_by_side
from tests.benchmarks.bars import BARS, Bar
from tests.benchmarks.machine import Machine
from tests.benchmarks.ours import training
from tests.benchmarks.ours.timeline import CALLS, CALLS_ON_REPLICA, ON_REPLICA, PHASES
from tests.benchmarks.summary import QUIET_CORES, Figure, Key, figures

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[2] / "notebooks" / "guide" / "benchmarks.md"
BEGIN, END = "<!-- benchmarks: begin -->\n", "<!-- benchmarks: end -->"


def newest(folder: Path = RESULTS) -> list[dict[str, Any]]:
    """The results of each suite that were written last: the newest file, then older ones with the suites that it lacks.

    Raises:
      FileNotFoundError: if there are none.
    """
    everything = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    found = [data for data in everything if "rounds" in data]  # the others belong to tests.gpu
    if not found:
        raise FileNotFoundError(f"there are no results in {folder}; `python -m tests.benchmarks` writes some")
    seen: set[str] = set()
    parts = []
    for data in sorted(found, key=_finished, reverse=True):
        rows = [row for row in data["rows"] if row["suite"] not in seen]
        if rows:
            parts.append(data | {"rows": rows})
        seen |= {row["suite"] for row in rows}
    return parts


def _finished(data: Mapping[str, Any]) -> str:
    return str(data.get("finished", data["machine"]["date"]))  # ISO dates sort as text


def section(parts: Sequence[Mapping[str, Any]]) -> str:
    """What stands between the markers, for results of which no two have a suite in common."""
    found = figures(row for data in parts for row in data["rows"])
    groups: dict[Key, list[Bar]] = {}
    for bar in BARS:
        groups.setdefault(bar.ours, []).append(bar)
    lines = ["| what | workbench | peers | bar | met |", "|---|---|---|---|---|"]
    lines += [_row(key, bars, found) for key, bars in groups.items()]
    return _head(parts) + "\n\n" + "\n".join(lines) + "\n" + _timeline(found) + _profile(found)


def _timeline(found: Mapping[Key, Figure]) -> str:
    """How a step's time is spent, in words; "" if not measured."""
    names = (*PHASES, ON_REPLICA, CALLS, CALLS_ON_REPLICA)
    figures = [found.get(Key("dispatch", 2, "workbench", name)) for name in names]
    if any(figure is None for figure in figures):
        return ""
    before, sent, first, second, after, replica, calls, on_replica = (
        f"{figure.median:.0f}" for figure in figures if figure is not None
    )
    noisy = "~" if any(figure is not None and figure.noisy for figure in figures) else ""
    return "\n".join(
        (
            "",
            f"Where the time of a noop step goes: {noisy}{before} µs before it is sent, {sent} to send it to both",
            f"replicas, {first} until the first has answered, which has it for {replica}, {second} until the",
            f"second has, {after} after that. The driver calls {calls} functions for it and each replica",
            f"{on_replica}, each time with the caches of its core filled by the others; bare sockets do with some",
            "twenty.",
            "",
        )
    )


def _profile(found: Mapping[Key, Figure]) -> str:
    """How a training step's time is spent, in words; "" if not measured."""
    names = (*training.PARTS, training.ALL_REDUCE_ALONE, training.DRIVER)
    figures = [found.get(Key("training", 0, "workbench", name)) for name in names]
    if any(figure is None for figure in figures):
        return ""
    arithmetic, reducing, assigning, between, alone, driver = (
        f"{figure.median:.0f}" for figure in figures if figure is not None
    )
    noisy = "~" if any(figure is not None and figure.noisy for figure in figures) else ""
    return "\n".join(
        (
            "",
            f"Where the time of a training step goes on a replica: {noisy}{arithmetic} µs of arithmetic, {reducing} in",
            f"all_reduce ({alone} in the median: the rest is waiting for the other replica), {assigning} to assign",
            f"four variables, {between} between two steps. The driver's thread takes {driver} µs a step from one of",
            "the two cores, and the other replica waits for the one that it pushed aside. NumPy alone has both.",
            "",
        )
    )


def replaced(text: str, new: str) -> str:
    """`text` with `new` between the markers."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + new + END + rest.split(END)[1]


def between(text: str) -> str:
    """What `text` has between the markers."""
    return text.split(BEGIN)[1].split(END)[0]


def _head(parts: Sequence[Mapping[str, Any]]) -> str:
    return "\n\n".join(
        (
            *(_measured(data) for data in parts),
            f"A `~` says that other processes used more than {QUIET_CORES} cores meanwhile: such cells decide\n"
            "nothing. `python -m tests.benchmarks` measures again, and `python -m tests.benchmarks.readme` writes\n"
            "this table. CONTRIBUTING.md says how to get the peers.",
        )
    )


def _measured(data: Mapping[str, Any]) -> str:
    """Which suites a results file has, on which machine and when they ran, for how long, and how undisturbed."""
    machine = Machine(**data["machine"])
    suites = ", ".join(dict.fromkeys(row["suite"] for row in data["rows"]))
    foreign = [row["foreign_cores"] for row in data["rows"] if "foreign_cores" in row]
    busy = sum(cores > QUIET_CORES for cores in foreign)
    rounds = "one round" if data["rounds"] == 1 else f"{data['rounds']} rounds in turn"
    time = "the usual time" if data["scale"] == 1 else f"{data['scale']:g} of the usual time"
    return "\n".join(
        (
            f"**{suites}**:",
            f"{machine.cpu}, {machine.cores} cores, {machine.memory_gib} GiB, {machine.kernel}, Python "
            f"{machine.versions['ours']['python']}, {machine.date}; the load average before was {machine.load:.1f}.",
            f"Medians of {rounds} with the peers, each case for {time}; other",
            f"processes were busy in {busy} of {len(foreign)} cases.",
        )
    )


def _row(key: Key, bars: Sequence[Bar], found: Mapping[Key, Figure]) -> str:
    what = f"{key.suite}: {key.what}"
    if key.replicas > 2:
        what += f", {key.replicas} replicas"
    if key.who != "workbench":
        what += f" ({key.who.removeprefix('workbench, ')})"
    ours = found.get(key)
    cells = [what, "not measured" if ours is None else ours.text]
    cells += [
        ", ".join(_peers(key, found)),
        ", ".join(_limit(bar) for bar in bars),
        ", ".join(_met(bars, found)),
    ]
    return "| " + " | ".join(cells) + " |"


def _peers(key: Key, found: Mapping[Key, Figure]) -> Iterator[str]:
    for other, figure in found.items():
        if other._replace(who=key.who) == key and not other.who.startswith("workbench"):
            yield f"{other.who} {figure.text}"


def _limit(bar: Bar) -> str:
    return (
        f"{bar.sign} {bar.limit:g} {bar.unit}" if bar.peer is None else f"≥ {bar.limit:.2g} × {bar.peer.who}"
    )


def _met(bars: Sequence[Bar], found: Mapping[Key, Figure]) -> Iterator[str]:
    for bar in bars:
        value = bar.value(found)
        if value is None:
            yield "not measured"
            continue
        cases = [found[key] for key in (bar.ours, bar.peer) if key is not None]
        answer = ("~" if any(case.noisy for case in cases) else "") + ("yes" if bar.met(value) else "**no**")
        yield answer if bar.peer is None else f"{answer} ({value:.2g} ×)"


def main() -> int:
    """Writes the sections into their pages."""
    argparse.ArgumentParser(
        prog="python -m tests.benchmarks.readme",
        description="Writes the newest results into the guide: its page of benchmarks, and its comparison.",
    ).parse_args()
    parts = newest()
    for page, new in ((PAGE, section(parts)), (side_by_side.PAGE, side_by_side.section(parts))):
        page.write_text(replaced(page.read_text(encoding="utf-8"), new), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
