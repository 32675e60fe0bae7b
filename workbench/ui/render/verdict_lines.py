"""Statements about a run, as text; `html.verdict` is the HTML version."""

from __future__ import annotations

import textwrap

from workbench.telemetry.formatting import SIGNS, printable
from workbench.ui.render.text_table import WIDTH


def verdict_lines(severity: str, sentence: str, evidence: str) -> list[str]:
    """A sentence with its sign, and the indented evidence below; long ones are wrapped.

    >>> verdict_lines("good", "All is well", "64 steps")
    ['✔ All is well', '  64 steps']
    """
    said = textwrap.wrap(printable(f"{SIGNS[severity]} {sentence}"), WIDTH, subsequent_indent="  ")
    return said + textwrap.wrap(printable(evidence), WIDTH, initial_indent="  ", subsequent_indent="    ")
