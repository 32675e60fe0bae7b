"""The recent activity of pipelines: the profiles that their readers have reported, for the last seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from workbench.data.cost.profile import PipelineProfile

RECENT_SECONDS: Final = 5.0
""""Recent" rates cover at least this many seconds."""


@dataclass(frozen=True, slots=True)
class ReaderHistory:
    """The reports of one process about the pipelines that it reads.

    Attributes:
      history: Profiles by pipeline, oldest first; reaching back `RECENT_SECONDS`, or as far as they go.
      at: When it last reported, as `time.monotonic`.
    """

    history: tuple[tuple[PipelineProfile, ...], ...] = ()
    at: float = 0.0

    def and_now(self, profiles: tuple[PipelineProfile, ...], at: float) -> ReaderHistory:
        """A copy with a new report."""
        history = (*self.history, profiles)
        now = _elapsed(profiles)
        if self.history and _elapsed(self.history[-1]) > now:  # another process has read since then
            history = (profiles,)
        while len(history) > 2 and now - _elapsed(history[1]) >= RECENT_SECONDS:
            history = history[1:]
        return ReaderHistory(history, at)

    @property
    def newest(self) -> tuple[PipelineProfile, ...]:
        """The last report."""
        return self.history[-1]

    def recent(self, now: float) -> tuple[PipelineProfile, ...] | None:
        """What was added in the last seconds; None while that is everything, or if the last report is too old."""
        oldest, newest = self.history[0], self.history[-1]
        seconds = _elapsed(newest) - _elapsed(oldest)
        if seconds < RECENT_SECONDS or now - self.at > 2 * seconds:
            return None
        return tuple(new.since(old) for new, old in zip(newest, oldest, strict=True))


def _elapsed(profiles: tuple[PipelineProfile, ...]) -> float:
    return max((profile.elapsed_seconds for profile in profiles), default=0.0)
