"""The words and figures of verdicts."""

from __future__ import annotations

from typing import Final

from workbench.telemetry.formatting import printable, shorten, significant, time_unit
from workbench.telemetry.verdicts.verdict import MOST_CHARACTERS, Verdict

_EVIDENCE: Final = 240  # characters: one line of a wide pane


def duration(seconds: int) -> str:
    """A duration in words.

    >>> [duration(n) for n in (7, 125, 7300)]
    ['7 s', '2 min', '2 h']
    """
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"


def time_text(time_us: float) -> str:
    """A time with its unit.

    >>> time_text(5400.0)
    '5.40 ms'
    """
    unit, per_us = time_unit([time_us])
    return f"{significant(time_us / per_us)} {unit}"


def count_text(count: int, what: str) -> str:
    """A number of things.

    >>> count_text(1, "step"), count_text(1200, "step")
    ('1 step', '1,200 steps')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def without_label(message: str) -> str:
    """The message of an event without the leading name of the strategy.

    >>> without_label("MirroredStrategy: worker 3 was killed")
    'worker 3 was killed'
    """
    return message.partition(": ")[2] or message


def verdict_text(verdict: Verdict) -> str:
    """Sentence and evidence in one line."""
    return f"{verdict.sentence}: {verdict.evidence}" if verdict.evidence else verdict.sentence


def capital(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]


def sentence(*choices: str) -> str:
    """The first wording that is short enough, or the last one, truncated; control characters are escaped."""
    wordings = [printable(capital(choice)) for choice in choices]
    fitting = (wording for wording in wordings if len(wording) <= MOST_CHARACTERS)
    return next(fitting, shorten(wordings[-1], MOST_CHARACTERS))


def evidence(*parts: str) -> str:
    """The non-empty parts in one line, without those that do not fit."""
    line = ""
    for part in map(printable, filter(None, parts)):
        longer = f"{line}; {part}" if line else shorten(part, _EVIDENCE)
        if len(longer) <= _EVIDENCE:
            line = longer
    return line
