"""What a compiled program cannot do is one error that names the line and what to write instead."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.tpu.conftest import by_replica, ids
from workbench.distribute import get_replica_context
from workbench.errors import TracingError


def branches(x: Any) -> Any:
    return x if x > 0 else -x


def branches_on_the_replica(x: Any) -> Any:
    if get_replica_context().replica_id_in_sync_group == 0:
        return x * 2
    return x


def calls_numpy(x: Any) -> Any:
    return np.sin(x)


def wants_a_number(x: Any) -> Any:
    return float(x)


def wants_an_integer(x: Any) -> Any:
    return list(range(get_replica_context().replica_id_in_sync_group))


def has_a_shape_that_depends_on_values(x: Any) -> Any:
    rows = get_replica_context().xp.ones(3) * x
    return rows[rows > 0]


def wants_a_size(x: Any) -> Any:
    return get_replica_context().xp.arange(x)


def looks_for_rows(x: Any) -> Any:
    return get_replica_context().xp.nonzero(x * np.ones(3))


def slices_by_a_value(x: Any) -> Any:
    return (x * np.ones(3))[: x.astype(int)]


def writes_to_an_array(x: Any) -> Any:
    rows = x * np.ones(3)
    rows[0] = 1
    return rows


def writes_to_an_array_of_numpy(x: Any) -> Any:
    rows = np.zeros(3)
    rows[0] = x
    return rows


def reshapes_by_a_value(x: Any) -> Any:
    return (x * np.ones(3)).reshape(x.astype(int))


def looks_up(x: Any) -> Any:
    return {0: x, 1: -x}[get_replica_context().replica_id_in_sync_group]


def formats(x: Any) -> Any:
    return f"{x:.3f}"


def prints(x: Any) -> Any:
    print("loss", x)
    return x


def opens_a_file(x: Any) -> Any:
    with open("weights.npy", "rb"):
        return x


def draws_random_numbers(x: Any) -> Any:
    return x + np.random.normal()


def draws_pythons_random_numbers(x: Any) -> Any:
    return x + random.random()


def makes_a_variable(x: Any) -> Any:
    return wb.Variable(x)


def asks_for_its_device(x: Any) -> Any:
    return get_replica_context().devices


@pytest.mark.parametrize(
    ("function", "remedy"),
    [
        (branches, r"ctx\.select"),
        (branches_on_the_replica, r"ctx\.select"),
        (calls_numpy, r"jax\.numpy"),
        (wants_a_number, "outside"),
        (wants_an_integer, "x.shape"),
        (has_a_shape_that_depends_on_values, r"jax\.numpy\.where"),
        (wants_a_size, r"x\.shape"),
        (looks_for_rows, "size=n"),
        (slices_by_a_value, r"ends of slices .*dynamic_slice"),
        (writes_to_an_array, r"x\.at\[i\]\.set"),
        (writes_to_an_array_of_numpy, r"jax\.numpy"),
        (reshapes_by_a_value, r"x\.shape"),
        (looks_up, r"jax\.numpy\.take"),
        (formats, r"jax\.debug\.print"),
        (prints, r"jax\.debug\.print"),
        (opens_a_file, "as an argument"),
        (draws_random_numbers, r"jax\.random"),
        (draws_pythons_random_numbers, r"jax\.random"),
        (makes_a_variable, r"strategy\.scope"),
        (asks_for_its_device, "worker_devices"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_the_error_names_the_line_and_the_remedy(strategy: Any, function: Any, remedy: str) -> None:
    with pytest.raises(TracingError, match=remedy) as caught:
        strategy.run(function, (ids(strategy),))

    assert f"{function.__name__} cannot be traced" in str(caught.value)
    assert f"in {function.__name__}" in str(caught.value)
    assert 'test_tracing_errors.py", line' in str(caught.value)


def test_a_generator_that_the_function_captures_is_noticed(strategy: Any) -> None:
    rng = np.random.default_rng(0)

    with pytest.raises(TracingError, match="random numbers of rng"):
        strategy.run(lambda x: x + rng.normal(), (ids(strategy),))


def test_a_leaked_value_is_noticed(strategy: Any) -> None:
    kept: list[Any] = []

    def leaks(x: Any, again: Any = None) -> Any:
        kept.append(x)
        return kept[0] + 1

    step = wb.function(leaks)
    strategy.run(step, (ids(strategy),))

    with pytest.raises(TracingError, match=r"earlier trace.*\n.*in leaks\n +return kept\[0\] \+ 1"):
        strategy.local_results(strategy.run(step, (ids(strategy), np.ones(3, np.float32))))


def test_a_value_that_leaks_from_a_compiled_function_inside_is_noticed(strategy: Any) -> None:
    def leaks(x: Any) -> Any:
        import jax

        kept = []
        jax.jit(lambda y: kept.append(y * 2))(x)
        return kept[0] + 1

    with pytest.raises(TracingError, match=r"earlier trace.*\n.*in leaks\n +return kept\[0\] \+ 1"):
        strategy.run(leaks, (ids(strategy),))


def test_what_libraries_warn_of_while_a_function_is_traced_is_no_print(
    strategy: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """JAX itself warns where it has 32 bits only."""

    def step(x: Any) -> Any:
        import logging

        logging.getLogger("model").warning("x is %s", x)
        return x.astype("float64")

    result = strategy.run(step, (ids(strategy),))

    assert strategy.local_results(result)[3].dtype == np.float32
    told = capsys.readouterr().err
    assert "[replica 0] x is (a traced value: jax.debug.print shows values)" in told
    assert "UserWarning: Explicitly requested dtype" in told


def test_texts_are_refused(strategy: Any) -> None:
    with pytest.raises(TracingError, match="computes with numbers only"):
        strategy.run(lambda x: x, (np.array(["a", "b"], object),))


def test_texts_of_each_replica_are_refused_likewise(strategy: Any) -> None:
    """As a dataset gives them: several rows, so that comparing them says no single thing."""
    texts = by_replica(strategy, *[np.array([f"a{rank}", f"b{rank}"], object) for rank in range(4)])

    with pytest.raises(TracingError, match=r"argument 0 is an array of object: .*convert it to numbers"):
        strategy.run(lambda x: x, (texts,))


def test_objects_that_differ_by_replica_are_refused(strategy: Any) -> None:
    with pytest.raises(TracingError, match="differs by replica"):
        strategy.run(lambda x: x, (by_replica(strategy, "a", "b", "c", "d"),))


def test_generators_are_refused_before_anything_is_traced(strategy: Any) -> None:
    def yields(x: Any) -> Any:
        yield x

    for fn in (yields, wb.function(yields)):
        with pytest.raises(TypeError, match=r"yields is a generator function.*return what it yields"):
            strategy.run(fn, (ids(strategy),))


def test_wrong_arguments_say_how_the_function_is_called_and_show_no_frames(strategy: Any) -> None:
    with pytest.raises(TypeError, match=r"argument: 'x'; it is branches\(x\) \(test_tracing_err") as caught:
        strategy.run(branches)

    assert 'File "' not in str(caught.value)


def test_the_strategy_works_on_after_an_error(strategy: Any) -> None:
    with pytest.raises(TracingError):
        strategy.run(branches, (ids(strategy),))

    assert strategy.reduce("SUM", strategy.run(lambda x: x + 1, (ids(strategy),)), axis=None) == 10


def test_narrowing_to_32_bits_is_said_once(strategy: Any) -> None:
    def listen() -> None:  # in the worker, during tracing
        import sys
        import warnings

        from workbench.backends import numpy as library

        library._warned_narrow.clear()
        catcher: Any = warnings.catch_warnings(record=True)
        sys.heard_by_test = catcher, catcher.__enter__()  # type: ignore[attr-defined]
        warnings.simplefilter("always")  # otherwise Python itself would say it only once

    def heard() -> int:
        import sys

        catcher, warned = sys.__dict__.pop("heard_by_test")
        catcher.__exit__()
        return sum("narrows float64 to 32 bits" in str(one.message) for one in warned)

    strategy.run(listen)
    try:
        for size in (3, 3, 4):
            result = strategy.run(lambda x: x, (np.arange(size, dtype=np.float64),))
    finally:
        times = strategy.run(heard)

    assert strategy.local_results(result)[0].dtype == np.float32
    assert strategy.local_results(times)[0] == 1


def test_jax_itself_does_not_warn_of_variables_that_it_narrows(strategy: Any) -> None:
    with strategy.scope():
        used, unused = (wb.Variable(np.zeros(2), name=name) for name in ("used", "unused"))

    def strict() -> None:  # in the worker, during tracing
        import warnings

        warnings.filterwarnings("error", message="Explicitly requested dtype")

    def lenient() -> None:
        import warnings

        warnings.filterwarnings("default", message="Explicitly requested dtype")

    strategy.run(strict)
    try:
        result = strategy.run(lambda: used.assign_add(np.ones(2)) * 1)
    finally:
        strategy.run(lenient)

    assert strategy.local_results(result)[0].tolist() == [1, 1]
    assert float(np.sum(unused)) == 0


def test_integers_that_do_not_fit_into_32_bits_are_refused(strategy: Any) -> None:
    for value in (
        np.int64(2**40),
        np.array([1, -(2**33)]),
        2**40,
        by_replica(strategy, *[np.int64(2**40)] * 4),
    ):
        with pytest.raises(wb.errors.InvalidArgumentError, match=r"fit.*JAX_ENABLE_X64"):
            strategy.run(lambda x: x, (value,))
    assert strategy.reduce("SUM", strategy.run(lambda x: x, (np.int64(2**20),)), axis=None) == 4 * 2**20


def test_an_axis_that_does_not_exist_is_named(strategy: Any) -> None:
    with pytest.raises(
        wb.errors.InvalidArgumentError, match=r"axis 3 is out of range for float32\[1\].*\n.*in <lambda>"
    ):
        strategy.run(lambda x: get_replica_context().all_gather(x.reshape(1), axis=3), (ids(strategy),))


@pytest.mark.parametrize("seconds", [0, -1, "long"])
def test_a_deadline_that_is_none_is_refused(seconds: Any) -> None:
    with pytest.raises(ValueError, match="timeout_seconds must be a number above 0"):
        wb.distribute.RunOptions(timeout_seconds=seconds)


def test_assertions_check_shapes_and_dtypes_and_refuse_numbers(strategy: Any) -> None:
    def asserts_shapes(x: Any) -> Any:
        wb.debugging.assert_shapes([(x, ("N", 2))])
        wb.debugging.assert_type(x, np.float32)
        wb.debugging.assert_rank(x, 2)
        return x

    rows = np.ones((3, 2), np.float32)
    assert np.asarray(strategy.run(asserts_shapes, args=(rows,)).values[0]).shape == (3, 2)
    with pytest.raises(TracingError, match="assert_positive compares numbers, and this value has none while"):
        strategy.run(lambda x: wb.debugging.assert_positive(x), args=(rows,))
