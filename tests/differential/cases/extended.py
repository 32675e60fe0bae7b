"""Random programs over `strategy.extended`, cross-device operations, and the methods of TensorFlow 1.15."""

from __future__ import annotations

from collections.abc import Callable

from tests.differential.cases.values import Values
from tests.reference.interpreter.codec import Json

_SCALARS = ("const(1.0)", "const(2.5)", "const(-3.0)", "const(4.0)")
_VECTORS = ("const([1.0, 2.0])", "const([3.0, -4.0])", "const([0.5, 8.0])", "const([5.0, 6.0])")
_INTEGERS = ("const(1)", "const(2)", "const(4)", "const(-5)")
_INITIAL = ("1.0", "[1.0, 2.0]")
_OTHER_PLACES = ("'CPU:0'", "'/device:CPU:1'", "const(1.0)", "'/cpu:0'")

Lines = list[str]


def legacy(values: Values) -> Json:
    """The next program in the spellings of TensorFlow 1.15."""
    makes = (_run, _iterator, _numpy_dataset, _experimental_run, _deprecated, *_COMMON)
    replicas = values.either(1, 2, 2, 3)
    return {"kind": "v1_program", "replicas": replicas, "code": values.either(*makes)(values, replicas)}


def extended(values: Values) -> Json:
    """The next program of today over the lesser known methods."""
    replicas = values.either(1, 2, 2, 3)
    makes = (_cross_device_ops, _cross_device_ops, *_COMMON)
    given = {"kind": "program", "replicas": replicas, "code": values.either(*makes)(values, replicas)}
    other = values.either("CentralStorageStrategy", "OneDeviceStrategy", "default", None, None, None, None)
    if other in ("OneDeviceStrategy", "default"):
        given |= {"replicas": 1, "code": values.either(*makes)(values, 1)}
    return given if other is None else given | {"strategy": other}


def _distributed(values: Values, replicas: int) -> str:
    kind = values.either(_SCALARS, _SCALARS, _VECTORS, _INTEGERS)
    return f"per_replica([{', '.join(kind[index % len(kind)] for index in range(replicas))}])"


def _value(values: Values, replicas: int) -> str:
    plain = ("const(3.0)", "const([1.0, 2.0])", "const(2)")
    return values.either(
        _distributed(values, replicas), _distributed(values, replicas), values.either(*plain)
    )


def _place(values: Values) -> str:
    return values.either("v", "v", "x", "x", *_OTHER_PLACES)


def _op(values: Values) -> str:
    return values.either("ReduceOp.SUM", "ReduceOp.MEAN", "'SUM'", "'mean'")


def _variable(values: Values) -> Lines:
    options = values.either(
        "", "", "", ", aggregation=Agg.SUM", ", synchronization=Sync.ON_READ, aggregation=Agg.SUM"
    )
    return [f"v = Variable({values.either(*_INITIAL)}{options})"]


def _scoped(values: Values, lines: Lines, result: str) -> Lines:
    """The lines, usually inside of the strategy's scope, rarely outside."""
    scope = [] if values.rarely(0.1) else ["with strategy.scope():"]
    inside = [("    " if scope else "") + line for line in [*lines, f"out = {result}"]]
    last = values.either("out", "out", "[out, v]", "list(local(out))")
    return ["with strategy.scope():", "    v = Variable(1.0)", *scope, *inside, f"result = {last}"]


def _run(values: Values, replicas: int) -> Lines:
    spelling = values.either("experimental_run_v2", "experimental_run_v2", "extended.call_for_each_replica")
    calls = (
        "lambda a, b: {'s': a + b, 'p': (a, [b])}",
        "lambda a, b: a * b",
        "lambda a, b: None",
        "lambda a, b: (get_replica_context().num_replicas_in_sync, a)",
        "lambda a, b: get_replica_context().all_reduce('SUM', a * 1.0) + b",
        "lambda a, b: b * 1.0",
    )
    kind = values.either(_SCALARS, _VECTORS)
    left, right = (
        values.either(
            f"per_replica([{', '.join(kind[index % 4] for index in range(replicas))}])",
            kind[0],
            "const(2.0)",
        )
        for _ in range(2)
    )
    given = values.either(f"args=({left}, {right})", f"args=({left},), kwargs={{'b': {right}}}")
    return _scoped(values, [], f"strategy.{spelling}({values.either(*calls)}, {given})")


def _iterator(values: Values, replicas: int) -> Lines:
    rows, batch = values.either(4, 5, 6, 7), values.either(1, 2, 3, 4)
    dropped = values.either("", "", ", drop_remainder=True")
    make = values.either(
        f"strategy.make_dataset_iterator(Dataset.range({rows}).batch({batch}{dropped}))",
        f"strategy.make_input_fn_iterator(lambda c: Dataset.range({rows}).batch({batch}{dropped}))",
        f"strategy.make_input_fn_iterator(lambda c: Dataset.range({rows}))",
    )
    again = values.either([], ["it.initialize()", "out.append(list(local(it.get_next())))"])
    end = values.either(
        ["result = out"],
        [
            "try:",
            "    it.get_next()",
            "    result = out",
            "except errors.OutOfRangeError:",
            "    result = [out]",
        ],
    )
    steps = values.either(1, 1, 2, 3)
    return [
        f"it = {make}",
        values.either("it.initialize()", "it.initializer"),
        f"out = [list(local(it.get_next())) for _ in range({steps})]",
        *again,
        *end,
    ]


def _experimental_run(values: Values, replicas: int) -> Lines:
    fn = values.either("lambda x: x * 10", "lambda x: (x, {'n': x + 1})", "lambda x: None")
    return [
        f"it = strategy.make_dataset_iterator(Dataset.range({values.either(4, 5, 6)}).batch({values.either(2, 4)}))",
        "it.initialize()",
        *values.either(
            [f"out = [strategy.experimental_run({fn}, it) for _ in range({values.either(1, 2, 3)})]"],
            ["out = strategy.experimental_run(lambda: get_replica_context().num_replicas_in_sync)"],
        ),
        "result = out",
    ]


def _numpy_dataset(values: Values, replicas: int) -> Lines:
    arrays = (
        "np.arange(6.0).reshape(3, 2)",
        "(np.arange(3), np.array([10.0, 20.0, 30.0], 'float32'))",
        "{'a': np.arange(2), 'b': (np.zeros((2, 1)), np.array(['x', 'y']))}",
        "[np.array([1, 2]), np.array([3, 4])]",
        "np.float32(3.0)",
        "(np.arange(3), np.arange(2))",
        "np.arange(4, dtype='int8')",
        "[]",
        "None",
        "np.zeros((0, 2))",
        "[np.array([1, 2]), np.array([3])]",
        "np.array([True, False])",
    )
    lines = [f"ds = strategy.experimental_make_numpy_dataset({values.either(*arrays)})"]
    return [
        *lines,
        values.either(
            "result = [x for x in ds]",
            "result = [x for x in ds.batch(2)]",
            "result = [list(local(x)) for x in strategy.experimental_distribute_dataset(ds.batch(2))]",
        ),
    ]


def _deprecated(values: Values, replicas: int) -> Lines:
    """Methods deprecated in 1.15, and what `extended` knows about sessions."""
    asked = values.either(
        f"list(strategy.unwrap({_value(values, replicas)}))",
        "list(strategy.unwrap(v))",
        "strategy.unwrap('text')",
        "strategy.configure()",
        *(
            f"strategy.extended.{name}"
            for name in ("experimental_between_graph", "experimental_should_init", "should_checkpoint")
        ),
        "strategy.extended.should_save_summary",
        "[x for x in strategy.extended.experimental_make_numpy_dataset(np.arange(3), None)]",
    )
    inside = [
        f"with strategy.{values.either('', 'extended.')}colocate_vars_with(v):",
        "    w = Variable(2.0)",
    ]
    return _scoped(values, values.either([], inside), asked)


def _local_results(values: Values, replicas: int) -> Lines:
    shown = values.either(_value(values, replicas), "None", "'text'", "[1, 2]", "{'a': 1}", "(1.0, 2.0)")
    return [
        "with strategy.scope():",
        *(f"    {line}" for line in _variable(values)),
        f"result = local({shown})",
    ]


def _reduce_to(values: Values, replicas: int) -> Lines:
    lines = [f"x = {_value(values, replicas)}"]
    return _scoped(values, lines, f"strategy.extended.reduce_to({_op(values)}, x, {_place(values)})")


def _batch_reduce_to(values: Values, replicas: int) -> Lines:
    lines = [f"x = {_distributed(values, replicas)}", f"y = {_value(values, replicas)}"]
    pairs = values.either(
        f"[(x, {_place(values)})]",
        f"[(x, {_place(values)}), (y, {_place(values)})]",
        "[x]",
        "((x, x),)",
        "x",
    )
    return _scoped(values, lines, f"strategy.extended.batch_reduce_to({_op(values)}, {pairs})")


def _broadcast_to(values: Values, replicas: int) -> Lines:
    lines = [f"x = {_distributed(values, replicas)}"]
    tensor = values.either("const(2.0)", "const([1, 2])", "np.arange(2)", "const('text')", "x")
    return _scoped(values, lines, f"strategy.extended.broadcast_to({tensor}, {_place(values)})")


def _update(values: Values, replicas: int) -> Lines:
    fns = (
        "lambda c, y: c.assign_add(y)",
        "lambda c, y: c.assign(y)",
        "lambda c, y: c.assign_sub(y * 2.0)",
        "lambda c, y: c.read_value() + y",
        "lambda c, y: (y * 1.0, {'c': c * 1.0})",
        "lambda c, y: (get_replica_context() is None, in_cross_replica_context(), c * 1.0)",
    )
    argument = values.either(
        *("const(2.0)", "3.0", "np.float32(2.0)", "v", "x"),
        "strategy.extended.reduce_to('SUM', x, v)",
        _distributed(values, replicas),
    )
    lines = [*_variable(values), f"x = per_replica([{', '.join(_SCALARS[:replicas])}])"]
    more = values.either("", "", ", group=False", ", group=True")
    call = values.either(f"args=({argument},)", f"kwargs={{'y': {argument}}}")
    made = f"strategy.extended.update(v, {values.either(*fns)}, {call}{more})"
    scoped = [f"    {line}" for line in [*lines, f"out = {made}"]]
    last = values.either(
        "out", "[out, v]", "[x for x in local(v)]", "np.asarray(v.numpy())", "v.read_value()"
    )
    return ["with strategy.scope():", *scoped, f"result = {last}"]


def _update_non_slot(values: Values, replicas: int) -> Lines:
    fns = ("lambda y: y * 2.0", "lambda y: {'a': (y * 1.0, y + 1.0)}")
    kind = values.either(_SCALARS, _VECTORS)
    argument = values.either("const(3.0)", f"per_replica([{', '.join(kind[:replicas])}])")
    more = values.either("", "", ", group=False")
    where = "strategy.extended.non_slot_devices([v])"
    if values.rarely(0.4):  # TensorFlow gives them other components of a PerReplica, see decisions.md
        argument, where = (
            "const(3.0)",
            f"strategy.extended.worker_devices{values.either('[:1]', '[-1:]', '[:2]')}",
        )
    return _scoped(
        values,
        [],
        f"strategy.extended.update_non_slot({where}, {values.either(*fns)}, args=({argument},){more})",
    )


def _places(values: Values, replicas: int) -> Lines:
    asked = values.either(
        "len(strategy.extended.non_slot_devices([v]))",
        "len(strategy.extended.worker_devices)",
        "len(strategy.extended.parameter_devices)",
        "strategy.extended.value_container(v) is v",
        "strategy.extended.value_container(local(v)[0]) is v",
        "strategy.extended.value_container(const(1.0))",
        "strategy.extended.value_container(3)",
        "strategy.extended.read_var(v)",
        "strategy.extended.variable_created_in_scope(v)",
        "strategy.extended.experimental_require_static_shapes",
        "run(lambda: get_replica_context().strategy is strategy)",
        "run(lambda: v + 1.0)",
    )
    colocated = values.either("v", "v", "const(1.0)", "outside")
    return values.either(
        ["with strategy.scope():", *(f"    {line}" for line in _variable(values)), f"result = {asked}"],
        [
            "outside = Variable(1.0)",
            "with strategy.scope():",
            *(f"    {line}" for line in _variable(values)),
            f"    with strategy.extended.colocate_vars_with({colocated}):",
            "        w = Variable([2.0])",
            "result = w",
        ],
    )


def _from_replicas(values: Values, replicas: int) -> Lines:
    """Methods for the other context than the one that calls them."""
    asked = values.either(
        "strategy.extended.reduce_to('SUM', const(1.0), 'CPU:0')",
        "strategy.extended.broadcast_to(const(1.0), 'CPU:0')",
        "strategy.extended.update_non_slot(strategy.extended.non_slot_devices([v]), lambda: const(1.0))",
        "strategy.extended.call_for_each_replica(lambda: const(1.0))",
        "strategy.reduce('SUM', const(1.0), axis=None)",
        "len(strategy.extended.worker_devices)",
        "local(const(1.0))",
        "strategy.num_replicas_in_sync",
    )
    merged = f"lambda s, x: ({asked.replace('const(1.0)', 'x', 1)})"
    call = values.either(
        f"run(lambda: ({asked}))",
        f"run(lambda: get_replica_context().merge_call({merged}, args=(const(2.0),)))",
        asked,
    )
    return ["with strategy.scope():", "    v = Variable(1.0)", f"result = {call}"]


def _cross_device_ops(values: Values, replicas: int) -> Lines:
    ops = values.either("ReductionToOneDevice()", "HierarchicalCopyAllReduce()")
    lines = [f"x = {_value(values, replicas)}", f"y = {_distributed(values, replicas)}"]
    op = values.either("ReduceOp.SUM", "ReduceOp.MEAN")
    call = values.either(
        f"reduce({op}, x, {_place(values)})",
        f"reduce({op}, x, {_place(values)})",
        f"broadcast({values.either('const(2.0)', 'const([1, 2])', 'y')}, {_place(values)})",
        f"batch_reduce({op}, [(y, y), (x, x)])",
        f"batch_reduce({op}, {values.either('[(y, y)]', '[y]', '[(y,)]', 'y', '((y, y),)')})",
    )
    return _scoped(values, lines, f"{ops}.{call}")


_COMMON: tuple[Callable[[Values, int], Lines], ...] = (
    *(_reduce_to, _reduce_to, _batch_reduce_to, _broadcast_to, _update, _update, _update_non_slot),
    *(_local_results, _places, _places, _from_replicas),
)
