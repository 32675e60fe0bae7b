"""The assertions of wb.debugging: numbers, shapes, dtypes; in the notebook and in replica functions."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import workbench as wb
from workbench.debugging.operands import dtype_of, is_plain, shape_of
from workbench.errors import InvalidArgumentError

INT32 = np.array([1, 2, 3], np.int32)


@pytest.fixture(scope="module")
def strategy() -> Iterator[Any]:
    """Two replicas, as threads."""
    with wb.connect(replicas=2, processes=False):
        yield wb.MirroredStrategy()


def _rank() -> int:
    return int(wb.distribute.get_replica_context().replica_id_in_sync_group)


@pytest.mark.parametrize(
    ("check", "passes", "fails"),
    [
        (
            wb.debugging.assert_equal,
            [(INT32, INT32), (2, 2), ("a", b"a"), (np.array([True]), True)],
            [(1, 2)],
        ),
        (wb.debugging.assert_none_equal, [(INT32, 4), ("a", "b")], [(INT32, 2)]),
        (wb.debugging.assert_less, [(INT32, 4), (1.0, np.float32(2))], [(INT32, 3), (np.nan, 1.0)]),
        (wb.debugging.assert_less_equal, [(INT32, 3)], [(INT32, 2), (np.nan, np.nan)]),
        (wb.debugging.assert_greater, [(INT32, 0)], [(INT32, 1)]),
        (wb.debugging.assert_greater_equal, [(INT32, [1, 2, 3])], [(INT32, [[2], [1]])]),
        (wb.debugging.assert_positive, [(INT32,), ([],), (1.5,)], [(0,), (np.array([1, np.nan]),)]),
        (wb.debugging.assert_negative, [(-INT32,)], [(0.0,)]),
        (wb.debugging.assert_non_negative, [(INT32,), (-0.0,), (0,)], [(np.nan,), ([1, -1],)]),
        (wb.debugging.assert_non_positive, [(-INT32,), (-0.0,), (0,)], [(np.nan,), ([1, -1],)]),
        (wb.debugging.assert_near, [(1.0, 1.000001), (0.0, 0.0)], [(1.0, 1.1), (np.inf, np.inf)]),
        (wb.debugging.assert_rank, [(INT32, 1), (3, 0)], [(INT32, 2)]),
        (wb.debugging.assert_rank_at_least, [(INT32, 0), (INT32, 1)], [(INT32, 2)]),
        (wb.debugging.assert_rank_in, [(INT32, (1, 2))], [(INT32, (0, 2))]),
        (wb.debugging.assert_scalar, [(3,), (np.float32(1),)], [(INT32,), ([],)]),
    ],
)
def test_an_assertion_passes_or_raises(
    check: Callable[..., None], passes: list[tuple[Any, ...]], fails: list[tuple[Any, ...]]
) -> None:
    for operands in passes:
        assert check(*operands) is None
    for operands in filter(None, fails):
        with pytest.raises(InvalidArgumentError, match=f"^hint: {check.__name__}: "):
            check(*operands, message="hint")


def test_an_error_says_where_and_shows_the_first_elements_of_both() -> None:
    x, y = np.array([[1, 2], [3, 4]], np.int32), np.array([[2, 2], [5, 5]], np.int32)

    with pytest.raises(InvalidArgumentError) as raised:
        wb.debugging.assert_less(x, y)
    assert str(raised.value) == (
        "assert_less: x < y does not hold at 1 of 4 elements, the first at [0, 1]: x = 2, y = 2 "
        "(x int32[2,2] = [1, 2, 3, …]; y int32[2,2] = [2, 2, 5, …])"
    )
    with pytest.raises(InvalidArgumentError, match=r"x int32\[2,2\] = \[1, …\]"):
        wb.debugging.assert_less(x, y, summarize=1)
    with pytest.raises(InvalidArgumentError, match=r"y int32\[2,2\] = \[2, 2, 5, 5\]"):
        wb.debugging.assert_less(x, y, summarize=-1)


def test_summarize_stands_before_message_in_assert_none_equal() -> None:
    with pytest.raises(InvalidArgumentError, match=r"^hint: .*x int32\[3\] = \[1, …\]"):
        wb.debugging.assert_none_equal(INT32, INT32, 1, "hint")


def test_a_python_number_takes_the_dtype_of_the_other_operand_if_it_fits() -> None:
    wb.debugging.assert_equal(np.array([2], np.int64), 2)
    wb.debugging.assert_equal(2, np.array([2], np.uint8))
    wb.debugging.assert_less([1, 2], np.array([1.5, 2.5], np.float32))
    wb.debugging.assert_equal(np.array([1], ml_dtypes.bfloat16), 1.0)
    with pytest.raises(InvalidArgumentError, match="300 does not fit the dtype of the other operand, uint8"):
        wb.debugging.assert_equal(np.array([2], np.uint8), 300)
    with pytest.raises(InvalidArgumentError, match="300 does not fit the dtype of the other operand, int4"):
        wb.debugging.assert_equal(np.array([-4]).astype(ml_dtypes.int4), 300)
    with pytest.raises(
        InvalidArgumentError, match=r"1\.5 does not fit the dtype of the other operand, int32"
    ):
        wb.debugging.assert_equal(INT32, 1.5)
    with pytest.raises(InvalidArgumentError, match="one dtype, got int32 and float64"):
        wb.debugging.assert_equal(INT32, np.ones(3))


@pytest.mark.parametrize("scalar", [np.float32(2), np.array(2, np.float32)])
def test_arrays_without_dimensions_are_scalars(scalar: Any) -> None:
    wb.debugging.assert_equal(scalar, 2)
    wb.debugging.assert_near(scalar, 2.0)
    wb.debugging.assert_positive(scalar)
    for fails in (
        lambda: wb.debugging.assert_equal(scalar, 3),
        lambda: wb.debugging.assert_near(scalar, 2.1),
        lambda: wb.debugging.assert_negative(scalar),
        lambda: wb.debugging.assert_equal(scalar, np.array(2, np.float64)),
    ):
        with pytest.raises(InvalidArgumentError):
            fails()
    with pytest.raises(TypeError, match="takes numbers or texts"):
        wb.debugging.assert_equal(np.array(2, object), 2)


def test_shapes_that_cannot_be_broadcast_are_refused() -> None:
    for check in (wb.debugging.assert_equal, wb.debugging.assert_less):
        with pytest.raises(InvalidArgumentError, match=r"shapes \(3,\) and \(2,\) cannot be broadcast"):
            check(INT32, INT32[:2])
    with pytest.raises(InvalidArgumentError, match="cannot be broadcast"):
        wb.debugging.assert_near(np.ones(3), np.ones(2))


def test_what_has_no_order_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="numbers with an order, got complex128"):
        wb.debugging.assert_less(np.array([1j]), np.array([2j]))
    with pytest.raises(InvalidArgumentError, match="assert_positive takes real numbers, got complex128"):
        wb.debugging.assert_positive(np.array([1j]))
    with pytest.raises(TypeError, match="assert_positive takes real numbers, got string"):
        wb.debugging.assert_positive("a")
    with pytest.raises(TypeError, match="takes numbers or texts, got object"):
        wb.debugging.assert_equal([object()], [object()])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_the_default_tolerance_is_ten_epsilon_of_the_dtype(dtype: Any) -> None:
    one = np.ones((), dtype)
    epsilon = np.asarray(ml_dtypes.finfo(dtype).eps, dtype)

    for spread in (one.reshape(1), one[()]):
        wb.debugging.assert_near(spread + 5 * epsilon, spread)
        with pytest.raises(InvalidArgumentError):
            wb.debugging.assert_near(spread + 40 * epsilon, spread)


def test_tolerances_are_relative_to_y_and_exclude_the_bound() -> None:
    wb.debugging.assert_near(np.float32(100), np.float32(101), rtol=0.01, atol=0.0)
    with pytest.raises(InvalidArgumentError, match=r"\|x - y\| < 0.5 \+ 0.0 \* \|y\| does not hold"):
        wb.debugging.assert_near(np.float32(1), np.float32(1.5), rtol=0.0, atol=0.5)
    with pytest.raises(InvalidArgumentError, match="compares floating and complex numbers, got int32"):
        wb.debugging.assert_near(INT32, INT32)


def test_symbols_stand_for_one_size_in_all_shapes() -> None:
    x, y = np.zeros((4, 3)), np.zeros(4)

    wb.debugging.assert_shapes(
        [(x, ("N", "Q")), (y, "N"), (1.0, ()), (x, (..., 3)), (y, ("*", "N")), (y, ("4",))]
    )
    wb.debugging.assert_shapes([(x, (None, ".")), (y, (4,)), (np.zeros(1), ())])
    for size in (np.int64(3), np.int32(3), np.uint8(3)):
        wb.debugging.assert_shapes([(np.zeros((3, 2)), (size, "N"))])
    for shape, says in (
        (("Q",), r"array 1 has shape \(4,\), where 'Q' is 4; it is 3 in array 0"),
        ((5,), "expected a size of 5 where it has 4"),
        (("N", "M"), "expected 2 dimensions"),
        (("*", "N", "M"), "expected 2 dimensions or more"),
    ):
        with pytest.raises(InvalidArgumentError, match=f"^inputs: assert_shapes: .*{says}"):
            wb.debugging.assert_shapes([(x, ("N", "Q")), (y, shape)], message="inputs")
    with pytest.raises(InvalidArgumentError, match="stand only first"):
        wb.debugging.assert_shapes([(x, ("N", ..., "Q"))])
    with pytest.raises(InvalidArgumentError, match="a shape is a tuple, got 4"):
        wb.debugging.assert_shapes([(y, 4)])


@pytest.mark.parametrize("leading", [..., "*"])
def test_leading_dimensions_alone_leave_a_last_one_of_size_1(leading: Any) -> None:
    wb.debugging.assert_shapes([(np.zeros((4, 3, 1)), (leading,)), (1.0, (leading,)), (1.0, (leading, "N"))])
    with pytest.raises(InvalidArgumentError, match="expected a size of 1 where it has 3"):
        wb.debugging.assert_shapes([(np.zeros((4, 3)), (leading,))])


def test_no_shape_is_any_shape() -> None:
    wb.debugging.assert_shapes([(np.zeros((4, 3)), None), (INT32, (3,))])


@pytest.mark.parametrize("rank", [1.0, np.float32(1), True, "1"])
def test_a_rank_is_a_whole_number(rank: Any) -> None:
    for check in (wb.debugging.assert_rank, wb.debugging.assert_rank_at_least):
        with pytest.raises(TypeError, match="a rank is a whole number"):
            check(INT32, rank)
    with pytest.raises(TypeError, match="a rank is a whole number"):
        wb.debugging.assert_rank_in(INT32, [rank])
    wb.debugging.assert_rank(INT32, np.int64(1))


def test_none_is_no_array() -> None:
    for check in (wb.debugging.assert_scalar, wb.debugging.assert_integer, wb.debugging.assert_positive):
        with pytest.raises(InvalidArgumentError, match="got None"):
            check(None)
    with pytest.raises(InvalidArgumentError, match="a rank is one whole number, got None"):
        wb.debugging.assert_rank(INT32, None)
    wb.debugging.assert_equal(None, None)
    for x, y in ((None, 1), (INT32, None)):
        with pytest.raises(InvalidArgumentError, match="got None"):
            wb.debugging.assert_equal(x, y)
    with pytest.raises(InvalidArgumentError, match="got None"):
        wb.debugging.assert_less_equal(None, None)


def test_a_value_that_is_not_a_number_does_not_equal_itself() -> None:
    loss = np.array([1.0, np.nan])
    with pytest.raises(InvalidArgumentError, match="does not hold at 1 of 2"):
        wb.debugging.assert_equal(loss, loss)


def test_any_message_begins_the_error() -> None:
    for message, begins in (
        (5, "5: assert"),
        (np.array([1, 2]), r"\[1 2\]: assert"),
        ("", "assert"),
        (None, "assert"),
    ):
        with pytest.raises(InvalidArgumentError, match=f"^{begins}"):
            wb.debugging.assert_equal(1, 2, message)  # type: ignore[arg-type]


def test_an_error_about_shapes_shows_the_data_that_was_given() -> None:
    with pytest.raises(InvalidArgumentError, match=r"\(array 0 int32\[3\] = \[1, …\]\)$"):
        wb.debugging.assert_shapes([(INT32, (4,))], summarize=1)
    with pytest.raises(InvalidArgumentError, match=r"\(step; data float64 = 0.5\)$"):
        wb.debugging.assert_shapes([(INT32, (4,))], data=["step", 0.5])


def test_types() -> None:
    wb.debugging.assert_integer(INT32)
    wb.debugging.assert_type(INT32, np.int32)
    wb.debugging.assert_type(1, np.int32)
    wb.debugging.assert_type(1.0, float)
    wb.debugging.assert_type("a", "string")
    wb.debugging.assert_type(np.array(["a"]), str)
    wb.debugging.assert_proper_iterable({"a": 1})
    wb.debugging.assert_proper_iterable(iter([]))
    assert wb.debugging.assert_same_float_dtype() == np.float32
    assert wb.debugging.assert_same_float_dtype([None, np.ones(2)]) == np.float64
    assert wb.debugging.assert_same_float_dtype(np.ones((2, 3), np.float16)) == np.float16
    assert wb.debugging.assert_same_float_dtype(np.zeros(0)) == np.float32
    assert wb.debugging.assert_same_float_dtype([np.zeros(1, ml_dtypes.bfloat16)]) == ml_dtypes.bfloat16
    assert wb.debugging.is_numeric_tensor(np.zeros(1, ml_dtypes.bfloat16))
    assert not wb.debugging.is_numeric_tensor(np.array([True]))
    assert not wb.debugging.is_numeric_tensor(1.0)
    with pytest.raises(TypeError, match=r"^hint: assert_integer: expected an integer dtype, got bool"):
        wb.debugging.assert_integer(True, message="hint")
    with pytest.raises(TypeError, match="expected dtype int64, got int32"):
        wb.debugging.assert_type(INT32, np.int64)
    with pytest.raises(TypeError, match=r"got ndarray; write \[value\]"):
        wb.debugging.assert_proper_iterable(INT32)
    with pytest.raises(ValueError, match="array 1 has dtype float32, expected float64"):
        wb.debugging.assert_same_float_dtype([np.ones(1), np.float32(1)])


class Share(float):
    """A number of a type derived from Python's."""


class Level(enum.IntEnum):
    HIGH = 1


@pytest.mark.parametrize(
    "value", [range(3), [1, 2], [0.5, 1.5], [[True], [False]], [np.float64(1)], ["a", "b"]]
)
def test_lists_of_numbers_are_not_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch, value: Any) -> None:
    monkeypatch.setattr("workbench.debugging.operands._leaves", None)
    assert shape_of(value) == np.shape(value)
    if value != [np.float64(1)]:
        assert is_plain(value)
    dtype_of(value)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (2**31 - 1, np.int32),
        (2**31, np.int64),
        ([1, 2**40], np.int64),
        ([1, 2.5], np.float32),
        ([True, 1], np.int32),
        ([], np.float32),
        (range(3), np.int32),
        (range(0), np.int32),
        (range(2**40, 0, -1), np.int64),
        ([range(2), [1, 2**40]], np.int64),
        ([np.float64(1)], np.float64),
        ([np.int8(1), np.int8(2)], np.int8),
        ([np.float64(1), 1], np.float64),
        (Share(0.5), np.float32),
        ([Share(0.5), 1], np.float32),
        ([Share(0.5), 1.0], np.float32),
        ([Level.HIGH, 2], np.int32),
    ],
)
def test_python_numbers_and_lists_have_the_dtype_that_holds_them(value: Any, dtype: Any) -> None:
    wb.debugging.assert_type(value, dtype)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (2**63, "9223372036854775808 does not fit 64 bits"),
        ([1, 2**63], "9223372036854775808 does not fit 64 bits"),
        ([-(2**63) - 1, 0.5], "-9223372036854775809 does not fit 64 bits"),
        ([[1], [2, 3]], "the rows of [[1], [2, 3]] differ in length, so it is not an array"),
        ([["a"], ["b", "c"]], "the rows of [['a'], ['b', 'c']] differ in length, so it is not an array"),
    ],
)
def test_what_no_array_can_hold_has_no_dtype(value: Any, told: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"^{re.escape(told)}$"):
        wb.debugging.assert_type(value, np.int32)


def test_what_is_no_dtype_or_no_array_is_refused() -> None:
    with pytest.raises(TypeError, match="a dtype is missing"):
        wb.debugging.assert_type(np.ones(1), None)
    with pytest.raises(TypeError, match="expected an array of numbers, got"):
        wb.debugging.assert_rank(np.dtype(np.int32), 0)


def test_texts_are_compared_as_they_are() -> None:
    with pytest.raises(TypeError, match="takes numbers or texts, got int"):
        wb.debugging.assert_equal(["a", 1], ["a", "1"])
    with pytest.raises(InvalidArgumentError, match="x == y does not hold"):
        wb.debugging.assert_equal("a\0", "a")
    wb.debugging.assert_equal(["ä", b"\xff"], ["ä".encode(), b"\xff"])


@pytest.mark.parametrize("check", [wb.debugging.check_numerics, wb.debugging.assert_all_finite])
def test_a_list_that_is_finite_comes_back_as_an_array(check: Any) -> None:
    assert (2 * check([1.0, 2.0], "loss")).tolist() == [2.0, 4.0]
    assert check([1.0], "loss").dtype == np.float32


def test_assert_shows_its_data() -> None:
    wb.debugging.Assert(True, [])
    wb.debugging.Assert([True], None)
    with pytest.raises(InvalidArgumentError, match=r"^assertion failed: why$"):
        wb.debugging.Assert([False], "why")
    with pytest.raises(
        InvalidArgumentError, match=r"^assertion failed: why; data 1 int32\[3\] = \[1, 2, …\]$"
    ):
        wb.debugging.Assert(False, ["why", INT32], summarize=2)
    with pytest.raises(
        InvalidArgumentError, match=r"takes one bool, got shape \(2,\): use .all\(\) or .any\(\)"
    ):
        wb.debugging.Assert([True, False], [])


def test_assert_all_finite_gives_back_what_it_was_given(strategy: Any) -> None:
    array = np.ones(3)
    assert wb.debugging.assert_all_finite(array, "loss") is array
    losses = strategy.run(lambda: np.float32(np.nan if _rank() else 1))
    with pytest.raises(InvalidArgumentError, match="on replica 1 of 2: loss: 1 NaN"):
        wb.debugging.assert_all_finite(losses, "loss")


def test_values_with_a_component_per_replica_are_checked_replica_by_replica(strategy: Any) -> None:
    ranks = strategy.run(lambda: np.int32(_rank()))
    sizes = strategy.run(lambda: np.zeros(2 + _rank()))

    wb.debugging.assert_less(ranks, 2)
    wb.debugging.assert_less(ranks, strategy.run(lambda: np.int32(_rank() + 1)))
    with pytest.raises(
        InvalidArgumentError, match="on replica 1 of 2: assert_less: x < y does not hold: x = 1"
    ):
        wb.debugging.assert_less(ranks, 1)
    with pytest.raises(InvalidArgumentError, match=r"on replica 1 of 2: .*array 0 has shape \(3,\)"):
        wb.debugging.assert_shapes([(sizes, (2,))])
    with pytest.raises(TypeError, match="on replica 0 of 2: assert_integer"):
        wb.debugging.assert_integer(sizes)
    with pytest.raises(InvalidArgumentError, match="on replica 1 of 2: assertion failed: data 0 int32 = 1"):
        wb.debugging.Assert(strategy.run(lambda: _rank() == 0), [ranks])


def test_a_replica_function_fails_on_the_replica_that_asserts(strategy: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="assert_equal: x == y does not hold: x = 1") as raised:
        strategy.run(lambda: wb.debugging.assert_equal(np.int32(_rank()), 0))
    assert "replica 1" in "".join(raised.value.__notes__)


def test_variables_are_read_as_arrays(strategy: Any) -> None:
    with strategy.scope():
        weights = wb.Variable(np.ones((3, 2), np.float32), name="weights")

    def step() -> None:
        wb.debugging.assert_positive(weights)
        wb.debugging.assert_rank(weights, 2)

    strategy.run(step)
    wb.debugging.assert_shapes([(weights, ("N", 2))])
    wb.debugging.assert_type(weights, np.float32)
    with pytest.raises(InvalidArgumentError, match="assert_negative: x < y does not hold at 6 of 6"):
        wb.debugging.assert_negative(weights)


@pytest.mark.parametrize("value", [{"a": 1}, iter([1]), object()])
def test_what_is_no_array_is_no_scalar_either(value: Any) -> None:
    with pytest.raises(TypeError, match="expected an array of numbers, got"):
        wb.debugging.assert_scalar(value)


def test_lists_of_several_lengths_are_no_array() -> None:
    for check in (
        lambda: wb.debugging.assert_scalar([[1], [1, 2]]),
        lambda: wb.debugging.assert_equal([[1], [1, 2]], 1),
    ):
        with pytest.raises(InvalidArgumentError, match=r"the rows of \[\[1\], \[1, 2\]\] differ in length"):
            check()


def test_a_tolerance_that_is_no_number_is_refused() -> None:
    with pytest.raises(TypeError, match="assert_near: atol must be a number, got 'x'"):
        wb.debugging.assert_near(np.array([1.0]), np.array([1.1]), atol="x")
