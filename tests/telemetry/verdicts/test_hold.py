"""The verdict that is shown stays for 3 seconds; errors come at once."""

from __future__ import annotations

from workbench.telemetry.verdicts import Hold, Verdict
from workbench.telemetry.verdicts.hold import HOLD_NS

GOOD = Verdict("good", "good", "All is well", "", "lanes")
LATE = Verdict("warning", "late", "Replica 1 is late", "", "lateness", 1)
STUCK = Verdict("error", "stuck", "Stuck", "", "lanes")


def test_a_verdict_stays_for_three_seconds() -> None:
    hold = Hold()

    assert hold.shown([GOOD], 0) == GOOD
    assert hold.shown([LATE], HOLD_NS - 1) == GOOD
    assert hold.shown([LATE], HOLD_NS) == LATE
    assert hold.shown([GOOD], HOLD_NS + 1) == LATE


def test_an_error_is_shown_at_once() -> None:
    hold = Hold()
    hold.shown([GOOD], 0)

    assert hold.shown([STUCK, LATE], 1) == STUCK


def test_figures_change_at_once() -> None:
    hold = Hold()
    hold.shown([LATE], 0)
    newer = LATE._replace(sentence="Replica 1 is late, and more so")

    assert hold.shown([newer], 1) == newer
    assert hold.shown([STUCK._replace(severity="warning"), LATE], 2) == LATE
