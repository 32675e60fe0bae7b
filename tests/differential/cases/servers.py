"""Random programs over parameter servers: sharded variables, scheduled functions, datasets of workers, errors."""

from __future__ import annotations

from tests.differential.cases.values import Values
from tests.reference.interpreter.codec import Json

_LAYOUT = {"workers": 2, "ps": 3}  # the number of workers of TensorFlow's only cluster
Lines = list[str]


def variables(values: Values) -> Json:
    """The next program over variables, whole or in shards."""
    make = values.either(_placed, _placed, _computed, _computed, _looked_up, _colocated)
    return _program(values, make(values))


def functions(values: Values) -> Json:
    """The next program that schedules functions."""
    make = values.either(_scheduled, _updating, _failing, _failing, _dataset, _dataset, _fetched)
    return _program(values, make(values))


def _program(values: Values, code: Lines) -> Json:
    sizes = {
        "FixedShardsPartitioner": {"num_shards": values.either(1, 2, 3, 5)},
        "MinSizePartitioner": {
            "min_shard_bytes": values.either(4, 16, 64),
            "max_shards": values.either(2, 4),
        },
        "MaxSizePartitioner": {
            "max_shard_bytes": values.either(8, 16, 50),
            "max_shards": values.either(None, 2),
        },
    }
    given = {"kind": "coordinator_program", **_LAYOUT}
    if values.rarely(0.8):
        kind = values.either(*sizes)
        given["partitioner"] = {"type": kind, "args": sizes[kind]}
    return {**given, "code": code}


def _table(values: Values) -> tuple[str, int, int]:
    """A variable's value, and its numbers of rows and columns; 0 columns mean that it has one dimension."""
    rows, columns = values.either(1, 2, 4, 5, 7, 10), values.either(0, 0, 1, 2, 3)
    dtype = values.either("float32", "float32", "float64", "int32", "int64")
    shape = f".reshape({rows}, {columns})" if columns else ""
    return f"np.arange({rows * (columns or 1)}, dtype='{dtype}'){shape}", rows, columns


def _in_scope(values: Values, value: str) -> Lines:
    options = values.either("", "", ", name='w'", ", trainable=False", ", dtype='float64'")
    return ["with strategy.scope():", f"    v = Variable({value}{options})"]


def _placed(values: Values) -> Lines:
    value, _, _ = _table(values)
    value = values.either(value, value, "3.0", "np.ones((1, 6))", "[[1.0], [2.0]]")
    first = values.either(
        "", "", "    u = Variable(np.arange(4.0))", "    u = Variable(1.0); t = Variable(2.0)"
    )
    shown = values.either(
        "[[s[1], s[2]] for s in shards(v)]",
        "[[s[1], s[2]] for s in shards(v)]",
        "[is_sharded(v), list(v.shape), v.dtype.name, list(np.shape(v))]",
        "[is_sharded(v), list(v.shape), v.dtype.name]",
        "[[list(s[2].shape) for s in shards(v)], to_tensor(v)]",
        "[type(s).__name__ == 'ShardedVariable' for s in [v]]",
    )
    made = _in_scope(values, value)
    return [made[0], *([first] if first else []), made[1], f"result = {shown}"]


def _colocated(values: Values) -> Lines:
    value, _, _ = _table(values)
    first = values.either("np.arange(4.0)", "1.0")
    other = values.either("a.variables[0] if is_sharded(a) else a", "t", "const(1.0)")
    return [
        "with strategy.scope():",
        "    t = Variable(0.0)",
        f"    a = Variable({first})",
        f"    with strategy.extended.colocate_vars_with({other}):",
        f"        b = Variable({value})",
        "result = [is_sharded(b), [s[1] for s in shards(b)], [s[1] for s in shards(a)]]",
    ]


def _computed(values: Values) -> Lines:
    value, rows, columns = _table(values)
    shape = f"({rows}, {columns})" if columns else f"{rows}"
    other = values.either(f"np.ones({shape}, v.dtype.name)", f"np.full({shape}, 3, v.dtype.name)")
    one = f"const(np.ones({(rows, columns) if columns else (rows,)}, v.dtype.name))"
    picked = sorted({values.random.randrange(rows) for _ in range(values.either(1, 2, 3))})
    piece = f"np.full({(len(picked), columns) if columns else (len(picked),)}, 5, v.dtype.name)"
    rows_of = (
        f"IndexedSlices(const({piece}), const({picked}), const({[rows, columns] if columns else [rows]}))"
    )
    wrong = values.either("np.ones(3, 'float32')", "2", "2.0", "[1.0]", "'text'", "None")
    updates = (
        f"v.assign({other})",
        f"v.assign_add({other})",
        f"v.assign_sub({one})",
        f"v.assign({wrong})",
        f"v.assign_add({wrong})",
        f"v.scatter_{values.either('add', 'sub', 'update', 'max', 'min', 'mul', 'div')}({rows_of})",
    )
    low, high = sorted((values.random.randint(-rows, rows), values.random.randint(0, rows)))
    index = values.random.randint(-rows - 1, rows)
    results = (
        "to_tensor(v)",
        "[s[2] for s in shards(v)]",
        f"v[{index}]",
        f"v[{low}:{high}]",
        "v[::2]",
        "v[::-1]",
        "v[..., 0]" if columns else "v[0]",
        "v[:, 0]" if columns else "v[None]",
        "v + v",
        f"v * {one}",
        f"{one} - v",
        "-v",
        "v > 1",
        "[x.read_value() for x in v] if is_sharded(v) else v.shape[0]",
        f"v.sparse_read(const({picked}))",
        "v.numpy()",
    )
    chosen = [values.either(*updates) for _ in range(values.either(0, 0, 1, 1, 2))]
    return [*_in_scope(values, value), *chosen, f"result = {values.either(*results)}"]


def _looked_up(values: Values) -> Lines:
    value, rows, _ = _table(values)
    some = [values.random.randrange(rows) for _ in range(values.either(1, 2, 4))]
    ids = values.either(
        f"{some}",
        f"const({some}, 'int64')",
        f"[{some}, {some}]",
        f"{some[0]}",
        f"[{rows}]",
        "[-1]",
        "np.zeros(0, 'int32')",
        "[0.5]",
    )
    more = values.either("", "", "", ", max_norm=2.0", ", max_norm=0.5")
    asked = values.either(
        f"embedding_lookup(v, {ids}{more})",
        f"embedding_lookup(v, {ids}{more})",
        f"embedding_lookup({value}, {ids}{more})",
        f"embedding_lookup(v.variables if is_sharded(v) else [v], {ids})",
        f"embedding_lookup([const({value})], {ids}{more})",
        f"fetch(coordinator.schedule(function(lambda: embedding_lookup(v, {ids}{more}))))",
    )
    return [*_in_scope(values, value), f"result = {asked}"]


def _function(values: Values) -> Lines:
    bodies = (
        "a + b",
        "{'x': a, 'y': (b, [a * 2])}",
        "(a, b)",
        "None",
        "[]",
        "a",
        "()",
    )
    return ["@function", "def fn(a, b):", f"    return {values.either(*bodies)}"]


def _scheduled(values: Values) -> Lines:
    argument = values.either(
        "const(2)", "const([1, 2])", "const(3)", "np.arange(2, dtype='int32')", "{'k': const(1)}['k']"
    )
    given = values.either(
        f"args=({argument}, const(2))",
        f"args=({argument},), kwargs={{'b': {argument}}}",
        f"kwargs={{'a': {argument}, 'b': const(1)}}",
        f"args=[{argument}, {argument}]",
        f"({argument}, const(1))",
        f"args=({argument}, 1, 2)",
        "",
    )
    how = values.either(
        f"result = coordinator.schedule(fn, {given}).fetch()",
        f"result = fetch([coordinator.schedule(fn, {given}) for _ in range(3)])",
        f"r = coordinator.schedule(fn, {given}); coordinator.join(); result = [fetch(r), coordinator.done()]",
        f"r = coordinator.schedule(fn, {given}); result = [fetch(r), fetch(r), r.fetch()]",
    )
    return [*_function(values), *how.split("; ")]


def _updating(values: Values) -> Lines:
    value, rows, columns = _table(values)
    times = values.either(1, 3, 5)
    ones = f"np.ones({(rows, columns) if columns else (rows,)}, v.dtype.name)"
    body = values.either(
        f"v.assign_add({ones})",
        f"v.assign_sub({ones})",
        f"v.assign({ones})",
        "v.assign_add(np.ones(9, v.dtype.name))",
        f"v.scatter_add(IndexedSlices(const({ones}[:1]), const([0])))",
    )
    more = values.either("return to_tensor(v)", "return to_tensor(v) * 2", "return 1", "pass")
    return [
        *_in_scope(values, value),
        "@function",
        "def fn():",
        f"    {body}",
        f"    {more}",
        f"rs = [coordinator.schedule(fn) for _ in range({times})]",
        "coordinator.join()",
        f"result = [to_tensor(v), {values.either('coordinator.done()', 'fetch(rs[-1])', 'len(fetch(rs))')}]"
        if times == 1
        else "result = to_tensor(v)",
    ]


def _failing(values: Values) -> Lines:
    first = values.either("", "", "good = coordinator.schedule(fn, args=(const(1),))", "coordinator.join()")
    raised = values.either(
        *("coordinator.join()",) * 3, "coordinator.done()", "fetch(r)", "r.fetch()", "fetch([r])"
    )
    wait = values.either("", "coordinator.join()") if raised == "coordinator.done()" else ""
    after = values.either(
        "result = [first, fetch(coordinator.schedule(fn, args=(const(5),)))]",
        "coordinator.join(); result = [first, coordinator.done()]",
        "result = [first, fetch(r)]",
        "result = [first, fetch(r)]",
        "result = [first, fetch(good)]" if first.startswith("good") else "result = first",
        "result = [first, coordinator.done()]",
    )
    return [
        "@function",
        "def fn(x):",
        "    check_positive(x)",
        "    return x * 2",
        *([first, "fetch(good)"] if first.startswith("good") else [first] if first else []),
        "r = coordinator.schedule(fn, args=(const(-1),))",
        "first = 'no error'",
        "try:",
        *([f"    {wait}"] if wait else []),
        f"    {raised}",
        "except errors.InvalidArgumentError:",
        "    first = 'invalid'",
        *after.split("; "),
    ]


def _dataset(values: Values) -> Lines:
    rows = values.either(0, 2, 3, 6)
    made = values.either(
        f"lambda: Dataset.range({rows})",
        f"lambda: Dataset.range({rows}).batch(2)",
        f"lambda: strategy.distribute_datasets_from_function(lambda c: Dataset.range({rows}))",
        f"lambda: strategy.experimental_distribute_dataset(Dataset.range({rows}).batch(2))",
        "lambda: Dataset.from_tensor_slices(([1, 2, 3], [4, 5, 6]))",
        "lambda: Dataset.from_tensor_slices({'a': [1, 2, 3]})",
        f"Dataset.range({rows})",
    )
    body = values.either(
        "next(it)", "it.get_next()", "(next(it), next(it))", "it.get_next_as_optional().get_value()"
    )
    shown = values.either(
        "result = fetch(coordinator.schedule(fn, args=(it,)))",
        "result = next(it)",
        "rs = [coordinator.schedule(fn, args=(it,)) for _ in range(2)]; coordinator.join(); result = len(fetch(rs))",
        "fetch(coordinator.schedule(fn, (it,))); it = iter(ds); result = fetch(coordinator.schedule(fn, (it,)))",
    )
    return [
        "@function",
        "def fn(it):",
        f"    return {body}",
        f"ds = coordinator.create_per_worker_dataset({made})",
        "it = iter(ds)",
        *shown.split("; "),
    ]


def _fetched(values: Values) -> Lines:
    asked = values.either(
        "fetch(const(1))",
        "fetch(None)",
        "fetch([])",
        "fetch({'a': (1, [2.0, 'x'])})",
        "fetch({'a': r, 'b': (r, 1)})",
        "fetch(np.arange(3))",
        "coordinator.done()",
        "[r.fetch(), coordinator.join(), coordinator.join()]",
        "coordinator.schedule(5)",
        "coordinator.schedule(None)",
        "ClusterCoordinator(strategy) is coordinator",
        "ClusterCoordinator(5)",
        "strategy.num_replicas_in_sync",
        "run(lambda: const(3) * 2)",
        "strategy.reduce('SUM', const(1), axis=None)",
        "strategy.gather(const([1]), axis=0)",
        "local(const(1))",
        "[get_replica_context() is None, in_cross_replica_context(), has_strategy()]",
        *(
            f"coordinator.schedule(function(lambda: {each})).fetch()"
            for each in (
                "run(lambda: const(get_replica_context().num_replicas_in_sync))",
                "run(lambda: get_replica_context().all_reduce('SUM', const(2)))",
                "strategy.reduce('MEAN', run(lambda: const(2.0)), axis=None)",
            )
        ),
    )
    return [
        *_function(values),
        "r = coordinator.schedule(fn, args=(const(1), const(2)))",
        f"result = {asked}",
    ]
