"""check_numerics, and steps that check what they compute."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import workbench as wb
from tests.server.summaries import summary
from workbench import debugging
from workbench.debugging import numerics
from workbench.errors import InvalidArgumentError, NotFinite


@pytest.fixture(scope="module", params=["threads", "processes"])
def strategy(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Two replicas on each kind of cluster."""
    with wb.connect(replicas=2, processes=request.param == "processes"):
        yield wb.MirroredStrategy()


@pytest.fixture
def enabled() -> Iterator[None]:
    """Steps check what they compute."""
    debugging.enable_check_numerics()
    yield
    debugging.disable_check_numerics()


def _bad_on_replica_1() -> np.ndarray:
    rank = wb.distribute.get_replica_context().replica_id_in_sync_group
    return np.array([1.0, np.nan if rank == 1 else 2.0, 3.0], np.float32)


def test_a_finite_array_comes_back_and_others_are_counted() -> None:
    array = np.ones(3, np.float32)
    assert debugging.check_numerics(array, "gradient") is array
    found = r"^gradient: 1 NaN and 2 infinite of 4 elements of float64\[2,2\], the first at \[0, 1\]"
    with pytest.raises(InvalidArgumentError, match=found):
        debugging.check_numerics(np.array([[1, np.inf], [np.nan, -np.inf]]), "gradient")
    for other, dtype in ((np.arange(3), "int64"), (3, "int32"), (True, "bool"), ("a", "string")):
        with pytest.raises(InvalidArgumentError, match=f"floating dtypes, got {dtype}"):
            debugging.check_numerics(other, "gradient")


@pytest.mark.parametrize("check", [debugging.check_numerics, debugging.assert_all_finite])
def test_a_float_of_python_comes_back_as_an_array(check: Any) -> None:
    found = check(3.0, "loss")
    assert (found, found.dtype, found.shape) == (3, np.float32, ())
    for bad in (1e300, math.inf, math.nan):
        with pytest.raises(NotFinite, match=r"^loss: .* of 1 elements of float32\[\]"):
            check(bad, "loss")


@pytest.mark.parametrize("check", [debugging.check_numerics, debugging.assert_all_finite])
def test_the_message_is_no_other_argument(check: Any) -> None:
    for missing in (None, 3, np.ones(2)):
        with pytest.raises(TypeError, match="takes a text as its second argument"):
            check(np.ones(2), missing)


@pytest.mark.parametrize("number", [np.float16(3), np.float64(3), np.longdouble("1e4000"), np.array(3.0)])
@pytest.mark.parametrize("check", [debugging.check_numerics, debugging.assert_all_finite])
def test_a_finite_number_comes_back_and_another_is_named(check: Any, number: Any) -> None:
    assert check(number, "loss") is number
    for bad in (number * np.nan, number * np.inf):
        with pytest.raises(NotFinite, match=r"^loss: .* of 1 elements of float\d+\[\]"):
            check(bad, "loss")


@pytest.mark.parametrize("check", [debugging.check_numerics, debugging.assert_all_finite])
def test_a_list_is_checked_as_the_array_that_comes_back(check: Any) -> None:
    found = check([[1.0, 2.5]], "loss")
    assert (found.dtype, found.tolist()) == (np.float32, [[1.0, 2.5]])
    with pytest.raises(NotFinite, match=r"^loss: 0 NaN and 1 infinite of 2 elements of float32\[2\]"):
        check([1.0, 1e300], "loss")  # more than float32 can hold
    with pytest.raises(InvalidArgumentError, match=r"^loss: .* floating dtypes, got int32"):
        check([1, 2], "loss")
    with pytest.raises(InvalidArgumentError, match=r"^loss: .* floating dtypes, got string"):
        check(["a"], "loss")


@pytest.mark.parametrize("dtype", [np.float16, np.complex64, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_values_of_every_dtype_that_can_hold_nan_are_checked(dtype: Any) -> None:
    with (
        numerics.checking("on replica 1"),
        pytest.raises(NotFinite, match=r"^w is not finite on replica 1: 1 NaN"),
    ):
        numerics.check(np.array([1.0, np.nan]).astype(dtype), "w")


@pytest.mark.parametrize("dtype", [ml_dtypes.int4, np.int8, np.bool_])
def test_integers_are_finite(dtype: Any) -> None:
    value = np.array([1, 0]).astype(dtype)
    with numerics.checking("on replica 1"):
        assert numerics.check(value, "w") is value


@pytest.mark.usefixtures("enabled")
def test_an_assignment_names_variable_replica_and_step(strategy: Any) -> None:
    with strategy.scope():
        weights = wb.Variable(np.zeros(3, np.float32), name="weights")
    found = r"assign_sub of variable 'weights:0' is not finite on replica 1 at step \d+: 1 NaN"
    with pytest.raises(InvalidArgumentError, match=found):
        strategy.run(lambda: weights.assign_sub(_bad_on_replica_1()))
    assert np.asarray(weights).tolist() == [0, 0, 0]


@pytest.mark.usefixtures("enabled")
def test_what_is_not_finite_is_an_alert_in_the_log_once(strategy: Any) -> None:
    cluster = strategy.group.gang.cluster
    before = len(cluster.feed.snapshot().events)
    step = wb.function(_bad_on_replica_1)

    def three_at_once() -> None:
        results = [strategy.run(step) for _ in range(3)]
        strategy.local_results(results[-1])

    with pytest.raises(NotFinite):
        three_at_once()

    events = cluster.feed.snapshot().events[before:]
    (told,) = [event for event in events if event.kind == "alert"]
    assert (told.kind, told.name, told.severity, told.replica) == ("alert", "nan", "error", 1)
    assert "the replica function returned is not finite on replica 1" in told.message
    assert summary(cluster).nan >= 1


@pytest.mark.usefixtures("enabled")
def test_what_is_reduced_names_the_call_site_and_what_is_returned_the_replica(strategy: Any) -> None:
    def reduced() -> Any:
        return wb.distribute.get_replica_context().all_reduce("sum", {"g": _bad_on_replica_1()})

    with pytest.raises(
        InvalidArgumentError, match=r"all_reduce at test_numerics\.py:\d+ .*replica 1 at step"
    ):
        strategy.run(reduced)
    with pytest.raises(
        InvalidArgumentError, match="the replica function returned is not finite on replica 1"
    ):
        strategy.run(_bad_on_replica_1)
    assert strategy.run(lambda: ("text", None, 3, np.ones(2))) is not None


def test_functions_that_ran_before_are_checked_once_it_is_enabled(strategy: Any) -> None:
    step = wb.function(_bad_on_replica_1)
    assert np.isnan(strategy.local_results(strategy.run(step))[1][1])
    debugging.enable_check_numerics()
    try:
        with pytest.raises(InvalidArgumentError, match="replica 1"):
            strategy.local_results(strategy.run(step))
    finally:
        debugging.disable_check_numerics()
    assert np.isnan(strategy.local_results(strategy.run(step))[1][1])


@pytest.mark.usefixtures("enabled")
def test_of_functions_in_functions_the_innermost_is_named(strategy: Any) -> None:
    @wb.function
    def inner(x: Any) -> Any:
        return np.log(x)

    @wb.function
    def outer(x: Any) -> Any:
        return inner(x) * np.float32(2)

    x = np.float32([1, 0, -1])
    named = r"`np\.log\(x\)` makes an infinity.* at test_numerics\.py:\d+ in inner"
    with pytest.raises(InvalidArgumentError, match=named):
        outer(x)
    with pytest.raises(InvalidArgumentError, match=named):
        strategy.local_results(strategy.run(outer, args=(x,)))
