"""Options, topologies and packs: what is refused, and what is made of the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from workbench.communicators import (
    CollectiveCommunication,
    CollectiveHints,
    CommunicationImplementation,
    CommunicationOptions,
    Member,
    Topology,
)
from workbench.communicators.core.packing import flatten, packs_of


@pytest.mark.parametrize("name", ["ring", "RING", CommunicationImplementation.RING])
def test_implementations_go_by_name_too(name: Any) -> None:
    assert CommunicationOptions(implementation=name).implementation is CollectiveCommunication.RING


@pytest.mark.parametrize("name", ["mpi", 3, None])
def test_unknown_implementations_are_refused(name: Any) -> None:
    with pytest.raises(ValueError, match="AUTO, RING, NCCL"):
        CommunicationOptions(implementation=name)


@pytest.mark.parametrize("kind", [CommunicationOptions, CollectiveHints])
@pytest.mark.parametrize("value", [-1, 1.5, True, "1"])
def test_bytes_per_pack_is_a_natural_number(kind: Any, value: Any) -> None:
    with pytest.raises(
        ValueError, match=f"^bytes_per_pack must be an integer of at least 0 .*, got {value!r}$"
    ):
        kind(bytes_per_pack=value)


@pytest.mark.parametrize("kind", [CommunicationOptions, CollectiveHints])
@pytest.mark.parametrize("number", [np.int64(2), np.int32(2), np.uint8(2), np.array(2)[()]])
def test_numbers_of_numpy_count_as_those_of_python_do(kind: Any, number: Any) -> None:
    options = kind(bytes_per_pack=number, timeout_seconds=np.float32(2))
    assert (options.bytes_per_pack, options.timeout_seconds) == (2, 2.0)
    assert type(options.bytes_per_pack) is int


@pytest.mark.parametrize("kind", [CommunicationOptions, CollectiveHints])
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "2"])
def test_timeouts_are_finite_and_not_negative(kind: Any, value: Any) -> None:
    with pytest.raises(ValueError, match="timeout_seconds"):
        kind(timeout_seconds=value)


def test_defaults_are_those_of_the_reference() -> None:
    options = CommunicationOptions()
    assert (options.bytes_per_pack, options.timeout_seconds) == (0, None)
    assert options.implementation is CommunicationImplementation.AUTO


def test_topology_knows_hosts_processes_and_ranks() -> None:
    topology = Topology([Member(0, "a", "p"), Member(1, "a", "p"), Member(2, "a", "q"), Member(3, "b", "r")])
    assert topology.hosts == ("a", "b")
    assert topology.processes("a") == ("p", "q")
    assert topology.ranks("p") == (0, 1)
    assert topology.host("r") == "b"
    with pytest.raises(ValueError, match="no replica"):
        topology.host("elsewhere")


@pytest.mark.parametrize(
    "members",
    [[], [Member(1, "a", "p")], [Member(0, "a", "p"), Member(0, "a", "q")]],
    ids=["none", "gap", "twice"],
)
def test_ranks_must_count_from_zero(members: list[Member]) -> None:
    with pytest.raises(ValueError, match="ordered by rank"):
        Topology(members)


def test_a_process_is_on_one_host() -> None:
    with pytest.raises(ValueError, match="is said to be on"):
        Topology([Member(0, "a", "p"), Member(1, "b", "p")])


def arrays(*counts: int, dtype: Any = np.float32) -> list[np.ndarray]:
    return [np.full(count, i, dtype) for i, count in enumerate(counts)]


def groups(counts: tuple[int, ...], **how: Any) -> list[tuple[int, ...]]:
    return [pack.indices for pack in packs_of(arrays(*counts), "sum", **how)]


def test_small_arrays_share_a_pack_and_large_ones_go_alone() -> None:
    assert groups((10, 20, 30)) == [(0, 1, 2)]
    assert groups((10, 3_000_000, 30)) == [(0, 2), (1,)]


def test_bytes_per_pack_closes_packs() -> None:
    options = CommunicationOptions(bytes_per_pack=100)
    assert groups((10, 10, 10, 10, 10, 10), options=options) == [(0, 1, 2), (3, 4, 5)]
    assert groups((10, 50, 10), options=options) == [(0, 2), (1,)]


def test_number_of_packs() -> None:
    assert groups((10, 10, 10, 10), packs=2) == [(0, 1), (2, 3)]
    assert groups((10, 10, 10), packs=0) == [(0,), (1,), (2,)]
    assert groups((10, 10), packs=5) == [(0,), (1,)]
    assert groups((0, 0), packs=2) == [(0, 1)]


def test_dtypes_do_not_mix_but_narrow_floats_join_float32() -> None:
    mixed = [np.ones(2, np.float16), np.ones(3, np.int64), np.ones(4, np.float32)]
    assert [(pack.indices, pack.dtype) for pack in packs_of(mixed, "sum")] == [
        ((0, 2), np.float32),
        ((1,), np.int64),
    ]


def test_flatten_converts_and_keeps_the_order() -> None:
    mixed = [np.arange(4, dtype=np.float16).reshape(2, 2).T, np.float32(9).reshape(())]
    (pack,) = packs_of(mixed, "sum")
    assert flatten(pack, mixed, np.empty(100, np.uint8)).tolist() == [0, 2, 1, 3, 9]
