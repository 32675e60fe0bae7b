"""Which strategy is current where."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.distribute import (
    InputContext,
    MirroredStrategy,
    experimental_set_strategy,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from workbench.distribute.experimental import ValueContext


def _seen() -> tuple[bool, bool, bool]:
    return get_replica_context() is None, in_cross_replica_context(), has_strategy()


def test_exactly_one_of_replica_and_cross_replica_context_is_there(local: Any) -> None:
    def everywhere(_: Any) -> None:
        assert (get_replica_context() is None) == in_cross_replica_context()

    everywhere(None)
    with local.scope():
        everywhere(None)
    local.run(lambda: everywhere(None))
    local.run(lambda: get_replica_context().merge_call(everywhere))


def test_a_new_thread_starts_in_the_default_context(local: Any) -> None:
    seen: list[Any] = []
    with local.scope():
        thread = threading.Thread(target=lambda: seen.append((_seen(), get_strategy() is local)))
        thread.start()
        thread.join(10)
    assert seen == [((False, False, False), False)]


def test_a_scope_ends_when_its_block_raises(local: Any) -> None:
    with pytest.raises(ZeroDivisionError), local.scope():
        1 / 0
    assert _seen() == (False, False, False)


def test_a_scope_may_be_entered_again_also_inside_itself(local: Any) -> None:
    for scope in (local.scope(), get_strategy().scope()):
        seen = []
        for _ in range(2):
            with scope as outer, scope as inner:
                seen += [outer, inner, get_strategy()]
        assert len(set(map(id, seen))) == 1
        assert _seen() == (False, False, False)


def test_scopes_may_end_in_any_order(local: Any) -> None:
    first, second = local.scope(), local.scope()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert has_strategy()
    second.__exit__(None, None, None)
    assert _seen() == (False, False, False)
    with pytest.raises(RuntimeError, match="that it is not in"):
        first.__exit__(None, None, None)


def test_a_scope_decorates_a_function(local: Any) -> None:
    for strategy in (local, get_strategy()):

        @strategy.scope()
        def current(deeper: int) -> Any:
            return current(deeper - 1) if deeper else get_strategy()

        assert [current(1), current(0)] == [strategy, strategy]
        assert _seen() == (False, False, False)


def test_the_default_scope_is_refused_where_it_is_entered(local: Any) -> None:
    default = get_strategy()
    with local.scope():
        made = default.scope()
        with pytest.raises(RuntimeError, match="default strategy was entered inside"), made:
            pass
    with made as entered:
        assert entered is default


def test_a_scope_that_another_thread_leaves_hides_no_error_of_its_block(local: Any) -> None:
    def inside() -> Iterator[None]:
        with local.scope():
            yield

    def begun(entered: queue.Queue[Any]) -> None:
        generator = inside()
        next(generator)
        entered.put(generator)

    def entered_elsewhere() -> Any:
        entered: queue.Queue[Any] = queue.Queue()
        thread = threading.Thread(target=begun, args=(entered,))
        thread.start()
        thread.join(10)
        return entered.get(timeout=10)

    entered_elsewhere().close()
    with pytest.raises(ZeroDivisionError):
        entered_elsewhere().throw(ZeroDivisionError())
    with pytest.raises(RuntimeError, match="that it is not in"):
        next(entered_elsewhere())
    assert _seen() == (False, False, False)


def test_set_strategy_refuses_to_end_a_scope(local: Any) -> None:
    with local.scope(), pytest.raises(RuntimeError, match=r"strategy.scope\(\) block"):
        experimental_set_strategy(None)
    with pytest.raises(RuntimeError, match="replica function"):
        local.run(lambda: experimental_set_strategy(None))


def test_a_set_strategy_allows_its_own_scope_only(local: Any) -> None:
    other = MirroredStrategy(["CPU:2"])
    experimental_set_strategy(local)
    try:
        with local.scope():
            assert get_strategy() is local
        with pytest.raises(RuntimeError, match="scope of another strategy"), other.scope():
            pass
        assert get_strategy() is local
    finally:
        experimental_set_strategy(None)
    assert not has_strategy()


@pytest.mark.parametrize("method", ["run", "reduce", "gather", "scope", "update", "dataset"])
def test_what_needs_all_replicas_is_refused_inside_a_replica_function(strategy: Any, method: str) -> None:
    def misuse() -> None:
        match method:
            case "run":
                strategy.run(lambda: 1)
            case "reduce":
                strategy.reduce("SUM", np.ones(2), axis=None)
            case "gather":
                strategy.gather(np.ones(2), axis=0)
            case "update":
                strategy.extended.update(None, lambda: 1)
            case "dataset":
                strategy.extended.reduce_to("SUM", 1.0, "CPU:0")
            case _:
                with strategy.scope():
                    pass

    with pytest.raises(RuntimeError, match="inside a replica function"):
        strategy.run(misuse)


def test_a_kept_replica_context_is_refused(local: Any) -> None:
    kept: list[Any] = []
    local.run(lambda: kept.append(get_replica_context()))
    for context in kept:
        with pytest.raises(RuntimeError, match="had ended"):
            context.all_reduce("SUM", np.ones(1))
        with pytest.raises(RuntimeError, match="had ended"):
            _ = context.replica_id_in_sync_group
        assert repr(context) == "<ReplicaContext: ended>"


def test_a_replica_context_is_refused_on_another_thread(strategy: Any) -> None:
    def step() -> str:
        context, raised = get_replica_context(), []

        def elsewhere() -> None:
            try:
                context.all_gather(np.ones(1), axis=0)
            except RuntimeError as error:
                raised.append(str(error))

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join(10)
        return raised[0]

    assert all("another thread" in text for text in strategy.local_results(strategy.run(step)))


def test_the_strategy_on_a_replica_is_the_one_that_runs(strategy: Any) -> None:
    def step() -> tuple[bool, bool, int]:
        context = get_replica_context()
        return get_strategy() is strategy, context.strategy is strategy, strategy.num_replicas_in_sync

    same, of_context, replicas = strategy.run(step)
    assert same.values == of_context.values == (True, True)
    assert replicas.values == (2, 2)


def test_an_axis_may_be_an_array_without_dimensions(strategy: Any) -> None:
    def gathered(axis: Any) -> Any:
        return strategy.run(lambda: get_replica_context().all_gather(np.arange(2), axis=axis))

    wanted = [0, 1, 0, 1]
    np.testing.assert_array_equal(gathered(np.array(0)).values[1], wanted)
    np.testing.assert_array_equal(strategy.gather(strategy.run(np.arange, (2,)), np.int32(-1)), wanted)
    for wrong in (None, True, 0.0, [0], np.array([0])):
        with pytest.raises(TypeError, match="axis must be an integer, got"):
            gathered(wrong)
        with pytest.raises(TypeError, match="axis must be an integer, got"):
            strategy.gather(strategy.run(np.arange, (2,)), wrong)


def test_an_aggregation_names_its_operation() -> None:
    found = wb.distribute.ReduceOp.from_variable_aggregation
    assert found(wb.VariableAggregation.SUM) is wb.distribute.ReduceOp.SUM
    assert found(wb.VariableAggregation.MEAN) is wb.distribute.ReduceOp.MEAN
    for none in (wb.VariableAggregation.NONE, wb.VariableAggregation.ONLY_FIRST_REPLICA):
        with pytest.raises(ValueError, match="combines no values"):
            found(none)


def test_the_default_context_gives_back_what_it_gets() -> None:
    context, rows = get_replica_context(), np.arange(3.0)
    assert context.all_reduce("mean", rows) is rows
    assert context.all_gather(rows, axis=0) is rows
    assert context.all_gather(rows, axis=np.array(-1)) is rows
    assert (context.replica_id_in_sync_group, context.num_replicas_in_sync) == (0, 1)
    with pytest.raises(ValueError, match="unknown reduce_op"):
        context.all_reduce("max", rows)
    assert context.merge_call(lambda strategy, x: (strategy is get_strategy(), x), (1,)) == (True, 1)
    number, whole = context.all_reduce("sum", (2.5, {"n": 3}))
    assert (number.dtype, number.shape, whole["n"].dtype) == (np.float32, (), np.int32)


def test_the_default_strategy_runs_in_place() -> None:
    default = get_strategy()
    result = default.run(lambda x: (x, get_replica_context().num_replicas_in_sync), args=(3,))
    assert [leaf.values for leaf in result] == [(3,), (1,)]
    assert default.reduce("SUM", result[0], axis=None) == 3
    assert default.cluster_resolver is None
    assert default.extended.worker_devices == ("/job:localhost/replica:0/task:0/device:CPU:0",)


def test_a_function_that_the_default_strategy_runs_is_a_replica_function(local: Any) -> None:
    default = get_strategy()

    def entered() -> bool:
        with default.scope(), local.scope():
            return get_strategy() is local

    refused: list[Callable[[], Any]] = [
        lambda: default.run(lambda: 1),
        lambda: default.reduce("SUM", 1.0, axis=None),
        lambda: default.gather(np.arange(2), axis=0),
        lambda: default.extended.reduce_to("SUM", 1.0, "CPU:0"),
        lambda: experimental_set_strategy(local),
    ]
    for call in refused:
        with pytest.raises(RuntimeError, match="inside a replica function"):
            default.run(call)
    allowed: list[tuple[Callable[[], Any], Any]] = [
        (lambda: (*_seen(), get_replica_context().strategy is default), (False, False, False, True)),
        (entered, True),
        (lambda: get_replica_context().merge_call(lambda s: s.reduce("SUM", 2.0, axis=None)), 2.0),
        (lambda: get_replica_context().merge_call(lambda s: s.run(lambda: 3)).values, (3,)),
    ]
    for call, wanted in allowed:
        assert default.local_results(default.run(call)) == (wanted,)
    assert _seen() == (False, False, False)


def test_an_update_of_the_default_strategy_leaves_the_context_as_it_is() -> None:
    default, variable = get_strategy(), wb.Variable(1.0)

    def update(component: Any) -> tuple[bool, int]:
        component.assign_add(1.0)
        context = get_replica_context()
        assert context is not None
        return in_cross_replica_context(), context.num_replicas_in_sync

    assert default.extended.update(variable, update) == (False, 1)
    assert default.extended.update_non_slot([], lambda: in_cross_replica_context()) is False
    assert variable.numpy() == 2.0


def test_contexts_print_their_place() -> None:
    assert str(InputContext(2, 1, 4)) == "wb.distribute.InputContext(input pipeline id 1, total: 2)"
    text = "wb.distribute.experimental.ValueContext(replica id 0, total replicas in sync: 1)"
    assert str(ValueContext()) == text
