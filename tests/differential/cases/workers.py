"""Random programs of two workers, each with one replica; none fails on one worker alone."""

from __future__ import annotations

from tests.differential.cases.values import Values
from tests.reference.interpreter.codec import Json

Lines = list[str]
_EQUAL = ("[1.0, 10.0]", "[[1.0, 2.0], [3.0, -4.0]]", "[2, 5]", "[[[1, 2]], [[3, 4]]]")
_UNEVEN = (
    "[[1.0, 2.0, 3.0], [10.0]]",
    "[[[1, 2]], [[3, 4], [5, 6]]]",
    "[[7.0], [1.0, 2.0]]",
    "[[1, 2], [4]]",
)
_CONTEXT = "get_replica_context()"


def case(values: Values) -> Json:
    """The next program."""
    make = values.either(
        _combined, _combined, _collective, _collective, _variable, _variable, _fed, _merged, _asked
    )
    return {"kind": "multi_worker_program", "workers": 2, "code": make(values)}


def _op(values: Values) -> str:
    return values.either("'SUM'", "'MEAN'")


def _combined(values: Values) -> Lines:
    uneven = values.rarely(0.4)
    axis = values.either("0", "0", "-1") if uneven else values.either("None", "None", "0")
    vals = values.either(*(_UNEVEN if uneven or axis == "0" else _EQUAL))
    axis = "0" if axis == "-1" and "[[[" in vals else axis
    how = values.either(
        f"reduce({_op(values)}, v, axis={axis})",
        "gather(v, axis=0)" if "[[" in vals else "reduce('SUM', v, axis=None)",
    )
    return [f"vals = {vals}", "v = run(lambda: const(vals[worker]))", f"result = strategy.{how}"]


def _collective(values: Values) -> Lines:
    vals = values.either(*_EQUAL)
    call = values.either(
        f"{_CONTEXT}.all_reduce({_op(values)}, x)",
        f"{_CONTEXT}.all_reduce({_op(values)}, {{'a': x, 'b': [x * 2, x + 1]}})",
        f"{_CONTEXT}.all_reduce({_op(values)}, x) * {_CONTEXT}.num_replicas_in_sync",
        f"({_CONTEXT}.all_reduce('SUM', x), {_CONTEXT}.all_reduce('MEAN', x))",
        f"{_CONTEXT}.all_gather(x, axis=0)",
        f"{_CONTEXT}.all_gather([x, x * 2], axis=0)",
    )
    if "gather" in call:
        vals = values.either(*_UNEVEN)
    return [
        f"vals = {vals}",
        "def fn():",
        "    x = const(vals[worker])",
        f"    return {call}",
        "result = run(fn)",
    ]


def _variable(values: Values) -> Lines:
    on_read = values.rarely(0.5)
    aggregation = values.either("SUM", "MEAN")  # in TensorFlow, each worker has its own first replica
    sync = "Sync.ON_READ" if on_read else values.either("Sync.AUTO", "Sync.ON_WRITE")
    how = values.either("assign", "assign_add", "assign_sub")
    updates = [
        values.either(
            [f"run(lambda: v.{how}(const(float(worker + 1))))"],
            [f"run(lambda: v.{how}(cast({_CONTEXT}.replica_id_in_sync_group, 'float32') * 2.0))"],
            ["with strategy.scope():", "    v.assign(const(3.0))"],
        )
        for _ in range(values.either(1, 1, 2))
    ]
    shown = values.either(
        "v.read_value()",
        "run(lambda: v.read_value())",
        "run(lambda: v * 2.0)",
        "[x.read_value() for x in local(v)]",
    )
    return [
        "with strategy.scope():",
        f"    v = Variable({values.either('0.0', '6.0')}, synchronization={sync}, aggregation=Agg.{aggregation})",
        *(line for update in updates for line in update),
        "with strategy.scope():",
        f"    r = {shown}" if shown.startswith("v") else "    pass",
        "result = r" if shown.startswith("v") else f"result = {shown}",
    ]


def _fed(values: Values) -> Lines:
    rows, batch = values.either(3, 5, 8, 9, 10), values.either(2, 4, 6)
    policy = values.either("AUTO", "DATA", "OFF")
    steps = [
        {"op": "range", "args": [rows]},
        {"op": "batch", "batch_size": batch, "drop_remainder": values.rarely(0.3)},
        {"op": "options", "auto_shard_policy": policy},
    ]
    made = values.either(
        f"strategy.experimental_distribute_dataset(pipeline({steps}))",
        f"strategy.distribute_datasets_from_function(lambda c: Dataset.range({rows}).shard(c.num_input_pipelines, "
        f"c.input_pipeline_id).batch({batch}))",
        f"strategy.distribute_datasets_from_function("
        f"lambda c: Dataset.range({rows} + 2 * c.input_pipeline_id).batch({batch}))",
        f"strategy.distribute_datasets_from_function(lambda c: Dataset.range({rows}))",
    )
    return values.either(
        [f"result = steps({made})"],
        [f"result = steps({made}, 2)"],
        ["out = []", f"for x in {made}:", "    out.append(strategy.reduce('SUM', x, axis=0))", "result = out"]
        if ".batch" in made or "pipeline" in made
        else [f"result = steps({made})"],
    )


def _merged(values: Values) -> Lines:
    body = values.either(
        "s.reduce('SUM', x, axis=None)",
        "s.reduce('MEAN', x, axis=None)",
        "s.extended.reduce_to('SUM', x, x)",
        "s.extended.batch_reduce_to('MEAN', [(x, x), (x, x)])[1]",
        "in_cross_replica_context()",
        "s.num_replicas_in_sync",
    )
    return [
        "def merge(s, x):",
        f"    return {body}",
        f"result = run(lambda: {_CONTEXT}.merge_call(merge, args=(const(float(worker + 1)),)))",
    ]


def _asked(values: Values) -> Lines:
    asked = values.either(
        "strategy.num_replicas_in_sync",
        f"run(lambda: const(0) + {_CONTEXT}.replica_id_in_sync_group)",
        f"run(lambda: {_CONTEXT}.num_replicas_in_sync)",
        "local(run(lambda: const(worker)))",
        "local(const(5))",
        "local(strategy.experimental_distribute_values_from_function(lambda c: const(c.replica_id_in_sync_group)))",
        "run(lambda x: x * 10, args=(const(3),))",
        "run(lambda x: {'a': (x, [x + const(worker)])}, args=(const(3),))",
        "[strategy.cluster_resolver.rpc_layer, strategy.cluster_resolver.cluster_spec().num_tasks('worker')]",
        "strategy.reduce('MEAN', const(2.0), axis=None)",
        "strategy.reduce('SUM', const([1.0, 2.0]), axis=0)",
        "len(local(run(lambda: const(1.0))))",
    )
    return [f"result = {asked}"]
