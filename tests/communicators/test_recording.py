"""What a replica records of its collectives: sizes as nccl-tests counts them, how it was done, and for whom."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.telemetry.reading import records
from workbench.communicators import Bootstrap, Member, Reduction, Topology
from workbench.communicators.communicator import Communicator
from workbench.telemetry.recording.ring import Ring
from workbench.telemetry.records import Record, bandwidth

DEADLINE_SECONDS = 30


def recorded(size: int, body: Callable[[Communicator], Any]) -> list[list[Record]]:
    """The records of `size` replicas in this process that have each run `body`."""
    members = tuple(Member(rank=rank, host="a", process="p") for rank in range(size))
    rings = {rank: Ring(64, replica=rank, size=size) for rank in range(size)}
    bootstrap = Bootstrap(Topology(members), "p", rings=rings, group="g", generation=3)
    communicators = bootstrap.connect({"p": bootstrap.address}, DEADLINE_SECONDS)
    failures: list[BaseException] = []

    def run(communicator: Communicator) -> None:
        try:
            communicator.begin(0)
            body(communicator)
            communicator.finish()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(communicators[rank],)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_SECONDS)
    for rank in range(size):
        communicators[rank].close()
    bootstrap.close()
    assert failures == []
    return [records(rings[rank]) for rank in range(size)]


def sizes(records: list[list[Record]]) -> set[tuple[str, str, int]]:
    return {(record.op, record.dtype, record.bytes) for mine in records for record in mine}


@pytest.mark.parametrize("n", [1, 2, 3])
def test_every_replica_records_the_size_of_the_formulas(n: int) -> None:
    def body(c: Communicator) -> None:
        c.all_reduce([np.ones((5, 2), np.float32)], Reduction("sum"))
        c.reduce([np.ones(7, np.int16)], "sum", 0)
        c.reduce_scatter(np.ones((6, 2), np.float64), "sum")
        c.all_gather(np.ones((4, 2), np.int32), 0)
        c.broadcast(np.ones(9, np.uint8) if c.rank == 0 else None, 0)
        c.barrier()

    assert sizes(recorded(n, body)) == {
        ("all_reduce", "float32", 40),
        ("reduce", "int16", 14),
        ("reduce_scatter", "float64", 96),
        ("all_gather", "int32", n * 32),
        ("broadcast", "uint8", 9),
        ("barrier", "", 0),
    }


def test_of_uneven_parts_the_size_is_their_sum_and_the_count_each_replicas_own() -> None:
    def body(c: Communicator) -> None:
        c.all_gather(np.ones((1 + c.rank, 2), np.float32), 0)
        c.reduce_scatter(np.ones((7, 2), np.float32), "sum")

    records = recorded(3, body)
    assert [[record.bytes for record in mine] for mine in records] == [[48, 56]] * 3
    assert [[record.count for record in mine] for mine in records] == [[2, 6], [4, 4], [6, 4]]


def test_one_replica_alone_has_no_bandwidth() -> None:
    (mine,) = recorded(1, lambda c: c.all_reduce([np.ones(1000)], Reduction("sum")))
    rates = bandwidth(mine[0].op, mine[0].bytes, mine[0].t_end_ns - mine[0].t_start_ns, mine[0].n)
    assert (rates.algbw, rates.busbw) == (None, None)


def test_packs_and_the_algorithm_that_was_used_are_recorded() -> None:
    def body(c: Communicator) -> None:
        arrays = [np.ones(k + 1, np.float32) for k in range(4)]
        c.all_reduce(arrays, Reduction("sum", packs=2))
        c.all_reduce(arrays, Reduction("sum", packs=0))
        c.all_gather(arrays[3], 0)

    for mine in recorded(2, body):
        assert [(record.packs, record.algorithm) for record in mine] == [
            (2, "one_device"),
            (4, "one_device"),
            (0, "one_device"),
        ]
        assert {record.generation for record in mine} == {3}


def test_workbenchs_own_collectives_are_marked_also_at_a_place_of_the_users() -> None:
    def body(c: Communicator) -> None:
        for _ in range(2):
            c.all_reduce([np.ones(2)], Reduction("sum", site="a.py:1"))
            with c.internal("input"):
                c.all_reduce([np.ones(2)], Reduction("sum", site="a.py:1"))
                c.all_gather(np.ones(2), 0)

    for mine in recorded(2, body):
        assert [record.purpose for record in mine] == ["", "input", "input"] * 2
