"""What a data service does at the moment: its jobs and workers, as data and as text."""

from __future__ import annotations

import html
from dataclasses import dataclass, fields

from workbench.data.service.address import Address, Tls
from workbench.data.service.channel import Channel

_TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class JobStatus:
    """A job.

    Attributes:
      name: The name that its consumers share, or its id.
      iteration: Which pass under this name.
      processing_mode: Name of the `ShardingPolicy`.
      consumers: How many read it now.
      lanes: How many streams of elements it has; a worker computes one or several.
      lanes_complete: How many of them were read to the end.
      splits_done: Splits of lanes that are complete; 0 if the source is not dealt, as are the next two.
      splits_leased: Splits that were dealt to other lanes.
      splits_left: Splits that were not dealt yet.
      elements: How many elements were acknowledged.
      complete: Whether all were.
    """

    name: str
    iteration: int
    processing_mode: str
    consumers: int
    lanes: int
    lanes_complete: int
    splits_done: int
    splits_leased: int
    splits_left: int
    elements: int
    complete: bool


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """A worker.

    Attributes:
      address: Where consumers reach it, "host:port".
      lanes: How many lanes it computes.
      elements: How many elements it has handed out since it started.
      elements_per_second: How many lately.
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
    """

    address: str
    datasets: int
    jobs: tuple[JobStatus, ...]
    workers: tuple[WorkerStatus, ...]

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
    """What the data service at `service`, such as `dispatcher.target`, does at the moment.

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
    jobs = tuple(JobStatus(**job) for job in reply["jobs"])
    workers = tuple(WorkerStatus(**worker) for worker in reply["workers"])
    return ServiceStatus(str(address), reply["datasets"], jobs, workers)


def _title(found: ServiceStatus) -> str:
    running = sum(not job.complete for job in found.jobs)
    return (
        f"data service at {found.address}: {len(found.workers)} workers, {found.datasets} datasets, "
        f"{running} of {len(found.jobs)} jobs under way"
    )


def _job_rows(found: ServiceStatus) -> list[list[str]]:
    names = [field.name for field in fields(JobStatus)]
    return [["job", *(name.replace("_", " ") for name in names[1:])]] + [
        [_cell(getattr(job, name)) for name in names] for job in found.jobs
    ]


def _worker_rows(found: ServiceStatus) -> list[list[str]]:
    names = [field.name for field in fields(WorkerStatus)]
    return [["worker", "lanes", "elements", "elements/s"]] + [
        [_cell(getattr(worker, name)) for name in names] for worker in found.workers
    ]


def _cell(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case float() | int():
            return f"{value:,.0f}"
    return str(value)
