"""`workbench demo` trains over real worker processes and prints what happened."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from workbench.cli import main

PAGE = Path(__file__).parents[2] / "notebooks" / "guide" / "tutorials" / "first_minute.md"
"""The page of the guide that shows what the demo prints."""


def test_the_demo_learns_and_shows_values_and_timings(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--replicas", "2"]) == 0

    report = capfd.readouterr().out
    scores = [float(number) for number in re.findall(r"test accuracy ([\d.]+)%", report)]
    assert len(scores) == 15
    assert scores[-1] > 95
    assert "over 2 replicas" in report
    assert "in sync" in report
    assert "all_reduce" in report
    sample = PAGE.read_text(encoding="utf-8").partition("## What the demo prints")[2].split("```")[1]
    assert headings(sample) == headings(report)


def headings(text: str) -> list[set[str]]:
    """Those of each table; without two that stand there only where the figures leave room."""
    rows = re.findall(r"^ *(?:replica|op) .*$", text, re.M)
    return [set(row.split()) - {"L2", "host:device"} for row in rows]


def test_a_missing_scikit_learn_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    assert main(["demo"]) == 1
    assert "pip install scikit-learn" in capsys.readouterr().err
