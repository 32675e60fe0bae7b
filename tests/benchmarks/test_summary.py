"""What becomes of the rounds' rows: which of them count, and how ratios are made."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from tests.benchmarks.bars import Bar
from tests.benchmarks.environments import Environment
from tests.benchmarks.machine import Machine
from tests.benchmarks.report import markdown
from tests.benchmarks.suites import SUITES
from tests.benchmarks.summary import Key, figures, times_as_fast

OURS, PEER = Key("dispatch", 2, "workbench", "noop"), Key("dispatch", 2, "Dask", "noop")
MACHINE = Machine("2026-01-31", "Some CPU @ 2.0 GHz", 2, 8, "Linux 6", 0.1, {"ours": {"numpy": "2"}})


def row(key: Key, number: int, median: float, *, foreign: float = 0.0, unit: str = "µs") -> dict[str, Any]:
    return key._asdict() | {
        "round": number,
        "median": median,
        "p95": median * 2,
        "max": median * 3,
        "unit": unit,
        "foreign_cores": foreign,
    }


def test_a_figure_is_the_median_of_its_rounds_with_their_spread() -> None:
    figure = figures([row(OURS, n, value) for n, value in enumerate([30, 10, 20])])[OURS]

    assert (figure.median, figure.spread, figure.p95, figure.highest) == (20, (10, 30), 40, 90)


def test_rounds_with_foreign_load_are_left_out_where_three_quiet_ones_remain() -> None:
    rows = [row(OURS, n, 10) for n in range(3)] + [row(OURS, 3, 99, foreign=1.5)]
    figure = figures(rows)[OURS]

    assert (figure.median, figure.left_out, figure.noisy) == (10, 1, False)


def test_too_few_quiet_rounds_are_marked_as_noisy() -> None:
    figure = figures([row(OURS, 0, 10), row(OURS, 1, 30, foreign=1.5)])[OURS]

    assert (figure.median, figure.left_out, figure.noisy) == (20, 0, True)


@pytest.mark.parametrize(
    ("median", "unit", "text"),
    [
        (12345.6, "µs", "12,346 µs"),
        (0.00041, "s", "0.00041 s"),
        (3.72, "% of a core", "3.7 % of a core"),
        (-0.00016, "% of a core", "0 % of a core"),
        (-0.35, "%", "-0.35 %"),
    ],
)
def test_a_figure_has_two_digits_and_no_share_below_the_noise(median: float, unit: str, text: str) -> None:
    assert figures([row(OURS, 0, median, unit=unit)])[OURS].text == text


def test_ratios_are_made_within_rounds() -> None:
    found = figures(
        [row(OURS, 0, 10), row(PEER, 0, 100), row(OURS, 1, 20), row(PEER, 1, 200), row(PEER, 2, 9999)]
    )

    assert times_as_fast(found[OURS], found[PEER]) == 10


def test_of_rates_more_is_faster() -> None:
    found = figures([row(OURS, 0, 300, unit="steps/s"), row(PEER, 0, 100, unit="steps/s")])

    assert times_as_fast(found[OURS], found[PEER]) == 3


@pytest.mark.parametrize(("median", "met"), [(10, True), (60, False)])
def test_a_bar_compares_with_a_limit_or_with_a_peer(median: float, met: bool) -> None:
    found = figures([row(OURS, 0, median), row(PEER, 0, 100)])

    for bar in (Bar(OURS, 50), Bar(OURS, 2, PEER)):
        value = bar.value(found)
        assert value is not None
        assert bar.met(value) is met


def test_a_bar_without_its_peer_is_not_measured() -> None:
    assert Bar(OURS, 2, PEER).value(figures([row(OURS, 0, 10)])) is None


def test_the_report_tells_ratios_failures_and_how_to_get_what_is_missing() -> None:
    rows = [row(OURS, 0, 10), row(PEER, 0, 12345)]
    rows += [{"suite": "dispatch", "who": "JAX", "what": "noop", "replicas": 2, "error": "ImportError: no"}]
    rows += [
        {"suite": "dispatch", "who": "TF", "missing": "no interpreter given", "environment": "tensorflow"}
    ]
    text = markdown(rows, MACHINE, rounds=1, scale=1)

    assert "| Dask | 12.3k (1,234×) |" in text
    assert "ImportError: no" in text
    assert "TF: no interpreter given" in text
    assert "pip install tensorflow-cpu" in text


def test_every_job_is_a_script_that_exists() -> None:
    jobs = [job for jobs in SUITES.values() for job in jobs]
    modules = {f"tests.benchmarks.{job.command.split()[0]}" for job in jobs}

    assert {name for name in modules if importlib.util.find_spec(name) is None} == set()


def test_an_environment_tells_what_it_lacks() -> None:
    assert Environment("", {}).lacks(("jax",)) == "no interpreter given"
    assert Environment("python", {"torch": "2"}).lacks(("torch", "jax")) == "not installed: jax"
    assert Environment("python", {"torch": "2"}).lacks(("torch",)) == ""


def test_a_machine_names_its_files() -> None:
    assert MACHINE.slug == "some-cpu-2-0-ghz-2-cores"
