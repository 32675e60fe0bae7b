"""Memory for results: reused when it may be, never while somebody refers to it."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic

import numpy as np
import pytest

from workbench.communicators.core.result_pool import ResultPool
from workbench.communicators.core.shared_memory import SharedFile
from workbench.communicators.shm.arena import Arena, PeerMemory
from workbench.communicators.shm.results import SharedResults

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
    for count in range(20_000_000, 20_000_030):  # about 2.4 GB in total, never written
        pool.take(count, FLOAT)
    assert pool.kept_bytes < 400_000_000


def test_the_pool_gives_back_what_is_idle_and_was_not_used_lately() -> None:
    pool = ResultPool()
    held = pool.take(100_000, FLOAT)
    held[:] = 7
    for count in (200_000, 300_000):
        pool.take(count, FLOAT)
    pool.give_back(0.0)  # the earliest time, so that all of it counts as used since
    assert pool.kept_bytes == 4 * 600_000
    moment = monotonic()
    recent = address(pool.take(300_000, FLOAT))
    pool.give_back(moment)
    assert pool.kept_bytes == 4 * 400_000
    assert address(pool.take(300_000, FLOAT)) == recent
    pool.give_back(monotonic() + 1)
    assert pool.kept_bytes == 4 * 100_000
    assert (held == 7).all()
    pool.take(200_000, FLOAT)[:] = 1  # and continues


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


def test_the_arena_gives_back_pages_that_are_idle_and_were_not_used_lately(arena: Arena) -> None:
    held, dropped = arena.take(1 << 20), arena.take(1 << 21)
    held[:] = dropped[:] = 7
    del dropped
    arena.give_back(0.0)
    assert arena.paged_bytes == (1 << 20) + (1 << 21)
    arena.give_back(monotonic() + 1)
    assert arena.paged_bytes == 1 << 20
    assert (held == 7).all()
    again = arena.take(1 << 21)
    assert not again.any()  # its pages are gone, its address is not
    assert arena.paged_bytes == (1 << 20) + (1 << 21)


def test_shared_results_are_given_back_once_no_process_refers_to_them(arena: Arena) -> None:
    words = [memoryview(bytearray(8 * 1024)).cast("q") for _ in range(2)]
    peer = PeerMemory(arena._file.fd)
    first, second = (SharedResults(words, index, peer, arena if index == 0 else None) for index in range(2))
    number, offset = first.offer(1 << 20)
    mine, theirs = first.hold(number, offset, 1 << 20), second.hold(number, offset, 1 << 20)
    mine[:] = 7
    del mine
    first.give_back(monotonic() + 1)
    assert (theirs == 7).all()
    del theirs
    first.give_back(monotonic() + 1)  # the second has not reported yet
    assert first.hold(number, offset, 1 << 20)[0] == 7
    second.give_back(monotonic() + 1)
    first.give_back(0.0)
    assert first.hold(number, offset, 1 << 20)[0] == 7
    first.give_back(monotonic() + 1)
    assert first.offer(1 << 20) == (number, offset)
    assert not first.hold(number, offset, 1 << 20).any()
