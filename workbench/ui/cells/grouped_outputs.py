"""Groups the outputs of many replicas for reading: by replica, by stream, or as differences to the first."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Literal

from workbench.telemetry.formatting import replicas_text
from workbench.ui.cells.replica_session import Outcome

Grouping = Literal["replica", "stream", "diff"]
_STREAMS = ("stdout", "stderr", "result", "error")
_NOT_RUN = "did not run: its step was stopped before, or its worker was lost"


def grouped(outcomes: Sequence[Outcome], group: Grouping) -> list[tuple[str, str]]:
    """Titles, and the text under each.

    Args:
      outcomes: In replica order, at least one.
      group: "replica" has a part per replica; "stream" has one each for stdout, stderr, results and errors, in which
        replicas with equal output are listed together; "diff" has the first replica's output, and how others differ
        from it.
    """
    match group:
        case "replica":
            return [(f"replica {outcome.replica}", _whole(outcome)) for outcome in outcomes]
        case "stream":
            return _by_stream(outcomes)
        case "diff":
            return _as_differences(outcomes)


def _whole(outcome: Outcome) -> str:
    if not outcome.ran:
        return _NOT_RUN
    parts = (outcome.stdout, outcome.stderr, outcome.result, outcome.traceback)
    return "\n".join(part.rstrip("\n") for part in parts if part)


def _by_stream(outcomes: Sequence[Outcome]) -> list[tuple[str, str]]:
    parts = []
    for stream in _STREAMS:
        same: dict[str, list[int]] = {}
        for outcome in outcomes:
            text = _stream(outcome, stream)
            if text:
                same.setdefault(text, []).append(outcome.replica)
        parts += [(f"{stream} of {_all(replicas)}", text) for text, replicas in same.items()]
    return parts or [(f"{_all([outcome.replica for outcome in outcomes])}: no output", "")]


def _all(replicas: Sequence[int]) -> str:
    """Names every output by number, because the title says which replica printed what."""
    return replicas_text(replicas, most=len(replicas))


def _stream(outcome: Outcome, stream: str) -> str:
    if not outcome.ran:
        return _NOT_RUN if stream == "error" else ""
    text: str = outcome.traceback if stream == "error" else getattr(outcome, stream)
    return text.rstrip("\n")


def _as_differences(outcomes: Sequence[Outcome]) -> list[tuple[str, str]]:
    first, *others = outcomes
    before = _whole(first)
    parts = [(f"replica {first.replica}", before)]
    same = [outcome.replica for outcome in others if _whole(outcome) == before]
    if same:
        parts.append((f"{_all(same)}: the same", ""))
    for outcome in others:
        text = _whole(outcome)
        if text != before:
            lines = difflib.unified_diff(before.splitlines(), text.splitlines(), lineterm="", n=1)
            changes = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
            parts.append((f"replica {outcome.replica}, compared with {first.replica}", "\n".join(changes)))
    return parts
