"""Verdicts as text: whole, in lines of 88 columns."""

from __future__ import annotations

from workbench.ui.render.verdict_lines import verdict_lines


def test_a_verdict_without_evidence_is_one_line() -> None:
    assert verdict_lines("warning", "Replica 1 makes everyone wait", "") == [
        "▲ Replica 1 makes everyone wait"
    ]


def test_long_ones_go_on_in_lines_that_are_indented_and_nothing_is_lost() -> None:
    sentence, evidence = "word " * 40, "figure " * 40

    lines = verdict_lines("error", sentence, evidence)

    assert max(map(len, lines)) <= 88
    assert " ".join(lines).split() == ["✖", *sentence.split(), *evidence.split()]
    assert [line[:2] for line in lines[1:]] == ["  "] * (len(lines) - 1)


def test_what_acts_on_a_terminal_is_escaped() -> None:
    assert verdict_lines("good", "a\x1b[31mb", "c\rd") == ["✔ a\\x1b[31mb", "  c\\rd"]
