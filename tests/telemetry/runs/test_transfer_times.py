"""How long collectives took over a whole run: what two runs are compared by."""

from __future__ import annotations

import numpy as np

from tests.telemetry.simulation import MS, Call, Replicas, steps
from workbench.telemetry.recording import batches
from workbench.telemetry.runs.transfer_times import Kind, Transfers


def times_of(replicas: Replicas, *, at_once: int = 1) -> dict[Kind, list[float]]:
    """By kind, in µs, from batches of few records."""
    transfers = Transfers()
    for data in replicas.drain():
        _, columns = batches.decode(data)
        for begin in range(0, len(columns["seq"]), at_once):
            rows = np.arange(begin, min(begin + at_once, len(columns["seq"])))
            transfers.add(batches.taken(columns, rows))
    return {kind: (times.seconds * 1e6).round(3).tolist() for kind, times in transfers.by_kind().items()}


def test_a_transfer_begins_with_the_last_replica_whatever_the_batches() -> None:
    expected = {("all_reduce", "sum", "float32", 4096, 3): [50.0, 70.0]}
    for at_once in (1, 2, 100):
        replicas = Replicas(["a", "a", "b"], {"b": 12345})
        replicas.record(
            Call([MS, MS + 5000, MS + 9000], MS + 59_000), Call([3 * MS] * 3, 3 * MS + 70_000, step=1)
        )
        assert times_of(replicas, at_once=at_once) == expected


def test_sizes_between_the_same_powers_of_two_are_of_one_kind() -> None:
    replicas = Replicas(["a", "a"])
    for step, nbytes in enumerate((1024, 2047, 2048)):
        replicas.record(Call([MS] * 2, 2 * MS, step=step, nbytes=nbytes))

    assert {kind[3]: len(times) for kind, times in times_of(replicas).items()} == {1024: 2, 2048: 1}


def test_other_reductions_are_of_other_kinds() -> None:
    replicas = Replicas(["a", "a"])
    replicas.record(Call([MS] * 2, 2 * MS), Call([3 * MS] * 2, 5 * MS, step=1, redop="max"))

    assert {kind[1]: times for kind, times in times_of(replicas).items()} == {
        "sum": [1000.0],
        "max": [2000.0],
    }


def test_what_failed_what_is_workbenchs_own_and_what_never_ended_does_not_count() -> None:
    replicas = Replicas(["a", "a"])
    replicas.record(Call([MS] * 2, 2 * MS, state="timeout"), Call([MS] * 2, 2 * MS, seq=1, purpose="input"))
    replicas.record(Call([MS, None], 2 * MS, step=1), Call([MS, MS], 0, step=2, state="entered"))

    assert times_of(replicas) == {}


def test_all_of_a_long_run_counts() -> None:
    replicas = Replicas(["a", "b"], capacity=40_000)
    replicas.record(*steps(12_000, [0, 0]))

    (times,) = times_of(replicas, at_once=5000).values()
    assert len(times) == 12_000
