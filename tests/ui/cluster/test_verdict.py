"""The five lines of a diagnosis, from made-up reports."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.ui.conftest import Tags
from workbench.telemetry.verdicts import Verdict
from workbench.ui.cluster.diagnosis import Diagnosis
from workbench.ui.cluster.reports import GroupReport, ReplicaReport, WorkerReport

WORKER = WorkerReport(
    name="0",
    address="tcp://127.0.0.1:1",
    host="a",
    pid=8123,
    lost="",
    answered=True,
    process_state="S",
    heartbeat_age_seconds=0.2,
    stacks="",
)
REPLICA = ReplicaReport(
    replica=0, worker="0", busy=False, step=3, seq=1, op="", phase="running", site="", place="", flight=()
)
WAITING = replace(REPLICA, busy=True, seq=2, op="all_reduce", phase="waiting", site="train.py:84")


SAID = Verdict("warning", "late", "Replica 1 makes everyone wait", "it computes 5 ms", "lateness", 1)
FIRST = "Replica 1 makes everyone wait: it computes 5 ms"


def flight(seq: int, op: str, site: str) -> tuple[dict[str, Any], ...]:
    return ({"step": 3, "seq": seq, "op": op, "site": site},)


def diagnosis(*replicas: ReplicaReport, workers: tuple[WorkerReport, ...] = (), **changes: Any) -> Diagnosis:
    said = changes.pop("said", [SAID])
    group = GroupReport("MirroredStrategy", "live", 1, 3, 2, 1, tuple(replicas))
    workers = workers or (WORKER, replace(WORKER, name="1"))
    return Diagnosis(
        run="7f3a", status="live", workers=workers, groups=[replace(group, **changes)], said=said
    )


def test_a_sign_comes_first_and_in_a_notebook_a_click_shows_the_evidence() -> None:
    worse = Verdict("error", "nan", "NaN <b>since</b> step 3", "", "values")
    lost = replace(WORKER, lost="was killed by SIGKILL", answered=False)
    found = diagnosis(REPLICA, workers=(lost,), said=[worse, SAID], in_flight=0, committed_step=3)
    drawn = found._repr_html_()

    assert repr(found).splitlines()[0] == "✖ NaN <b>since</b> step 3"
    assert repr(diagnosis(REPLICA)).startswith("▲ Replica 1 makes everyone wait: it computes 5 ms\n")
    assert Tags(drawn).tags.count("details") == 1
    assert "b" not in Tags(drawn).tags
    text = Tags(drawn).text
    for part in (
        "✖ NaN <b>since</b> step 3",
        "▲ Replica 1 makes everyone wait",
        "it computes 5 ms",
        "run 7f3a: idle, step 3 was the last",
        "worker 0 (a, pid 8123) is lost",
    ):
        assert text.count(part) == 1


def test_an_idle_run_is_one_line() -> None:
    found = diagnosis(REPLICA, replace(REPLICA, replica=1), in_flight=0, committed_step=3)

    assert found.verdict == (FIRST, "run 7f3a: idle, step 3 was the last")


def test_a_stuck_collective_names_who_is_missing_and_what_it_does() -> None:
    late = replace(
        REPLICA,
        replica=1,
        worker="1",
        busy=True,
        place="train.py:90 in step",
        flight=flight(1, "broadcast", "train.py:80"),
    )

    assert diagnosis(WAITING, late).verdict == (
        "Replica 1 makes everyone wait",
        "run 7f3a: MirroredStrategy runs step 3 (1 step on the way), generation 1",
        "step 3 all_reduce #3: waiting for replicas {1}; it last did broadcast #2 at train.py:80",
        "replica 1 runs user code at train.py:90 in step",
    )


def test_what_workbench_measured_between_steps_is_not_what_a_replica_did_last() -> None:
    between = tuple(entry | {"step": -1} for entry in flight(7, "barrier", "limit"))
    waiting = replace(REPLICA, busy=True, seq=2, op="all_reduce", phase="waiting")
    other = replace(REPLICA, replica=1, worker="1", flight=flight(1, "broadcast", "train.py:80") + between)

    assert "it last did broadcast #2 at train.py:80" in diagnosis(waiting, other).verdict[2]


def test_a_replica_that_left_early_is_named() -> None:
    left = replace(REPLICA, replica=1, worker="1", flight=flight(1, "broadcast", ""))

    assert diagnosis(WAITING, left).verdict[-1] == (
        "replica 1 runs nothing: it has ended step 3, or not begun the next"
    )


def test_a_stopped_process_is_named_with_the_age_of_its_heartbeat() -> None:
    late = replace(REPLICA, replica=1, worker="1", busy=True)
    silent = replace(WORKER, name="1", answered=False, process_state="T", heartbeat_age_seconds=4.04)

    assert diagnosis(WAITING, late, workers=(WORKER, silent)).verdict[2:] == (
        "step 3 all_reduce #3: waiting for replicas {1}; it last did collective #2",
        "worker 1 (a, pid 8123) does not answer: its process is stopped (state T), last heartbeat 4.0 s ago",
    )


def test_a_lost_worker_is_named_with_the_cause() -> None:
    lost = replace(WORKER, lost="was killed by SIGKILL", answered=False)

    assert diagnosis(REPLICA, workers=(lost,)).verdict[2:] == (
        "worker 0 (a, pid 8123) is lost: was killed by SIGKILL; "
        "a step recovers as soon as a worker is there in its place",
    )


def test_slow_user_code_is_shown_where_nobody_waits() -> None:
    slow = replace(REPLICA, busy=True, place="train.py:7 in load")

    assert diagnosis(slow).verdict[2:] == ("replica 0 runs user code at train.py:7 in load",)


def test_a_verdict_has_five_lines_at_most() -> None:
    lost = tuple(replace(WORKER, name=str(n), lost="was killed by SIGKILL") for n in range(40))
    found = diagnosis(REPLICA, workers=lost)

    assert len(found.verdict) == 5
    assert found.verdict[-1] == "… and 38 more lines: see .details"
    assert len(found.details["workers"]) == 40


def test_of_a_closed_cluster_its_last_verdict_is_told() -> None:
    found = Diagnosis(run="7f3a", status="stopped", workers=[], groups=[], said=[SAID])

    assert found.verdict == (FIRST, "run 7f3a: the cluster was closed")
    assert found.details["said"][0]["code"] == "late"
