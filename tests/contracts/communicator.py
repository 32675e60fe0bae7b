"""What every communicator must do, whatever its replicas talk through.

A test class per layout inherits `CommunicatorContract` and sets `layout`. Values are small integers, so that every
order of combining gives the same bits; `test_float_results_are_reproducible` says where orders matter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, ClassVar

import ml_dtypes
import numpy as np
import pytest

from tests.contracts.processes import Group, Layout, Pool, wait_for_gate, wait_for_last_gate
from workbench.backends import numpy as backend
from workbench.communicators import CommunicationOptions, Communicator, Reduction
from workbench.errors import (
    CollectiveAborted,
    CollectiveMismatch,
    DeadlineExceededError,
    ReplicaLost,
    StaleGeneration,
)

OPS = ("sum", "mean", "min", "max", "prod")
DTYPES = (
    *(np.dtype(name) for name in ("bool", "int8", "int16", "int32", "int64")),
    *(np.dtype(name) for name in ("uint8", "uint16", "uint32", "uint64")),
    *(np.dtype(name) for name in ("float16", "float32", "float64", "complex64", "complex128", ">f4", ">i2")),
    np.dtype(ml_dtypes.bfloat16),
)
SHAPES = ((), (0,), (1,), (7,), (3, 0, 2), (5, 4), (40_000,), (300_001,))
ALGORITHMS = ("auto", "one_device", "hierarchical", "ring")


def values(rank: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Small integers that differ by replica and position."""
    return ((np.arange(np.prod(shape, dtype=int)) * 7 + rank * 3) % 5).reshape(shape).astype(dtype)


def expected(op: str, arrays: list[np.ndarray]) -> np.ndarray:
    """The reduction as NumPy would do it."""
    dtype = arrays[0].dtype
    wide = backend.accumulator(dtype, op).newbyteorder("=")
    total = backend.ufunc(op).reduce(np.stack([array.astype(wide) for array in arrays]), axis=0, dtype=wide)
    if op == "mean":
        total = np.divide(total, wide.type(len(arrays)))
        dtype = backend.mean_dtype(dtype)
    return np.asarray(total).astype(dtype.newbyteorder("="))


def differing(rank: int, got: Any, want: np.ndarray, what: object) -> list[str]:
    """What is wrong with a result, in words."""
    got = np.asarray(got)
    if got.dtype != want.dtype or got.shape != want.shape:
        return [f"replica {rank} {what}: {got.dtype}{got.shape} instead of {want.dtype}{want.shape}"]
    return [] if np.array_equal(got, want) else [f"replica {rank} {what}: other values"]


def _reduce_dtypes(c: Communicator, op: str) -> list[str]:
    wrong = []
    for dtype in DTYPES:
        for shape in SHAPES:
            mine = values(c.rank, shape, dtype)
            before = mine.copy()
            want = expected(op, [values(r, shape, dtype) for r in range(c.size)])
            (got,) = c.all_reduce([mine], Reduction(op))
            wrong += differing(c.rank, got, want, (dtype, shape))
            if not np.array_equal(mine, before):
                wrong.append(f"{dtype}{shape}: input was written")
            if not got.flags.writeable:
                wrong.append(f"{dtype}{shape}: result is read-only")
    return wrong


def _odd_layouts(rank: int) -> list[np.ndarray]:
    base = values(rank, (400, 600), np.dtype(np.float32))
    read_only = values(rank, (70, 3), np.dtype(np.int64))
    read_only.flags.writeable = False
    return [
        base.T,
        base[::2, ::3],
        base[::-1, ::-1],
        np.asfortranarray(base[:50]),
        np.broadcast_to(base[0], (3, 600)),
        read_only,
        base[7, 9:10],
        base[:, :0],
    ]


def _reduce_layouts(c: Communicator) -> list[str]:
    wrong = []
    inputs = [_odd_layouts(rank) for rank in range(c.size)]
    for i, array in enumerate(_odd_layouts(c.rank)):
        (got,) = c.all_reduce([array], Reduction("sum"))
        wrong += differing(c.rank, got, expected("sum", [each[i] for each in inputs]), f"alone {i}")
    together = c.all_reduce(_odd_layouts(c.rank), Reduction("max"))
    for i, got in enumerate(together):
        wrong += differing(c.rank, got, expected("max", [each[i] for each in inputs]), f"together {i}")
    return wrong


def _mixed(rank: int) -> list[np.ndarray]:
    shapes = [(300, 500), (10,), (2, 2), (), (70_000,), (0, 3), (9,)]
    dtypes = [np.float32, np.int64, np.float16, np.float32, np.float32, np.float64, ml_dtypes.bfloat16]
    return [values(rank, shape, np.dtype(d)) for shape, d in zip(shapes, dtypes, strict=True)]


def _reduce_ways(c: Communicator, algorithm: Any, packs: int | None, bytes_per_pack: int) -> list[str]:
    wrong = []
    inputs = [_mixed(rank) for rank in range(c.size)]
    options = CommunicationOptions(bytes_per_pack=bytes_per_pack)
    for shared in (False, True):
        for op in ("sum", "mean"):
            results = c.all_reduce(
                _mixed(c.rank),
                Reduction(op, options=options, algorithm=algorithm, packs=packs, shared=shared),
            )
            for i, got in enumerate(results):
                want = expected(op, [each[i] for each in inputs])
                wrong += differing(c.rank, got, want, (op, shared, i))
    return wrong + [str(c.all_reduce([], Reduction("sum")))] * bool(c.all_reduce([], Reduction("sum")))


def _own_results(c: Communicator, count: int) -> list[str]:
    kept, wrong = [], []
    for turn in range(6):
        (got,) = c.all_reduce([np.full(count, turn, np.float32)], Reduction("sum"))
        kept.append(got)
    for turn, got in enumerate(kept):
        wrong += differing(c.rank, got, np.full(count, turn * c.size, np.float32), f"turn {turn}")
        got[:] = -1.0  # must change nothing for other replicas
    (again,) = c.all_reduce([np.ones(count, np.float32)], Reduction("sum"))
    return wrong + differing(c.rank, again, np.full(count, c.size, np.float32), "after writing")


def _repeated_packs(c: Communicator, count: int) -> list[str]:
    wrong = []
    # The buffer in which packs are assembled is reused, even while a peer is late.
    packs = [[np.full(count, turn, np.float32), np.full(7, -turn, np.float32)] for turn in range(8)]
    kept = [c.all_reduce(pack, Reduction("sum")) for pack in packs]
    for turn, (large, small) in enumerate(kept):
        wrong += differing(c.rank, large, np.full(count, turn * c.size, np.float32), f"turn {turn}")
        wrong += differing(c.rank, small, np.full(7, -turn * c.size, np.float32), f"turn {turn}, small")
    return wrong


def _shared_results(c: Communicator, count: int) -> list[str]:
    kept, wrong = [], []
    for turn in range(6):
        (got,) = c.all_reduce([np.full(count, turn, np.float32)], Reduction("sum", shared=True))
        if got.flags.writeable:
            wrong.append("a shared result can be written")
        kept.append(got)
    for _ in range(3):  # dropped at once, so that their memory is reused, but not that of the kept ones
        c.all_reduce([np.full(count, 77, np.float32)], Reduction("sum", shared=True))
    for turn, got in enumerate(kept):
        wrong += differing(c.rank, got, np.full(count, turn * c.size, np.float32), f"turn {turn}")
    return wrong


def _in_place_inputs(c: Communicator, count: int) -> list[str]:
    wrong = []
    array = c.empty((count,), np.float32)
    other = c.empty(count, np.float64)
    other[:] = 5.0
    for turn in range(4):
        array[:] = turn + c.rank
        want = np.full(count, turn * c.size + sum(range(c.size)), np.float32)
        (got,) = c.all_reduce([array], Reduction("sum", shared=turn % 2 == 1))
        wrong += differing(c.rank, got, want, turn)
        (part,) = c.all_reduce([array[3:]], Reduction("sum"))
        array[:] = -1.0  # its owner may write to it at once
        wrong += differing(c.rank, part, want[3:], f"part {turn}")
    mine = array if c.rank == 0 else np.full(count, -1.0, np.float32)
    (mixed,) = c.all_reduce([mine], Reduction("sum"))
    wrong += differing(c.rank, mixed, np.full(count, -c.size, np.float32), "one in place, others not")
    return wrong + differing(c.rank, other, np.full(count, 5.0), "another array made by empty()")


def _scatter(c: Communicator) -> list[str]:
    wrong = []
    for rows in (0, 1, 7, 50_000):
        want = expected("sum", [values(r, (rows, 3), np.dtype(np.int32)) for r in range(c.size)])
        got = c.reduce_scatter(values(c.rank, (rows, 3), np.dtype(np.int32)), "sum")
        wrong += differing(c.rank, got, np.array_split(want, c.size)[c.rank], rows)
    return wrong


def _gather(c: Communicator) -> list[str]:
    wrong = []
    for dtype in DTYPES:
        for axis, shape in ((0, "n3"), (-1, "2n"), (1, "2n3"), (-2, "n3")):
            shapes = [[r * 3 % 4 if s == "n" else int(s) for s in shape] for r in range(c.size)]
            parts = [values(r, tuple(shapes[r]), dtype) for r in range(c.size)]
            got = c.all_gather(parts[c.rank], axis)
            wrong += differing(c.rank, got, np.concatenate(parts, axis), (dtype, axis, shape))
    big = [values(r, (100_000 * (r + 1),), np.dtype(np.float64)) for r in range(c.size)]
    wrong += differing(c.rank, c.all_gather(big[c.rank], 0), np.concatenate(big), "large")
    strided = [part[::3] for part in big]
    wrong += differing(c.rank, c.all_gather(strided[c.rank], 0), np.concatenate(strided), "strided")
    orders = [part.astype(part.dtype.newbyteorder("<>"[r % 2])) for r, part in enumerate(big)]
    return wrong + differing(c.rank, c.all_gather(orders[c.rank], 0), np.concatenate(big), "byte orders")


def _gather_several(c: Communicator) -> list[str]:
    wrong = []
    for axis, shapes in ((0, ["n", "n3", "n21"]), (-1, ["n", "2n", "12n"]), (1, ["2n", "1n3", "2n1"])):
        every = []
        for r in range(c.size):
            extents = [
                [(r * 3 + k) % 4 if s == "n" else int(s) for s in shape] for k, shape in enumerate(shapes)
            ]
            every.append([values(r, tuple(extent), dtype) for dtype in DTYPES for extent in extents])
        got = c.all_gather_arrays(every[c.rank], axis)
        for number, parts in enumerate(zip(*every, strict=True)):
            wrong += differing(c.rank, got[number], np.concatenate(parts, axis), (axis, number))
    large = [
        [np.full(200_000 * (r + 1), r, np.float32)[::2], np.full((r, 1), r, ">i2")] for r in range(c.size)
    ]
    got = c.all_gather_arrays(large[c.rank], 0)
    wrong += differing(c.rank, got[0], np.concatenate([pair[0] for pair in large]), "strided")
    return wrong + differing(
        c.rank, got[1], np.concatenate([pair[1] for pair in large]).astype("=i2"), "byte order"
    )


def _gather_nothing(c: Communicator) -> list[str]:
    """A part without elements shows neither the length of the others' lists nor their number of dimensions."""
    wrong = []
    for axis, shape, nothing in (
        (0, "n7", (0, 0)),
        (0, "n75", (0,)),
        (1, "2n3", (0, 0, 9)),
        (-1, "57n", (4, 3, 0)),
        (-1, "57n", (0,)),
    ):
        for silent in ({0}, {c.size - 1}, set(range(1, c.size)), set(range(c.size))):
            shapes = [tuple(r + 1 if s == "n" else int(s) for s in shape) for r in range(c.size)]
            shapes = [nothing if r in silent else each for r, each in enumerate(shapes)]
            every = [[values(r, each, dtype) for dtype in DTYPES] for r, each in enumerate(shapes)]
            heard = [parts for r, parts in enumerate(every) if r not in silent] or every[:1]
            want = [np.concatenate(parts, axis) for parts in zip(*heard, strict=True)]
            together = c.all_gather_arrays(every[c.rank], axis)
            for number, dtype in enumerate(DTYPES):
                wrong += differing(c.rank, together[number], want[number], (axis, shape, silent, dtype))
            got = c.all_gather(every[c.rank][0], axis)
            wrong += differing(c.rank, got, want[0], (axis, shape, silent, "alone"))
    return wrong


def _gather_misfits(c: Communicator, several: bool) -> None:
    """Called from one line, so that only the shapes differ; the first replica has no elements."""
    c.begin(3)
    shape = (0, 0) if c.rank == 0 and c.size > 2 else (2, 4 if c.rank == c.size - 1 else 5)
    part, site = np.ones(shape, np.float32), "train.py:10"
    if several:
        c.all_gather_arrays([np.ones(2), part], 0, site=site)
    else:
        c.all_gather(part, 0, site=site)


def _broadcast(c: Communicator) -> list[str]:
    wrong = []
    for root in range(c.size):
        for shape in ((), (0, 4), (3, 5), (400_000,)):
            for dtype in (np.dtype(np.int16), np.dtype(np.float64), np.dtype(ml_dtypes.bfloat16)):
                value = values(root, shape, dtype)
                got = c.broadcast(value if c.rank == root else None, root)
                wrong += differing(c.rank, got, value, (root, shape, dtype))
                got[...] = 0  # owned by the caller
    return wrong


def _reduce(c: Communicator) -> list[str]:
    wrong = []
    for root in range(c.size):
        arrays = [values(c.rank, (70_000,), np.dtype(np.float32)), values(c.rank, (), np.dtype(np.int8))]
        first, second = c.reduce(arrays, "max", root)
        if c.rank == root:
            for got, shape, dtype in ((first, (70_000,), np.float32), (second, (), np.int8)):
                inputs = [values(r, shape, np.dtype(dtype)) for r in range(c.size)]
                wrong += differing(c.rank, got, expected("max", inputs), (root, shape))
        elif first is not None or second is not None:
            wrong.append("a replica other than the root got a result")
    c.barrier()
    return wrong


def _random_sums(c: Communicator) -> list[bytes]:
    random = np.random.default_rng(c.rank)
    results = []
    for count in (5, 1000, 50_000, 400_000):
        array = random.standard_normal(count).astype(np.float32)
        first, second = (c.all_reduce([array], Reduction("sum"))[0].tobytes() for _ in range(2))
        assert first == second
        results.append(first)
    return results


def _mismatch(c: Communicator, what: str) -> None:
    c.begin(3)
    c.barrier(site="train.py:1")
    odd = c.rank == c.size - 1
    array, site = np.ones((2, 3), np.float32), f"train.py:{20 if odd else 10}"
    match what:
        case "operation" if odd:
            c.broadcast(array, 0, site=site)
        case "early barrier" if odd:
            c.barrier(site=site)
        case "shape":
            c.all_reduce([array[:, : 2 if odd else 3]], Reduction("sum", site=site))
        case "dtype":
            c.all_reduce([array.astype(np.float64 if odd else np.float32)], Reduction("sum", site=site))
        case "reduction":
            c.all_reduce([array], Reduction("max" if odd else "sum", site=site))
        case "structure":
            c.all_reduce([array], Reduction("sum", site=site, nesting="dict" if odd else "list"))
        case "number of arrays":
            c.all_reduce([array] * (2 if odd else 1), Reduction("sum", site=site))
        case "root":
            c.broadcast(array, c.size - 1 if odd else 0, site=site)
        case "algorithm":
            c.all_reduce([array], Reduction("sum", site=site, algorithm="ring" if odd else "auto"))
        case "structure that is gathered":
            c.all_gather_arrays([array, array], 0, site=site, nesting="dict" if odd else "list")
        case "dtype that is gathered":
            c.all_gather_arrays([array, array.astype(np.int8 if odd else np.int16)], 0, site=site)
        case "other dimension":
            c.all_gather(array[: 1 if odd else 2], 1, site=site)
        case _:  # also "call site": the order of equal collectives
            c.all_reduce([array], Reduction("sum", site=site))


MISMATCHES = (
    "operation",
    "early barrier",
    "shape",
    "dtype",
    "reduction",
    "structure",
    "number of arrays",
    "root",
    "algorithm",
    "other dimension",
    "structure that is gathered",
    "dtype that is gathered",
    "call site",
)


def _leave_early(c: Communicator) -> None:
    c.begin(5)
    for _ in range(3):
        c.all_reduce([np.ones(4)], Reduction("sum", site="train.py:40"))
    if c.rank == c.size - 1:
        c.finish()
        return
    c.all_reduce([np.ones(4)], Reduction("sum", site="train.py:41"))


def _steps(c: Communicator) -> float:
    total = 0.0
    for step in range(200):
        c.begin(step)
        for _ in range(step % 3):
            total += float(c.all_reduce([np.float64(step)], Reduction("mean", site="loop.py:3"))[0])
        c.finish()
    return total


def _wait_unless_last(c: Communicator) -> str:
    c.begin(0)
    if c.rank == c.size - 1:
        wait_for_gate()
        return "stayed out"
    c.all_reduce([np.ones(9)], Reduction("sum", site="train.py:7"))
    return "finished"


def _late(c: Communicator) -> float:
    c.begin(0)
    if c.rank == c.size - 1:
        wait_for_gate()
    return float(c.all_reduce([np.ones(9)], Reduction("sum"))[0][0])


def _with_timeout(c: Communicator, op: str, late: list[int], impatient: int) -> None:
    c.begin(6)
    c.barrier()
    options = None
    if c.rank in late:
        wait_for_last_gate()
    elif c.rank == impatient:
        # Until the others are waiting, so that no other replica is late, however busy the machine is.
        wait_for_gate()
        # They report it a moment before their peers can see it; this is time enough for that.
        options = CommunicationOptions(timeout_seconds=0.2)
    if op == "all_reduce":
        c.all_reduce([np.ones(9)], Reduction("sum", site="train.py:7", options=options))
    elif op == "large all_reduce":
        c.all_reduce([np.ones(300_001)], Reduction("sum", site="train.py:7", options=options))
    elif op == "shared all_reduce":
        c.all_reduce([np.ones(9)], Reduction("sum", site="train.py:7", options=options, shared=True))
    else:
        c.broadcast(np.ones(9), 0, site="train.py:7", options=options)


def _raise_on_last(c: Communicator) -> None:
    c.begin(0)
    c.barrier()
    if c.rank == c.size - 1:
        raise KeyError("user code is broken")
    c.all_reduce([np.ones(9)], Reduction("sum"))


def _sum_of_ones(c: Communicator) -> float:
    c.begin(0)
    return float(c.all_reduce([np.ones(3)], Reduction("sum"))[0][0])


def _all_kinds(c: Communicator) -> tuple[list[Any], Any]:
    c.begin(4)
    c.all_reduce([np.ones((2, 2), np.float32)], Reduction("mean", site="a.py:1"))
    c.broadcast(np.ones(3), 0, site="a.py:2")
    with c.paused("merge_call", "a.py:3"):
        paused = c.status()
    c.barrier(site="a.py:4")
    c.finish()
    return c.flight(), paused


def _until_killed(c: Communicator, victim_first: bool) -> None:
    c.begin(0)
    if victim_first and c.rank < c.size - 1:
        wait_for_gate()
    for count in (1_000_000, 3, 1_000_000):
        c.all_reduce([np.ones(count, np.float32)], Reduction("sum"))


def _after_failure(c: Communicator) -> None:
    c.all_reduce([np.ones(3)], Reduction("sum"))


class AloneContract:
    """What holds for one replica alone, too; a subclass sets `layout`."""

    layout: ClassVar[Layout]

    @pytest.fixture
    def group(self, pool: Pool) -> Iterator[Group]:
        group = Group(self.layout, pool)
        yield group
        group.close()
        pool.give_back(group.processes)

    @pytest.mark.parametrize("op", OPS)
    def test_all_reduce_of_every_dtype_and_size(self, group: Group, op: str) -> None:
        assert group.run(_reduce_dtypes, op) == [[]] * group.size

    def test_all_reduce_of_odd_memory_layouts(self, group: Group) -> None:
        assert group.run(_reduce_layouts) == [[]] * group.size

    @pytest.mark.parametrize("algorithm", ALGORITHMS)
    @pytest.mark.parametrize(("packs", "bytes_per_pack"), [(None, 0), (None, 1000), (0, 0), (3, 0)])
    def test_algorithms_and_packs_do_not_change_results(
        self, group: Group, algorithm: str, packs: int | None, bytes_per_pack: int
    ) -> None:
        assert group.run(_reduce_ways, algorithm, packs, bytes_per_pack) == [[]] * group.size

    @pytest.mark.parametrize("count", [10, 20_000, 600_000])
    def test_results_are_owned(self, group: Group, count: int) -> None:
        assert group.run(_own_results, count) == [[]] * group.size

    @pytest.mark.parametrize("count", [10, 20_000, 100_000, 200_000, 600_000])
    def test_packs_in_quick_succession(self, group: Group, count: int) -> None:
        assert group.run(_repeated_packs, count) == [[]] * group.size

    @pytest.mark.parametrize("count", [10, 600_000])
    def test_shared_results_are_read_only_and_stay(self, group: Group, count: int) -> None:
        assert group.run(_shared_results, count) == [[]] * group.size

    @pytest.mark.parametrize("count", [10, 20_000, 600_000])
    def test_arrays_made_by_empty_are_read_in_place(self, group: Group, count: int) -> None:
        assert group.run(_in_place_inputs, count) == [[]] * group.size

    def test_reduce_scatter_splits_like_array_split(self, group: Group) -> None:
        assert group.run(_scatter) == [[]] * group.size

    def test_all_gather_concatenates_uneven_parts(self, group: Group) -> None:
        assert group.run(_gather) == [[]] * group.size

    def test_several_arrays_are_gathered_together(self, group: Group) -> None:
        assert group.run(_gather_several) == [[]] * group.size

    def test_parts_without_elements_fit_all_others(self, group: Group) -> None:
        assert group.run(_gather_nothing) == [[]] * group.size

    def test_broadcast_from_every_root(self, group: Group) -> None:
        assert group.run(_broadcast) == [[]] * group.size

    def test_reduce_to_every_root(self, group: Group) -> None:
        assert group.run(_reduce) == [[]] * group.size

    def test_float_results_are_reproducible(self, group: Group) -> None:
        """Equal on all replicas and from call to call. Orders are by rank within threads and within a host; partial
        sums of a process or host are combined as such, and a ring of 3 and more hosts starts each part elsewhere.
        """
        first, *others = group.run(_random_sums)
        assert all(other == first for other in others)

    def test_steps_with_and_without_collectives(self, group: Group) -> None:
        assert len(set(group.run(_steps))) == 1

    def test_nothing_is_left_after_close(self, group: Group, pool: Pool) -> None:
        files = pool.files()
        group.run(_sum_of_ones)
        group.close()
        before = group.all("resources")
        for _ in range(3):
            group.connect()
            group.run(_reduce)
            group.close()
        after = group.all("resources")
        assert after == before
        assert pool.files() == files

    def test_flight_recorder_status_and_telemetry(self, group: Group) -> None:
        outcomes = group.run(_all_kinds)
        for flights, paused in outcomes:
            assert [(f.step, f.seq, f.op, f.site, f.state) for f in flights] == [
                (4, 0, "all_reduce", "a.py:1", "ok"),
                (4, 1, "broadcast", "a.py:2", "ok"),
                (4, 2, "barrier", "a.py:4", "ok"),
            ]
            assert all(f.enter_ns <= f.start_ns <= f.end_ns for f in flights)
            assert paused == (4, 1, "merge_call", "paused", "a.py:3")
        for part in group.all("records"):
            for rank, records in part.items():
                assert [(r.step, r.seq, r.op, r.replica) for r in records] == [
                    (4, 0, "all_reduce", rank),
                    (4, 1, "broadcast", rank),
                    (4, 2, "barrier", rank),
                ]
                assert records[0].redop == "mean"
                assert records[0].bytes == 16


class CommunicatorContract(AloneContract):
    """What holds besides for more than one: a replica alone has nobody to disagree with or to wait for."""

    @pytest.mark.parametrize("what", MISMATCHES)
    def test_mismatch_shows_both_calls_to_everybody(self, group: Group, what: str) -> None:
        for outcome in group.outcomes(_mismatch, what):
            assert type(outcome) is CollectiveMismatch, outcome
            text = str(outcome)
            assert f"replica {group.size - 1}" in text
            assert "train.py:10" in text
            assert "train.py:20" in text
            assert "#2" in text
            assert outcome.step == 3

    @pytest.mark.parametrize("several", [False, True])
    def test_shapes_that_cannot_be_gathered_are_a_mismatch(self, group: Group, several: bool) -> None:
        first, last = (1 if group.size > 2 else 0), group.size - 1
        for outcome in group.outcomes(_gather_misfits, several):
            assert type(outcome) is CollectiveMismatch, outcome
            text = str(outcome)
            assert f"replica {first} {outcome.collective} " in text
            assert "float32[*,5] (train.py:10), replica " in text
            assert f"replica {last} {outcome.collective} " in text
            assert "float32[*,4] (train.py:10); they differ in dtype or shape. Every replica" in text
            assert outcome.collective.startswith("all_gather #")
            assert outcome.step == 3
        for outcome in group.outcomes(_after_failure):
            assert isinstance(outcome, (CollectiveMismatch, CollectiveAborted)), outcome

    def test_leaving_the_step_while_others_wait_is_a_mismatch(self, group: Group) -> None:
        *waiting, left = group.outcomes(_leave_early)
        assert left is None
        for outcome in waiting:
            assert type(outcome) is CollectiveMismatch, outcome
            assert "finished the step after 3 collectives" in str(outcome)
            assert "all_reduce #4" in str(outcome)
            assert "train.py:41" in str(outcome)

    @pytest.mark.parametrize("aborting", ["first", "last"])
    def test_abort_by_any_replica_wakes_all(self, group: Group, aborting: str) -> None:
        group.start(_wait_unless_last)
        group.until_waiting(range(group.size - 1))
        rank = 0 if aborting == "first" else group.size - 1
        group.process_of(rank)("abort", rank, ReplicaLost("worker 7 was killed by SIGKILL", replica=7))
        group.all("open_gate")
        *waiting, last = group.collect()
        assert last == "stayed out"
        for outcome in waiting:
            assert type(outcome) is CollectiveAborted, outcome
            assert "worker 7 was killed by SIGKILL" in str(outcome)
            assert outcome.replica == 7

    def test_first_abort_wins(self, group: Group) -> None:
        group.start(_wait_unless_last)
        group.until_waiting(range(group.size - 1))
        process = group.process_of(0)
        process("abort", 0, ReplicaLost("the first reason"))
        process("abort", 0, ReplicaLost("a later reason"))
        group.all("open_gate")
        assert all("the first reason" in str(outcome) for outcome in group.collect()[:-1])

    def test_an_exception_of_user_code_reaches_those_who_wait(self, group: Group) -> None:
        *waiting, last = group.outcomes(_raise_on_last)
        assert type(last) is KeyError
        for outcome in waiting:
            assert type(outcome) is CollectiveAborted
            assert "KeyError" in str(outcome)
            assert "user code is broken" in str(outcome)

    def test_a_late_replica_is_no_error(self, group: Group) -> None:
        group.start(_late)
        group.until_waiting(range(group.size - 1))
        group.all("open_gate")
        assert group.collect() == [float(group.size)] * group.size

    @pytest.mark.parametrize(
        ("op", "late", "impatient"),
        [
            ("all_reduce", "first", -1),
            ("all_reduce", "last", 0),
            ("large all_reduce", "second", -1),
            ("shared all_reduce", "all but one", 0),
            ("broadcast", "last", -1),
        ],
    )
    def test_timeout_names_who_is_missing_and_nobody_else(
        self, group: Group, op: str, late: str, impatient: int
    ) -> None:
        size = group.size
        missing = {
            "first": [0],
            "last": [size - 1],
            "second": [1],
            "all but one": [rank for rank in range(size) if rank != size // 2],
        }[late]
        waiting = [rank for rank in range(size) if rank not in missing]
        last = waiting[impatient]
        group.start(_with_timeout, op, missing, last)
        group.until_waiting([rank for rank in waiting if rank != last], "#2")
        group.all("open_gate")
        # The replicas of its host learn of it before the late ones have come; with them, they could still finish.
        members = group.topology.members
        group.until_ended([rank for rank in waiting if members[rank].host == members[last].host])
        group.all("open_last_gate")
        outcomes = group.collect()
        names = "replica" if len(missing) == 1 else "replicas"
        listed = " and ".join(filter(None, [", ".join(map(str, missing[:-1])), str(missing[-1])]))
        names += f" {listed}, which {'has' if len(missing) == 1 else 'have'} not come"
        for outcome in outcomes:
            assert type(outcome) is DeadlineExceededError, outcomes
            text = str(outcome)
            assert text.startswith(op.rpartition(" ")[2] + " #2 ")
            assert "(train.py:7)" in text
            assert re.search(r"exceeded its timeout of 0\.2 s: after [0-9.e+-]+ s waiting for", text), text
            assert f"waiting for {names} to it. Look at what" in text
            assert "CommunicationOptions.timeout_seconds" in text
            assert (outcome.replica, outcome.step) == (missing[0], 6)
            assert outcome.collective.endswith(" #2")

    @pytest.mark.parametrize("what", ["mismatch", "abort"])
    def test_the_same_processes_can_connect_again_after_a_failure(self, group: Group, what: str) -> None:
        if what == "mismatch":
            group.outcomes(_mismatch, "shape")
        else:
            group.outcomes(_raise_on_last)
        for outcome in group.outcomes(_after_failure):
            assert isinstance(outcome, (CollectiveMismatch, CollectiveAborted)), outcome
        group.close()
        group.connect()
        assert group.run(_sum_of_ones) == [float(group.size)] * group.size

    def test_closing_wakes_those_who_wait(self, group: Group) -> None:
        group.start(_wait_unless_last)
        group.until_waiting(range(group.size - 1))
        group.process_of(group.size - 1)("close_rank", group.size - 1)
        group.all("open_gate")
        assert all(type(outcome) is StaleGeneration for outcome in group.collect()[:-1])


class AcrossProcesses(CommunicatorContract):
    """What holds besides when replicas are in several processes."""

    def test_sigkill_of_a_process_wakes_those_who_wait(self, group: Group) -> None:
        group.start(_wait_unless_last)
        group.until_waiting(range(group.size - 1))
        group.process_of(group.size - 1).kill()
        outcomes = group.collect()
        assert outcomes
        for outcome in outcomes:
            assert isinstance(outcome, (ReplicaLost, CollectiveAborted)), outcome

    def test_sigkill_leaves_no_shared_memory(self, group: Group, pool: Pool) -> None:
        files = pool.files()
        group.run(_in_place_inputs, 100_000)
        for process in group.processes:
            process.kill()
        assert pool.files() == files

    @pytest.mark.parametrize("point", ["enter", "waiting", "after_send"])
    def test_sigkill_at_every_point_of_a_collective(
        self, point: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        victim = self.layout.topology.size - 1
        rule = {"point": f"all_reduce.{point}", "replica": victim, "action": "kill"}
        monkeypatch.setenv("WB_FAULTS", json.dumps([rule]))
        pool = Pool()  # its processes read the variable when they start
        group = Group(self.layout, pool)
        group.start(_until_killed, point == "waiting")
        group.process_of(victim).await_end()
        group.all("open_gate")
        for outcome in group.collect():
            assert isinstance(outcome, (ReplicaLost, CollectiveAborted)), outcome
        group.close()
        pool.give_back(group.processes)
        pool.close()
