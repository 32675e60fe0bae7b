"""What input pipelines cost as the source of a view: live where replicas read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from workbench.ui.widgets.sources import Fixed, Polled, Source

if TYPE_CHECKING:
    from workbench.data.explanation import InputExplanation

_INTERVAL_SECONDS: Final = 0.25


def input_source(explanation: InputExplanation) -> Source:
    """The source of a view of what was explained."""
    if explanation.ended:
        return Fixed("input", explanation.now())
    return Polled(
        "input", explanation.now, interval_seconds=_INTERVAL_SECONDS, ended=lambda: explanation.ended
    )
