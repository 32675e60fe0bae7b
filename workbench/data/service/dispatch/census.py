"""A dispatcher's report about itself: jobs, workers, and their rates."""

from __future__ import annotations

import time

from workbench.data.service.dispatch.audience import Audience
from workbench.data.service.dispatch.placement import Placement
from workbench.data.service.dispatch.state import Job, State
from workbench.data.service.policy import ShardingPolicy
from workbench.data.service.wire import Fields

_RATE_SECONDS = 2.0


class Census:
    """Counts jobs and workers. The dispatcher's lock guards it."""

    def __init__(self, state: State, placement: Placement, audience: Audience) -> None:
        """Starts without rates."""
        self._state = state
        self._placement = placement
        self._audience = audience
        self._counted: dict[
            str, tuple[float, int, float]
        ] = {}  # by job: time, number of elements, elements per second

    def count(self) -> None:
        """Records the progress of jobs, for rates; to be called about twice a second."""
        now = time.monotonic()
        self._counted = {job: self._next(job, known, now) for job, known in self._state.jobs.items()}

    def _next(self, job: str, known: Job, now: float) -> tuple[float, int, float]:
        since, before, rate = self._counted.get(job, (now, _elements(known), 0.0))
        passed = now - since
        if passed < _RATE_SECONDS:
            return since, before, rate
        return now, _elements(known), (_elements(known) - before) / passed

    def fields(self) -> Fields:
        """Everything, in the form for `ServiceStatus.of`."""
        lanes = [lane for job in self._state.jobs.values() for lane in job.lanes if not lane.complete]
        workers = [
            {
                "address": worker.address,
                "lanes": sum(lane.worker == name for lane in lanes),
                "elements": worker.elements,
                "elements_per_second": worker.rate,
            }
            for name, worker in self._placement.workers.items()
        ]
        jobs = [self._job(job) for job in self._state.jobs.values()]
        return {"jobs": jobs, "workers": workers, "datasets": len(self._state.datasets)}

    def _job(self, job: Job) -> Fields:
        splits = self._state.datasets[job.dataset].splits
        dynamic = job.mode == ShardingPolicy.DYNAMIC.value and splits is not None
        dealt = [sum(map(len, lane.deals.values())) for lane in job.lanes]
        done = sum(count for lane, count in zip(job.lanes, dealt, strict=True) if lane.complete)
        left = (
            sum(max(0, n - job.dealt.get(f"{k}/0", 0)) for k, n in enumerate(splits or ())) if dynamic else 0
        )
        return {
            "name": job.name or job.id,
            "iteration": job.iteration,
            "processing_mode": ShardingPolicy(job.mode).name,
            "consumers": self._audience.count(job.id),
            "num_consumers": job.num_consumers,
            "missing": self._audience.missing(job),
            "cached": job.cached,
            "lanes": len(job.lanes),
            "lanes_complete": sum(lane.complete for lane in job.lanes),
            "moves": sum(max(0, lane.moves) for lane in job.lanes),
            "splits_done": done,
            "splits_leased": sum(dealt) - done,
            "splits_left": left,
            "elements": _elements(job),
            "elements_per_second": self._counted.get(job.id, (0.0, 0, 0.0))[2],
            "complete": job.complete,
        }


def _elements(job: Job) -> int:
    return sum(len(lane.acked) for lane in job.lanes)
