"""The first NaN that went into a collective is named, whatever order batches come in, and doubted where it must be."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from tests.telemetry.simulation import MS, Call, Replicas, steps
from workbench.telemetry.feed.feed import Feed
from workbench.telemetry.feed.nan_onsets import onset_text
from workbench.telemetry.snapshot import Onset

N = 4


def run(
    bad: dict[tuple[int, int], Sequence[int]], unread: Sequence[int] = (), count: int = 20
) -> list[bytes]:
    """One batch per replica and step, of two collectives a step; `bad`: (step, seq) -> who gives NaN."""
    replicas = Replicas(["a"] * N)
    found = []
    for call in steps(count, [0] * N):
        for seq in range(2):
            for rank in range(N):
                inputs = "not finite" if rank in bad.get((call.step, seq), ()) else "finite"
                inputs = "" if call.step in unread else inputs
                enter: list[int | None] = [None] * N
                enter[rank] = call.enter_ns[rank]
                replicas.record(
                    Call(
                        enter, call.end_ns + MS // 4, step=call.step, seq=seq, inputs=inputs, site="In[1]:14"
                    )
                )
                found += replicas.drain()
    return found


def onset(batches: list[bytes]) -> Onset | None:
    feed = Feed(now_ns=lambda: 10**12)
    for batch in batches:
        feed.ingest(batch)
    (group,) = feed.snapshot().groups
    return group.not_finite


def spread(step: int, replica: int, until: int = 20) -> dict[tuple[int, int], Sequence[int]]:
    """One replica gives NaN to the second collective of a step, and from the next on all do."""
    return {(step, 1): [replica]} | {(s, q): range(N) for s in range(step + 1, until) for q in range(2)}


@pytest.mark.parametrize("seed", range(5))
def test_the_origin_is_named_in_whatever_order_batches_come(seed: int) -> None:
    batches = run(spread(12, 3))
    random.Random(seed).shuffle(batches)
    found = onset(batches)
    assert found == Onset(12, 1, "all_reduce", "In[1]:14", (3,), N, 19, certain=True)
    assert onset_text(found) == "replica 3 gave it to all_reduce #2 at In[1]:14 in step 12"


def test_several_replicas_are_all_named() -> None:
    one, other = onset(run({(3, 0): [1, 2]})), onset(run({(3, 0): range(N)}))
    assert one is not None
    assert other is not None
    assert onset_text(one).startswith("replicas 1 and 2 gave it to all_reduce #1")
    assert onset_text(other).startswith("all 4 replicas gave it")


def test_a_run_without_nan_has_no_onset() -> None:
    assert onset(run({})) is None


@pytest.mark.parametrize("unread", [[11], [12]])
def test_what_was_not_read_just_before_makes_the_first_one_doubtful(unread: list[int]) -> None:
    found = onset(run(spread(12, 3), unread))
    assert found is not None
    assert not found.certain
    assert onset_text(found).endswith("at the latest")


def test_what_was_not_read_long_before_does_not() -> None:
    found = onset(run(spread(12, 3), [5, 6]))
    assert found is not None
    assert found.certain


def test_a_lost_record_makes_the_first_one_doubtful() -> None:
    replicas = Replicas(["a"], capacity=4)
    replicas.record(*[Call([k * MS], k * MS + 9, step=k, inputs="not finite") for k in range(1, 9)])
    found = onset(replicas.drain())
    assert found is not None
    assert (found.step, found.certain) == (5, False)


def test_each_time_that_it_comes_is_found_by_its_steps() -> None:
    feed = Feed(now_ns=lambda: 10**12)
    for batch in run({(4, 0): [1], (5, 0): [1], (12, 1): [2]}):
        feed.ingest(batch)
    found = [
        feed.first_not_finite("run", "g", since=low, until=high) for low, high in ((0, 19), (6, 19), (6, 9))
    ]
    assert [each and (each.step, each.replicas) for each in found] == [(4, (1,)), (12, (2,)), None]
    assert feed.first_not_finite("run", "other", since=0, until=19) is None


def test_onsets_without_end_are_bounded_and_the_first_stays() -> None:
    replicas = Replicas(["a"])
    replicas.record(*[Call([k * MS], k * MS + 9, step=2 * k, inputs="not finite") for k in range(1, 900)])
    found = onset(replicas.drain())
    assert found is not None
    assert found.step == 2
