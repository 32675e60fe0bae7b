"""Trees of very many leaves: few messages, few computations, and the same numbers as leaf by leaf."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.distribute import Mirrored, PerReplica, get_replica_context
from workbench.distribute.arrays import host_reduce
from workbench.distribute.values import large_trees
from workbench.runtime.comm.messages import FETCH, INLINE_BYTES
from workbench.runtime.driver.gang.requests import Requests

LARGE = INLINE_BYTES // 4 + 1  # float32 elements that stay on the replica
COUNT = 40


def _leaves(seed: int) -> list[Any]:
    """Many leaves of each possible kind."""
    random = np.random.default_rng(seed)
    kinds = [
        lambda: random.standard_normal(4).astype(np.float32),
        lambda: random.standard_normal((3, 2)),
        lambda: random.integers(0, 9, (2, 3), dtype=np.int64),
        lambda: random.standard_normal((2 + seed, 3)).astype(np.float16),
        lambda: random.standard_normal(2).astype(">f4"),
        lambda: random.standard_normal((5, 1)).astype(np.float32),
    ]
    return [make() for make in kinds for _ in range(COUNT)]


def _scalars(seed: int) -> list[Any]:
    random = np.random.default_rng(seed)
    kinds = [
        lambda: float(random.standard_normal()),
        lambda: int(random.integers(9)),
        lambda: np.array(random.standard_normal()),
        lambda: np.float64(random.standard_normal()),
    ]
    return [make() for make in kinds for _ in range(COUNT)]


@pytest.mark.parametrize(
    ("make", "what", "most"),
    [
        (_leaves, lambda s, tree: s.reduce("SUM", tree, axis=0), None),
        (_leaves, lambda s, tree: s.reduce("MEAN", tree, axis=(0,)), None),
        # Only the first leaves, because the last axes of the others differ by replica.
        (_leaves, lambda s, tree: s.reduce("MEAN", tree, axis=-1), 3 * COUNT),
        (_leaves, lambda s, tree: s.gather(tree, axis=0), None),
        (_scalars, lambda s, tree: s.reduce("SUM", tree, axis=None), None),
        (_scalars, lambda s, tree: s.reduce("MEAN", tree, axis=None), None),
    ],
    ids=["sum", "mean", "mean of the last axis", "gather", "sum of scalars", "mean of scalars"],
)
def test_many_leaves_come_to_what_each_alone_does(
    local: Any, make: Any, what: Any, most: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tree() -> Any:
        return [PerReplica(parts) for parts in zip(make(0), make(1), strict=True)][:most]

    found = what(local, tree())
    monkeypatch.setattr("workbench.distribute.replica.reduce_leaf.FEW", 10**6)
    monkeypatch.setattr(large_trees, "FEW", 10**6)
    expected = what(local, tree())
    assert [type(leaf) for leaf in found] == [type(leaf) for leaf in expected]
    for got, want in zip(found, expected, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want, strict=True)


def test_many_leaves_are_computed_together(local: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    combine = host_reduce.reduce_components

    def counted(op: Any, parts: Any, axis: Any) -> Any:
        calls.append(len(parts[0]))
        return combine(op, parts, axis)

    monkeypatch.setattr("workbench.distribute.replica.reduce_leaf.reduce_components", counted)
    leaf = PerReplica([np.ones(2), np.ones(2)])
    tree = {"a": [leaf] * COUNT, "b": [Mirrored([np.ones(2), np.ones(2)])] * COUNT}
    total = local.reduce("SUM", tree, axis=None)
    assert calls == [2 * COUNT]
    assert total["b"][-1].tolist() == [2, 2]


def test_an_error_of_many_leaves_describes_one_of_them(local: Any) -> None:
    leaves = [PerReplica([np.ones(2), np.ones(3)])] * COUNT
    with pytest.raises(ValueError, match=r"replica 0 has float64\[2\], replica 1 has float64\[3\]"):
        local.reduce("SUM", leaves, axis=None)
    with pytest.raises(ValueError, match=r"axis 4 is out of range.*float64\[2\]"):
        local.gather(leaves, axis=4)


@pytest.mark.parametrize(
    "look",
    [
        lambda s, tree: s.reduce("SUM", tree, axis=None),
        lambda s, tree: s.gather(tree, axis=0),
        lambda s, tree: s.local_results(tree)[1],
    ],
    ids=["reduce", "gather", "local_results"],
)
def test_values_on_the_replicas_are_fetched_with_one_message_each(
    strategy: Any, look: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages: list[int] = []
    ask = Requests.ask

    def counted(self: Any, worker: Any, kind: int, *arguments: Any) -> int:
        messages.append(kind)
        return ask(self, worker, kind, *arguments)

    made = strategy.run(lambda: [np.full(LARGE, n, np.float32) for n in range(COUNT)])
    monkeypatch.setattr(Requests, "ask", counted)
    found = look(strategy, made)
    assert [leaf[0] for leaf in found][:3] == [0, look(strategy, made)[1][0], look(strategy, made)[2][0]]
    assert messages == ([] if strategy.group.gang.shipping.codec.by_reference else [FETCH] * 2)


def test_much_data_is_fetched_in_several_messages(strategy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.runtime.driver.handle._MESSAGE_BYTES", 10 * LARGE * 4)
    made = strategy.run(lambda: [np.full(LARGE, n, np.float32) for n in range(COUNT)])
    assert [part[0] for part in strategy.local_results(made)[1]] == list(range(COUNT))


class Unpicklable:
    """Stays on its replica."""

    def __reduce__(self) -> Any:
        raise ZeroDivisionError("not even this")


def test_what_cannot_be_fetched_keeps_nothing_else_back(strategy: Any) -> None:
    made = strategy.run(lambda: [np.ones(LARGE), Unpicklable(), np.ones(LARGE)])
    assert strategy.reduce("SUM", [made[0], made[2]], axis=None)[1][0] == 2
    if not strategy.group.gang.shipping.codec.by_reference:
        with pytest.raises(wb.errors.CaptureError, match="Unpicklable that a replica function returned"):
            strategy.local_results(made)


def test_a_tree_is_one_collective_per_pack_however_many_leaves_it_has(strategy: Any) -> None:
    def step() -> Any:
        context = get_replica_context()
        found = context.all_reduce("SUM", {"a": [np.ones(3, np.float32)] * 5_000, "b": [1.0] * 100})
        return len(context._env.communicator.flight()), context._env.communicator.status().seq, found["a"][-1]

    before = strategy.local_results(
        strategy.run(lambda: len(get_replica_context()._env.communicator.flight()))
    )
    flights, seq, last = strategy.local_results(strategy.run(step))[0]
    assert (flights - before[0], seq) == (1, 0)
    assert last.tolist() == [2, 2, 2]
