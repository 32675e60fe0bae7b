"""The guide's table of benchmarks is what the committed results say, and says when something was not measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.benchmarks import bars
from tests.benchmarks import input_cases as cases
from tests.benchmarks.bars import BARS
from tests.benchmarks.ours import timeline, training
from tests.benchmarks.readme import PAGE, between, newest, replaced, section
from tests.benchmarks.summary import Key, figures
from tests.benchmarks.test_summary import MACHINE, OURS, row

TF = OURS._replace(who="TF tf.function")
SOCKETS = OURS._replace(who=bars.SOCKETS)


def results(*rows: dict[str, Any]) -> dict[str, Any]:
    machine = {name: getattr(MACHINE, name) for name in MACHINE.__slots__}
    return {
        "machine": machine | {"versions": {"ours": {"python": "3.11.2"}}, "load": 7.5},
        "rounds": 2,
        "scale": 0.2,
        "rows": list(rows),
    }


def section_of(*parts: dict[str, Any]) -> str:
    return section(parts)


def line_of(what: str, text: str) -> list[str]:
    (found,) = [line for line in text.splitlines() if line.startswith(f"| {what} |")]
    return [cell.strip() for cell in found.strip("| ").split("|")]


def test_the_guide_says_what_the_results_say() -> None:
    assert between(PAGE.read_text(encoding="utf-8")) == section(newest()), "python -m tests.benchmarks.readme"


def test_bars_have_the_unit_of_their_figures() -> None:
    found = figures(row for data in newest() for row in data["rows"])

    assert [
        bar.ours
        for bar in BARS
        if bar.peer is None and bar.ours in found and found[bar.ours].unit != bar.unit
    ] == []


def test_whether_a_bar_is_met_is_computed() -> None:
    text = section_of(results(row(OURS, 0, 50), row(TF, 0, 100), row(SOCKETS, 0, 40)))
    assert line_of("dispatch: noop", text) == [
        "dispatch: noop", "50 µs", "TF tf.function 100 µs, bare 40 µs".replace("bare", SOCKETS.who),
        f"≥ 0.62 × {SOCKETS.who}, ≥ 3 × TF tf.function", "yes (0.8 ×), **no** (2 ×)",
    ]  # fmt: skip


def test_what_was_not_measured_is_said() -> None:
    text = section_of(results(row(OURS, 0, 50)))

    assert line_of("dispatch: noop", text)[-1] == "not measured, not measured"
    _, ours, peers, bar, met = line_of("startup: import", text)
    assert (ours, peers, bar, met) == ("not measured", "", "≤ 0.1 s", "not measured")


def test_the_load_is_said() -> None:
    text = section_of(results(row(OURS, 0, 50, foreign=1.5), row(TF, 0, 100)))

    assert "Where the time" not in text
    assert "2026-01-31; the load average before was 7.5" in text
    assert "busy in 1 of 2 cases" in text
    cells = line_of("dispatch: noop", text)
    assert (cells[1], cells[-1]) == ("~50 µs", "not measured, ~**no** (2 ×)")


def test_where_the_time_of_a_step_goes_is_said() -> None:
    names = (*timeline.PHASES, timeline.ON_REPLICA, timeline.CALLS, timeline.CALLS_ON_REPLICA)
    text = section_of(results(*(row(OURS._replace(what=name), 0, 10.4 + n) for n, name in enumerate(names))))

    assert "10 µs before it is sent, 11 to send it to both\nreplicas, 12 until the first" in text
    assert (
        "which has it for 15, 13 until the\nsecond has, 14 after that. The driver calls 16 functions" in text
    )


def test_where_the_time_of_a_training_step_goes_is_said() -> None:
    names = (*training.PARTS, training.ALL_REDUCE_ALONE, training.DRIVER)
    keys = [Key("training", 0, "workbench", name) for name in names]
    text = section_of(results(*(row(key, 0, 10.4 + n) for n, key in enumerate(keys))))

    assert "10 µs of arithmetic, 11 in\nall_reduce (14 in the median" in text
    assert "12 to assign\nfour variables, 13 between two steps. The driver's thread takes 15 µs" in text


def test_each_suite_is_that_of_the_newest_file_that_has_it(tmp_path: Path) -> None:
    lines = Key("input", 0, "workbench", cases.LINES)
    older = results(row(OURS, 0, 50), row(lines, 0, 1000, unit="lines/s"))
    newer = results(row(lines, 0, 2000, unit="lines/s")) | {"finished": "2026-01-31T12:00:00", "scale": 1}
    for name, data in (("a", older), ("b", newer)):
        (tmp_path / f"{name}.json").write_text(json.dumps(data))

    text = section(newest(tmp_path))

    assert line_of(f"input: {cases.LINES}", text)[1] == "2,000 lines/s"
    assert line_of("dispatch: noop", text)[1] == "50 µs"
    assert "**input**:" in text
    assert "**dispatch**:" in text
    assert "each case for the usual time" in text
    assert "each case for 0.2 of the usual time" in text


def test_a_rate_has_a_least_value() -> None:
    ahead = Key("input", 0, "workbench", cases.AHEAD)
    slow, fast = (section_of(results(row(ahead, 0, value, unit="elements/s"))) for value in (419, 421))

    assert line_of(f"input: {cases.AHEAD}", slow)[-2:] == ["≥ 420 elements/s", "**no**"]
    assert line_of(f"input: {cases.AHEAD}", fast)[-1] == "yes"


def test_only_the_section_is_replaced() -> None:
    text = "# A\n<!-- benchmarks: begin -->\nold\n<!-- benchmarks: end -->\n# B\n"
    assert replaced(text, "new\n") == text.replace("old", "new")
    assert between(text) == "old\n"
