"""What makes a run slow."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.telemetry.snapshot import GroupView
from workbench.telemetry.verdicts.verdict import Verdict
from workbench.telemetry.verdicts.words import evidence, percent, sentence, time_text


def late(group: GroupView) -> Iterator[Verdict]:
    """Replicas that are late step after step, those that cost most first."""
    for each in group.lateness.late:
        often = f"late in {each.steps} of {each.of_steps} steps, {percent(each.share)} of each step"
        waited = group.pace.waited_share
        yield Verdict(
            "warning",
            "late",
            sentence(f"replica {each.replica} makes everyone wait: {often}"),
            evidence(
                f"it computes {time_text(each.compute_us)} per step, the others {time_text(each.others_us)}",
                f"it comes {time_text(each.by_us)} late",
                "" if waited is None else f"the others wait {percent(waited)} of their time",
            ),
            "lateness",
            each.replica,
        )
