"""Random programs that ask and call things in every context: scopes, replica functions, merges, updates, none."""

from __future__ import annotations

from tests.differential.cases.values import Values
from tests.reference.interpreter.codec import Json

Lines = list[str]
_ASKED = (
    "has_strategy()",
    "in_cross_replica_context()",
    "get_strategy() is strategy",
    "get_replica_context() is None",
    "get_replica_context().num_replicas_in_sync",
    "const(0) + get_replica_context().replica_id_in_sync_group",
    "get_replica_context().strategy is strategy",
    "get_replica_context().strategy is get_strategy()",
    "strategy.num_replicas_in_sync",
    "get_strategy().num_replicas_in_sync",
    "strategy.extended is not None",
)
_CALLED = (
    "strategy.reduce('SUM', {x}, axis=None)",
    "strategy.reduce('MEAN', {x}, axis=None)",
    "strategy.reduce('MEAN', {x}, axis=0)",
    "strategy.gather({x}, axis=0)",
    "strategy.run(lambda: const(1.0))",
    "strategy.run(lambda y: y * 2.0, args=({x},))",
    "strategy.run(has_strategy)",
    "strategy.run(in_cross_replica_context)",
    "get_strategy().run(lambda: const(2.0))",
    "get_strategy().reduce('SUM', {x}, axis=None)",
    "local({x})",
    "entered(strategy)",
    "entered(get_strategy())",
    "list(local(strategy.experimental_distribute_values_from_function(lambda c: c.num_replicas_in_sync)))",
    "strategy.experimental_distribute_dataset(Dataset.range(4).batch(2)) is not None",
    "strategy.distribute_datasets_from_function(lambda c: Dataset.range(4).batch(2)) is not None",
    "get_replica_context().all_reduce('SUM', {x})",
    "get_replica_context().all_reduce('MEAN', {x})",
    "get_replica_context().all_gather({x}, axis=0)",
    "get_replica_context().merge_call(lambda s: in_cross_replica_context())",
    "get_replica_context().merge_call(lambda s: get_strategy() is s)",
    "get_replica_context().merge_call(lambda s, y: s.reduce('SUM', y, axis=None), args=({x},))",
    "get_replica_context().merge_call(lambda s: s.run(lambda: const(1.0)))",
    "get_replica_context().merge_call(lambda s: entered(s))",
    "get_replica_context().merge_call(lambda s: get_replica_context().merge_call(lambda t: 1))",
    "strategy.extended.update(v, lambda c: c * 1.0)",
    "strategy.extended.update(v, lambda c: c.assign_add(1.0))",
    "strategy.extended.reduce_to('SUM', {x}, v)",
    "strategy.extended.colocate_vars_with(v) is not None",
    "strategy.extended.call_for_each_replica(lambda: const(1.0))",
    "ReductionToOneDevice().reduce(ReduceOp.MEAN, {x}, 'CPU:0')",
    "experimental_set_strategy(strategy)",
    "experimental_set_strategy(None)",
    "v.assign({x})",
    "v.assign_add(1.0)",
    "v.read_value()",
    "v * 2.0",
    "np.asarray(v.numpy())",
)
_X = ("const(2.0)", "const([1.0, 2.0])", "3.0", "v", "p", "None")


def case(values: Values) -> Json:
    """The next case."""
    strategy = values.either("OneDeviceStrategy", "CentralStorageStrategy", "default", "default", None, None)
    replicas = 1 if strategy in ("OneDeviceStrategy", "default") else values.either(1, 2, 2)
    given: Json = {"kind": "program", "replicas": replicas, "code": program(values, replicas)}
    return given if strategy is None else given | {"strategy": strategy}


def program(values: Values, replicas: int) -> Lines:
    """The lines of a program over a strategy whose workers have so many replicas each."""
    parts = ", ".join("const(1.0)" for _ in range(replicas))
    return [
        "def entered(s):",
        "    with s.scope():",
        "        return [in_cross_replica_context(), has_strategy(), get_strategy() is s]",
        "with strategy.scope():",
        f"    v = Variable(1.0{values.either('', '', ', aggregation=Agg.SUM')})",
        f"p = per_replica([{parts}])",
        *_placed(values, _expression(values)),
    ]


def _expression(values: Values) -> str:
    asked = values.either(values.either(*_ASKED), values.either(*_CALLED), values.either(*_CALLED))
    return asked.replace("{x}", values.either(*_X))


def _placed(values: Values, asked: str) -> Lines:
    """The lines that evaluate `asked` in a context."""
    return values.either(
        [f"result = {asked}"],
        ["with strategy.scope():", f"    result = {asked}"],
        ["with strategy.scope():", "    with strategy.scope():", "        pass", f"    result = {asked}"],
        [f"result = run(lambda: {asked})"],
        ["with strategy.scope():", f"    result = run(lambda: {asked})"],
        [f"result = run(lambda: get_replica_context().merge_call(lambda s: {asked}))"],
        [
            "def merge(s):",
            "    with s.scope():",
            f"        return {asked}",
            "result = run(lambda: get_replica_context().merge_call(merge))",
        ],
        [f"result = run(lambda: (get_replica_context().merge_call(lambda s: None), {asked})[1])"],
        ["with strategy.scope():", f"    result = strategy.extended.update(v, lambda c: {asked})"],
        [f"result = strategy.extended.update(v, lambda c: {asked})"],
        [
            "with strategy.scope():",
            "    where = strategy.extended.non_slot_devices([v])",
            f"    result = strategy.extended.update_non_slot(where, lambda: {asked})",
        ],
        [
            "result = run(lambda: get_replica_context().merge_call(lambda s: s.extended.update(v, lambda c: "
            f"{asked})))"
        ],
        [
            "experimental_set_strategy(strategy)",
            "try:",
            f"    result = {asked}",
            "finally:",
            "    experimental_set_strategy(None)",
        ],
        ["try:", "    run(lambda: 1 / 0)", "except ZeroDivisionError:", "    pass", f"result = {asked}"],
    )
