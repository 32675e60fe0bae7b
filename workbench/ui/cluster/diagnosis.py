"""`wb.diagnose`: what every replica does right now, even while a step hangs."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from workbench.distribute.servers.watching import watched_on
from workbench.distribute.strategies.strategy import Strategy
from workbench.errors import WorkbenchError
from workbench.runtime import Cluster
from workbench.runtime.comm.messages import DUMP, ReplicaStatus
from workbench.runtime.driver.gang.silence import is_silent, silence_text, whereabouts
from workbench.runtime.driver.membership import missing_seats
from workbench.runtime.process.process_state import process_state
from workbench.runtime.user_code.notebook_cells import with_cell_names, with_cells
from workbench.telemetry.formatting import SIGNS
from workbench.telemetry.verdicts import Verdict, verdicts
from workbench.ui.cluster.asked_cluster import cluster_of
from workbench.ui.cluster.cluster_model import tell_memory
from workbench.ui.cluster.flight_dump import write_dump
from workbench.ui.cluster.reports import GroupReport, ReplicaReport, ServersReport, WorkerReport
from workbench.ui.cluster.verdict import verdict
from workbench.ui.render import html

if TYPE_CHECKING:
    from workbench.runtime.deploy.worker_link import WorkerLink
    from workbench.runtime.driver.group import Group

DEADLINE_SECONDS: Final = 2.0


class Diagnosis:
    """What `wb.diagnose` found. Prints as a verdict of at most five lines; a notebook shows all findings.

    Attributes:
      run: Name of the run.
      status: The status of the cluster.
      workers: All workers.
      groups: One per strategy.
      said: Statements about the collectives, the most important first; see `telemetry.verdicts`.
      servers: Parameter servers, one report per strategy: what they hold, their journals, and the functions of the
        coordinator.
      verdict: The lines: the first of these statements, then the answers of workers.
    """

    def __init__(
        self,
        *,
        run: str,
        status: str,
        workers: Sequence[WorkerReport],
        groups: Sequence[GroupReport],
        said: Sequence[Verdict],
        servers: Sequence[ServersReport] = (),
    ) -> None:
        self.run = run
        self.status = status
        self.workers = tuple(workers)
        self.groups = tuple(groups)
        self.said = tuple(said)
        self.servers = tuple(servers)
        self.verdict = verdict(self)

    @property
    def details(self) -> dict[str, Any]:
        """Everything, as JSON-able values: stacks, the last 2,000 collectives of each replica, heartbeats, servers."""
        return {
            "run": self.run,
            "status": self.status,
            "verdict": list(self.verdict),
            "said": [each._asdict() for each in self.said],
            "workers": [asdict(worker) for worker in self.workers],
            "groups": [asdict(group) for group in self.groups],
            "servers": [asdict(servers) for servers in self.servers],
        }

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes `details` to a new JSON file that only you can read; see `flight_dump.write_dump`.

        Raises:
          FileExistsError: if there is anything at `path`, even a link.
          StorageFull: if there is no space.
        """
        return write_dump(self.details, path)

    def __repr__(self) -> str:
        return f"{SIGNS[self.said[0].severity]} " + "\n".join(self.verdict)

    def _repr_html_(self) -> str:
        _, general, *rest = self.verdict
        said = [html.verdict(each.severity, each.sentence, each.evidence) for each in self.said]
        lines = map(html.alert, rest)
        stacks = "\n".join(
            f"worker {worker.name}\n{worker.stacks}" for worker in self.workers if worker.stacks
        )
        folded = (
            f"<details><summary>Python stacks</summary>{html.preformatted(stacks)}</details>"
            if stacks
            else ""
        )
        return html.card("Diagnosis", [general], word=self.status, parts=[*said, *lines, folded])


def diagnose(cluster: Strategy | Cluster | None = None) -> Diagnosis:
    """Reports in at most five lines which replicas are stuck, late or lost, and how parameter servers are.

    `details` of the result has stacks and the last collectives. Works while a step hangs in another thread: it queries
    workers on their urgent links and waits two seconds for answers, and up to two more if Dask's scheduler, which knows
    their memory, does not answer.

    Args:
      cluster: A cluster, or a strategy: its cluster; by default the current one.

    Raises:
      FailedPreconditionError: if there is no cluster yet.
      TypeError: if `cluster` is something else.

    >>> shown = wb.diagnose()  # prints itself as the last line of a cell
    """
    asked = cluster_of(cluster, "wb.diagnose({})")
    workers = list(asked.gang.workers.values())
    answers = _ask(asked, workers)
    if not asked.closed and all(worker.lost or worker.name in answers for worker in workers):
        asked.flush_telemetry(DEADLINE_SECONDS)  # a silent worker answers nothing more
    if not asked.closed:
        tell_memory(asked)
    return Diagnosis(
        run=asked.name,
        status=asked.status,
        workers=[_worker_report(worker, answers.get(worker.name)) for worker in workers],
        groups=[_group_report(group, answers) for group in list(asked.gang.groups.values())],
        said=verdicts(asked.feed.snapshot()),
        servers=[ServersReport(each.now(), each.journals()) for each in watched_on(asked)],
    )


def _ask(cluster: Cluster, workers: Sequence[WorkerLink]) -> dict[str, dict[str, Any]]:
    """The reports of workers, by name; leaves out workers that do not answer in time."""
    if cluster.closed:
        return {}
    questions = [cluster.gang.urgent.ask(worker, DUMP) for worker in workers if not worker.lost]
    end = time.monotonic() + DEADLINE_SECONDS
    answers = {}
    for question in questions:
        try:
            answers[question.worker.name] = question.answer(max(0.0, end - time.monotonic()))
        except WorkbenchError:
            continue  # the report says that the worker did not answer
    return answers


def _worker_report(worker: WorkerLink, answer: dict[str, Any] | None) -> WorkerReport:
    return WorkerReport(
        name=worker.name,
        address=worker.address,
        host=worker.host,
        pid=worker.pid,
        lost=str(worker.lost or ""),
        answered=answer is not None,
        process_state=process_state(worker.pid) if worker.local else "",
        heartbeat_age_seconds=round(time.monotonic() - worker.last_beat, 3),
        stacks="" if answer is None else with_cells(answer["stacks"]),
        reached=worker.reached,
        beside=() if worker.lost else tuple(status._asdict() for status in worker.beside),
    )


def _group_report(group: Group, answers: dict[str, dict[str, Any]]) -> GroupReport:
    return GroupReport(
        label=group.label,
        status=group.status,
        generation=group.generation,
        step=group.number - 1,
        committed_step=group.committed_step,
        in_flight=group.in_flight,
        replicas=tuple(_replica_report(group, rank, answers) for rank in range(group.size)),
        missing=tuple(missing_seats(group)),
        failed=_failed(group),
    )


def _failed(group: Group) -> str:
    cluster = group.gang.cluster
    events = () if cluster is None else cluster.feed.snapshot().events
    told = [
        event.message.removeprefix(f"{group.label}: ")
        for event in events
        if event.name == "step_failed" and event.group == group.name and event.step > group.committed_step
    ]
    return told[-1] if told else ""


def _replica_report(group: Group, rank: int, answers: dict[str, dict[str, Any]]) -> ReplicaReport:
    worker, _ = group.place(rank)
    answer = answers.get(worker.name, {})
    key = group.id, rank
    rows = answer.get("statuses", worker.statuses)
    unknown = ReplicaStatus(*key, False, -1, -1, "", "running", "")
    row = next((row for row in rows if (row.group, row.rank) == key), unknown)
    if worker.lost:  # its last report is outdated
        row = unknown._replace(step=row.step, seq=row.seq)
    flight = tuple(
        entry._asdict() | {"site": with_cell_names(entry.site)}
        for entry in answer.get("flight", {}).get(key, ())
    )
    place = answer.get("places", {}).get(key, "")
    if not answer and group.in_flight and is_silent(worker):
        place = silence_text(worker, worker.standing or whereabouts(worker))
    _, _, busy, step, seq, op, phase, site = row
    site, place = with_cell_names(site), with_cell_names(place)
    return ReplicaReport(rank, worker.name, busy, step, seq, op, phase, site, place, flight)
