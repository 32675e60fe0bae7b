"""Many small leaves travel as rows of arrays, and come out as they were."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from tests.runtime.conftest import Run
from workbench.runtime.comm.messages import PickledLeaf, RemoteLeaf
from workbench.runtime.comm.result_leaves import PackedLeaves, packed, unpacked
from workbench.runtime.replica.env import ReplicaEnv

COUNT = 200


def _travelled(leaves: list[Any]) -> tuple[list[Any] | PackedLeaves, list[Any]]:
    sent = packed(leaves)
    return sent, unpacked(pickle.loads(pickle.dumps(sent)))


@pytest.mark.parametrize("shape", [(), (0,), (3,), (3, 0), (2, 1, 3)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex64"])
def test_arrays_that_are_alike_come_out_as_they_were(dtype: str, shape: tuple[int, ...]) -> None:
    leaves = [np.full(shape, number % 2 or number, dtype) for number in range(COUNT)]
    sent, got = _travelled(leaves)
    assert isinstance(sent, PackedLeaves)
    assert [len(numbers) for numbers, _, _ in sent.rows] == [COUNT]
    for leaf, (one,) in zip(leaves, got, strict=True):
        assert (type(one), one.dtype, one.shape) == (np.ndarray, leaf.dtype, leaf.shape)
        np.testing.assert_array_equal(one, leaf)


def test_each_has_memory_of_its_own() -> None:
    _, got = _travelled([np.zeros(2) for _ in range(COUNT)])
    got[0][0][:] = 7
    assert all(one.flags.writeable and one.base is None for (one,) in got)
    assert all(one.tolist() == [0, 0] for (one,) in got[1:])


def test_scalars_of_numpy_stay_scalars_and_what_is_different_travels_alone() -> None:
    large = np.zeros(10_000)
    odd: list[Any] = [
        1,
        2.5,
        "text",
        None,
        large,
        np.ones((2, 3)).T,
    ]
    leaves = [np.float32(n) for n in range(COUNT)] + odd + [np.int8(n % 100) for n in range(COUNT)]
    _, got = _travelled(leaves)
    assert [type(one) for (one,) in got[:COUNT]] == [np.float32] * COUNT
    assert [one for (one,) in got[-COUNT:]] == leaves[-COUNT:]
    alone = got[COUNT:-COUNT]
    assert [one[0] for one in alone[:4]] == odd[:4]
    assert type(alone[4]) is RemoteLeaf
    assert alone[5][0].flags.f_contiguous


ALONE: list[Any] = [
    *(np.ones((2, 3), dtype) for dtype in ("?", "i1", "u8", "f2", "f4", "f8", "c8", "c16")),
    *(np.dtype(dtype).type(1) for dtype in ("?", "i1", "u8", "f2", "f4", "f8", "c8", "c16")),
    np.datetime64("2020-01-01", "s"),
    np.zeros(()),
    np.zeros((0, 3), np.int16),
    np.arange(6).reshape(2, 3).T,
    np.arange(10)[::2],
    np.ones(3, ">f4"),
    np.array(["2020-01-01"], "M8[D]"),
    np.array(["ab", "c"]),
    np.array([(1, 2.0)], [("a", "i4"), ("b", "f8")]),
    np.nan,
    True,
    None,
    "text",
    b"bytes",
]


@pytest.mark.parametrize(
    "leaf", ALONE, ids=lambda leaf: f"{type(leaf).__name__} {getattr(leaf, 'dtype', '')}"
)
def test_a_leaf_that_travels_alone_comes_out_as_it_was(leaf: Any) -> None:
    sent, (got,) = _travelled([leaf])
    assert type(sent) is list
    value = pickle.loads(got.data) if type(got) is PickledLeaf else got[0]
    assert type(value) is type(leaf)
    if isinstance(leaf, np.ndarray | np.generic):
        assert (value.dtype, value.shape) == (leaf.dtype, leaf.shape)
        assert value.flags.f_contiguous == _close(leaf).flags.f_contiguous
        assert value.tobytes() == leaf.tobytes()
    else:
        assert value == leaf or (value != value and leaf != leaf)
    if type(leaf) is np.ndarray and type(got) is tuple:
        assert value.flags.writeable
        assert value.flags.owndata


def _close(leaf: Any) -> Any:
    """As pickle leaves an array: with contiguous elements, in their order."""
    return pickle.loads(pickle.dumps(leaf))


def test_results_of_many_leaves_arrive_and_can_be_passed_on(run_any: Run) -> None:
    def many(env: ReplicaEnv) -> Any:
        return {"arrays": [np.full(2, env.rank + n) for n in range(COUNT)], "large": np.full(5000, env.rank)}

    handles = run_any(many)
    assert [handles["arrays"][n].values()[1].tolist() for n in (0, COUNT - 1)] == [[1, 1], [COUNT, COUNT]]
    assert handles["large"].values()[1][0] == 1
    total = run_any(lambda env, arrays: int(sum(array.sum() for array in arrays)), handles["arrays"])
    assert total.values() == [COUNT * (COUNT - 1), COUNT * (COUNT + 1)]
