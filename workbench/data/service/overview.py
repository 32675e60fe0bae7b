"""The present state of a data service: its jobs and workers, as data and as text."""

from __future__ import annotations

import html
from dataclasses import dataclass, fields

from workbench.data.service.address import Address, Tls
from workbench.data.service.channel import Channel
from workbench.data.service.wire import Fields

_TIMEOUT_SECONDS = 10.0
_MOST_ROWS = 32


@dataclass(frozen=True, slots=True)
class JobStatus:
    """A job.

    Attributes:
      name: The name that its consumers share, or its id.
      iteration: The number of the pass under this name.
      processing_mode: Name of the `ShardingPolicy`.
      consumers: How many consumers read it now.
      num_consumers: How many consumers read it in rounds; 0 if they take what is ready.
      missing: The indices of the consumers that the rounds wait for.
      cached: Whether trainers share its elements.
      lanes: How many streams of elements it has; a worker computes one or several.
      lanes_complete: How many of them were read to the end.
      moves: How often a lane was moved because its worker was lost.
      splits_done: Splits of complete lanes; 0 if the source is not split, like the next two.
      splits_leased: Splits that were assigned to other lanes.
      splits_left: Splits that were not assigned yet.
      elements: How many elements were acknowledged; 0 if trainers share them, because they acknowledge none.
      elements_per_second: The recent rate.
      complete: Whether all elements were acknowledged.
    """

    name: str
    iteration: int
    processing_mode: str
    consumers: int
    num_consumers: int
    missing: tuple[int, ...]
    cached: bool
    lanes: int
    lanes_complete: int
    moves: int
    splits_done: int
    splits_leased: int
    splits_left: int
    elements: int
    elements_per_second: float
    complete: bool


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """A worker.

    Attributes:
      address: Its address for consumers, "host:port".
      lanes: How many lanes it computes.
      elements: How many elements it has delivered since it started.
      elements_per_second: The recent rate.
    """

    address: str
    lanes: int
    elements: int
    elements_per_second: float


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """A data service at one moment. `str` and the notebook show it as tables.

    Attributes:
      address: The dispatcher, without its token.
      datasets: How many datasets are registered.
      jobs: The jobs, oldest first.
      workers: The workers, oldest first.
      status: "live", "stopped", or "measured" for a single reading.
      sentence: What it does, or what prevents it.
      advice: The remedy if something is missing, otherwise "".
    """

    address: str
    datasets: int
    jobs: tuple[JobStatus, ...]
    workers: tuple[WorkerStatus, ...]
    status: str
    sentence: str
    advice: str

    @classmethod
    def of(cls, address: str, fields: Fields, status: str) -> ServiceStatus:
        """The status in a dispatcher's reply.

        Args:
          address: Address of the dispatcher, without its token.
          fields: Its reply.
          status: See the attribute.
        """
        jobs = tuple(JobStatus(**{**job, "missing": tuple(job["missing"])}) for job in fields["jobs"])
        workers = tuple(WorkerStatus(**worker) for worker in fields["workers"])
        return cls(address, fields["datasets"], jobs, workers, status, *_verdict(jobs, workers, status))

    def __str__(self) -> str:
        lines = [_title(self)]
        for rows in (_job_rows(self), _worker_rows(self)):
            if len(rows) > 1:
                widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
                lines += [
                    "",
                    *(
                        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
                        for row in rows
                    ),
                ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        tables = []
        for rows in (_job_rows(self), _worker_rows(self)):
            if len(rows) > 1:
                head = "".join(f"<th>{html.escape(cell)}</th>" for cell in rows[0])
                body = "".join(
                    "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
                    for row in rows[1:]
                )
                tables.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
        return f"<div><p>{html.escape(_title(self))}</p>{''.join(tables)}</div>"


def status(service: str, *, tls: Tls | None = None) -> ServiceStatus:
    """What the data service at `service`, such as `dispatcher.target`, is doing.

    Raises:
      InvalidArgumentError: for a malformed address.
      UnavailableError: if the dispatcher does not answer.
    """
    address = Address.of_target(service)
    channel = Channel(address, tls, "dispatcher", _TIMEOUT_SECONDS)
    try:
        reply, _ = channel.call("status", {})
    finally:
        channel.close()
    return ServiceStatus.of(str(address), reply, "measured")


def _verdict(jobs: tuple[JobStatus, ...], workers: tuple[WorkerStatus, ...], status: str) -> tuple[str, str]:
    """The verdict on a service, and the remedy."""
    running = [job for job in jobs if not job.complete]
    if status == "stopped":
        return (
            f"This data service has ended; {len(jobs) - len(running)} of its {_jobs(len(jobs))} were complete.",
            "",
        )
    if not workers:
        wait = f": {_jobs(len(running))} cannot continue" if running else ""
        return f"There is no worker{wait}.", "start one: workbench data-worker ADDRESS, or a WorkerServer"
    for job in running:
        if job.missing and job.consumers:
            indices = ", ".join(map(str, job.missing))
            noun = "consumer" if len(job.missing) == 1 else "consumers"
            return (
                f"Job {job.name!r} waits for {noun} {indices} of {job.num_consumers}.",
                "its consumers read in rounds, so all of them must be there; one that is started again "
                "continues in its round",
            )
    if running:
        rate = sum(job.elements_per_second for job in running)
        return f"{_jobs(len(running))} under way, {rate:,.0f} elements/s.", ""
    if jobs:
        return f"Complete: {_jobs(len(jobs))}.", ""
    return "Ready; no job has begun.", ""


def _jobs(count: int) -> str:
    return f"{count} job{'' if count == 1 else 's'}"


def _title(found: ServiceStatus) -> str:
    advice = f" {found.advice[0].upper()}{found.advice[1:]}." if found.advice else ""
    return (
        f"data service at {found.address}: {len(found.workers)} workers, {found.datasets} datasets. "
        f"{found.sentence}{advice}"
    )


def _job_rows(found: ServiceStatus) -> list[list[str]]:
    names = [field.name for field in fields(JobStatus)]
    return [["job", *(name.replace("_", " ") for name in names[1:])]] + [
        [_cell(getattr(job, name)) for name in names] for job in found.jobs
    ]


def _worker_rows(found: ServiceStatus) -> list[list[str]]:
    """A row for each worker; of more than fit, for the slowest."""
    names = [field.name for field in fields(WorkerStatus)]
    hidden = len(found.workers) - _MOST_ROWS
    shown = sorted(found.workers, key=lambda worker: worker.elements_per_second if hidden > 0 else 0)
    return [
        ["worker", "lanes", "elements", "elements/s"],
        *([_cell(getattr(worker, name)) for name in names] for worker in shown[:_MOST_ROWS]),
        *([[f"{hidden} more", "", "", ""]] if hidden > 0 else []),
    ]


def _cell(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case tuple():
            return ", ".join(map(str, value))
        case float() | int():
            return f"{value:,.0f}"
    return str(value)
