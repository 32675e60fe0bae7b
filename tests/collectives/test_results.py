"""Memory for results: reused when it may be, never while somebody refers to it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from workbench.collectives.arena import Arena, PeerMemory
from workbench.collectives.memory import SharedFile
from workbench.collectives.results import ResultPool

FLOAT = np.dtype(np.float32)


def address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def test_a_dropped_result_is_reused() -> None:
    pool = ResultPool()
    first = address(pool.take(100_000, FLOAT))
    assert address(pool.take(100_000, FLOAT)) == first


@pytest.mark.parametrize(
    "keep", [lambda a: a, lambda a: a[5:], lambda a: a.view(np.int32), lambda a: memoryview(a)]
)
def test_a_result_that_anything_refers_to_is_not_reused(keep: object) -> None:
    pool = ResultPool()
    kept = keep(pool.take(100_000, FLOAT))  # type: ignore[operator]
    taken = [pool.take(100_000, FLOAT) for _ in range(3)]
    assert len({address(np.asarray(kept)) & ~63, *[address(array) for array in taken]}) == 4


def test_dtypes_share_memory_of_equal_size() -> None:
    pool = ResultPool()
    first = address(pool.take(100_000, FLOAT))
    assert address(pool.take(50_000, np.dtype(np.float64))) == first


def test_the_pool_forgets_old_buffers_when_it_grows_too_large() -> None:
    pool = ResultPool()
    for count in range(20_000_000, 20_000_030):  # about 2.4 GB in all, never written
        pool.take(count, FLOAT)
    assert pool.kept_bytes < 400_000_000


@pytest.fixture
def arena() -> Iterator[Arena]:
    file = SharedFile(4096)
    arena = Arena(file)
    yield arena
    arena.close()
    file.close()


def test_the_arena_finds_its_arrays_again(arena: Arena) -> None:
    array = arena.take(10_000).view(np.int64).reshape(50, 25)
    other = arena.take(10_000)
    flat = array.reshape(-1)
    assert arena.offset(flat) > 0
    assert arena.offset(flat[3:]) == arena.offset(flat) + 24
    assert arena.offset(other) != arena.offset(flat)
    assert arena.offset(np.ones(3)) == 0
    assert arena.offset(np.ones((2, 2)).reshape(-1)) == 0


def test_the_arena_reuses_what_was_dropped_only(arena: Arena) -> None:
    kept = arena.take(5000)
    dropped = address(arena.take(5000))
    assert address(arena.take(5000)) == dropped
    assert address(kept) != dropped


def test_a_peer_sees_what_the_arena_holds_also_after_it_has_grown() -> None:
    file = SharedFile(4096)
    arena, peer = Arena(file), PeerMemory(file.fd)
    for nbytes in (100, 70_000_000, 8192):
        block = arena.take(nbytes)
        block[:5] = 7
        block[-1] = 8
        seen = peer.view(arena.offset(block), nbytes)
        assert (seen[:5] == 7).all()
        assert seen[-1] == 8
    file.close()


def test_idle_memory_of_the_arena_is_given_back(arena: Arena) -> None:
    for count in range(12):
        block = arena.take(40_000_000 + 4096 * count)
        block[::4096] = 1
    assert arena.paged_bytes < 400_000_000
    again = arena.take(40_000_000)
    again[:] = 3
    assert (again == 3).all()
