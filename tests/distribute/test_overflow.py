"""What NumPy warns of in a reduction or an update names the user's line, and follows filters and the error state."""

from __future__ import annotations

import inspect
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench import distribute
from workbench.backends import users_line
from workbench.distribute import PerReplica, get_replica_context

HUGE = np.full(3, 3e38, np.float32)
HALF = np.full(3, 6e4, np.float16)  # the sum is computed in float32, where it is finite
Told = set[tuple[str, int, str]]


def _all_reduce(value: Any) -> None:
    get_replica_context().all_reduce("SUM", value)  # HERE


def _tree(value: Any) -> None:
    get_replica_context().all_reduce("SUM", [value, np.ones(2, np.int32), value])  # HERE


def _large(value: Any) -> None:
    get_replica_context().all_reduce("SUM", np.resize(value, 400_000))  # HERE


def _mean(value: Any) -> None:
    get_replica_context().all_reduce("MEAN", value)  # HERE


def _here(function: Callable[..., Any]) -> tuple[str, int]:
    """File and number of the marked line."""
    lines, first = inspect.getsourcelines(function)
    return __file__, first + next(n for n, line in enumerate(lines) if line.endswith("# HERE\n"))


def _places(told: list[warnings.WarningMessage]) -> Told:
    return {(one.filename, one.lineno, str(one.message)) for one in told}


def _told_on_replicas(strategy: Any, step: Callable[..., None], *args: Any) -> Told:
    """The warnings of a step. Where replicas are threads, they share the notebook's list of warnings."""

    def recorded() -> list[Told]:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            step(*args)
        return [_places(told)]

    if strategy.group.gang.shipping.codec.by_reference:
        return _told_here(lambda: strategy.run(step, args=args))
    found = strategy.local_results(strategy.run(recorded))
    return set().union(*(part[0] for part in found))


def _told_here(function: Callable[[], Any]) -> Told:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        function()
    return _places(told)


def _expect(told: Told, function: Callable[..., Any], what: str = "overflow encountered in add") -> None:
    assert told == {(*_here(function), what)}


@pytest.mark.parametrize("step", [_all_reduce, _tree, _large, _mean])
def test_a_collective_names_the_line_that_calls_it(strategy: Any, step: Callable[..., None]) -> None:
    _expect(_told_on_replicas(strategy, step, HUGE), step)


def test_so_does_the_way_back_to_a_narrow_dtype(strategy: Any) -> None:
    _expect(_told_on_replicas(strategy, _all_reduce, HALF), _all_reduce, "overflow encountered in cast")


def test_so_do_infinities_that_cancel_out(strategy: Any) -> None:
    def step() -> None:
        context = get_replica_context()
        sign = 1 - 2 * context.replica_id_in_sync_group
        context.all_reduce("SUM", np.full(3, sign * np.inf))  # HERE

    _expect(_told_on_replicas(strategy, step), step, "invalid value encountered in add")


@pytest.mark.parametrize("ops", ["HierarchicalCopyAllReduce", "ReductionToOneDevice", "RingAllReduce"])
def test_so_does_every_algorithm(cluster: Any, ops: str) -> None:
    strategy = distribute.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=getattr(distribute, ops)())
    try:
        _expect(_told_on_replicas(strategy, _all_reduce, HUGE), _all_reduce)
    finally:
        strategy.group.close()


def test_an_assignment_that_aggregates_names_its_line(strategy: Any) -> None:
    with strategy.scope():
        w = wb.Variable(np.zeros(3, np.float32), aggregation="SUM")

    def step() -> None:
        w.assign(HUGE)  # HERE

    _expect(_told_on_replicas(strategy, step), step)


ROW = wb.IndexedSlices(HUGE[:1], np.array([0]))
UPDATES: dict[str, Callable[[Any], Any]] = {
    "assign_add": lambda w: w.assign_add(HUGE),
    "assign_sub": lambda w: w.assign_sub(-HUGE),
    "assign": lambda w: w.assign(np.full(3, 1e39)),
    "scatter_add": lambda w: w.scatter_add(ROW),
    "operator": lambda w: w + w,
    "function": lambda w: np.multiply.reduce(w),
}


def _expect_update(told: Told, how: str) -> None:
    assert {(file, line) for file, line, _ in told} == {(__file__, UPDATES[how].__code__.co_firstlineno)}
    assert all(what.startswith("overflow encountered in ") for _, _, what in told)


@pytest.mark.parametrize("how", UPDATES)
def test_an_update_on_replicas_names_its_line(strategy: Any, how: str) -> None:
    with strategy.scope():
        w = wb.Variable(HUGE)
    update = UPDATES[how]

    def step() -> None:
        update(w)

    _expect_update(_told_on_replicas(strategy, step), how)


@pytest.mark.parametrize("how", UPDATES)
def test_an_update_of_a_variable_without_a_strategy_names_its_line(how: str) -> None:
    w = wb.Variable(HUGE)
    _expect_update(_told_here(lambda: UPDATES[how](w)), how)


@pytest.mark.parametrize("how", UPDATES)
@pytest.mark.parametrize("kind", ["MirroredStrategy", "CentralStorageStrategy", "component"])
def test_an_update_from_the_notebook_names_the_notebooks_line(
    cluster: Any, capfd: pytest.CaptureFixture[str], kind: str, how: str
) -> None:
    central = kind == "CentralStorageStrategy"
    made = distribute.experimental.CentralStorageStrategy if central else distribute.MirroredStrategy
    strategy = made(["CPU:0", "CPU:1"])
    try:
        with strategy.scope():
            w = wb.Variable(HUGE)
        update = UPDATES[how]
        changed = strategy.local_results(w)[1] if kind == "component" else w
        strategy.run(users_line.apply_at.cache_clear)  # as if the line had never warned
        told = _told_here(lambda: update(changed))
        if strategy.group.gang.shipping.codec.by_reference or how in ("operator", "function", "assign"):
            _expect_update(told, how)  # these are computed in the notebook
            return
        assert not told
        error = capfd.readouterr().err
        line = update.__code__.co_firstlineno
        assert f"{__file__}:{line}: RuntimeWarning: overflow encountered in" in error
        assert "workbench" not in error.replace(__file__, "")
    finally:
        strategy.group.close()


def test_rows_divided_by_zero_name_their_line(strategy: Any) -> None:
    with strategy.scope():
        w = wb.Variable(np.ones(3, np.int32))

    def step() -> None:
        w.scatter_div(wb.IndexedSlices(np.zeros(1, np.int32), np.array([0])))  # HERE

    # NumPy says either "at" or the function's name.
    told = _told_on_replicas(strategy, step)
    assert {(file, line) for file, line, _ in told} == {_here(step)}
    assert all(what.startswith("divide by zero encountered in ") for _, _, what in told)


def test_reduce_names_its_line(strategy: Any) -> None:
    both = strategy.run(lambda: HUGE)

    def reduce() -> None:
        strategy.reduce("SUM", both, axis=None)  # HERE

    _expect(_told_here(reduce), reduce)


@pytest.mark.parametrize(
    ("value", "axis", "what"),
    [(HUGE, 0, "overflow encountered in reduce"), (HALF, None, "overflow encountered in cast")],
    ids=["axis", "narrow"],
)
def test_reduce_names_its_line_whatever_overflows(strategy: Any, value: Any, axis: Any, what: str) -> None:
    both = strategy.run(lambda: value)

    def reduce() -> None:
        strategy.reduce("SUM", both, axis=axis)  # HERE

    found = _told_here(reduce)
    assert (*_here(reduce), what) in found
    assert {(file, line) for file, line, _ in found} == {_here(reduce)}


def test_reduce_of_many_leaves_names_its_line(strategy: Any) -> None:
    both = strategy.run(lambda: [HUGE] * 20)

    def reduce() -> None:
        strategy.reduce("SUM", both, axis=None)  # HERE

    _expect(_told_here(reduce), reduce)


def test_what_the_notebook_has_replicas_reduce_names_the_notebooks_line(
    strategy: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    both = strategy.run(lambda: HUGE)

    def reduce() -> None:
        with strategy.scope():
            strategy.extended.reduce_to("SUM", both, both)  # HERE

    if strategy.group.gang.shipping.codec.by_reference:
        _expect(_told_here(reduce), reduce)
        return
    reduce()
    file, line = _here(reduce)
    assert f"[replica 0] {file}:{line}: RuntimeWarning: overflow encountered in add" in capfd.readouterr().err


def test_the_users_error_state_holds(strategy: Any) -> None:
    def ignoring() -> None:
        with np.errstate(over="ignore"):
            _all_reduce(HUGE)

    def raising() -> None:
        with np.errstate(over="raise"):
            _all_reduce(HUGE)

    assert not _told_on_replicas(strategy, ignoring)
    with pytest.raises(FloatingPointError, match="overflow encountered in add"):
        strategy.run(raising)
    both = strategy.run(lambda: HUGE)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow encountered in add"):
        strategy.reduce("SUM", both, axis=None)


def test_a_filter_makes_it_an_error_at_the_users_line(strategy: Any) -> None:
    def step() -> None:
        if not by_reference:
            warnings.filterwarnings("error", module=f"{__name__}$")
        get_replica_context().all_reduce("SUM", HUGE)  # HERE

    by_reference = strategy.group.gang.shipping.codec.by_reference
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", module=f"{__name__}$")
        with pytest.raises(RuntimeWarning, match="overflow encountered in add") as raised:
            strategy.run(step)
        _, line = _here(step)
        assert str(raised.value).count(f"line {line}, in step") == 1  # and no frame except the user's
        both = strategy.run(lambda: HUGE)
        with pytest.raises(RuntimeWarning) as here:
            strategy.reduce("SUM", both, axis=None)
    assert traceback.extract_tb(here.tb)[-1].filename == __file__
    strategy.run(lambda: warnings.resetwarnings())  # for later tests


def test_a_line_is_shown_once_by_default_and_another_one_too(strategy: Any) -> None:
    values = PerReplica([HUGE, HUGE])

    def twice() -> None:
        for _ in range(2):
            strategy.reduce("SUM", values, axis=None)
        strategy.reduce("SUM", values, axis=None)

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        twice()
    assert len(told) == 2
