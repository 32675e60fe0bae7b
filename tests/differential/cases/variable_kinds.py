"""Random cells of the table of variables: synchronization × aggregation × strategy × where it is changed and read."""

from __future__ import annotations

from tests.differential.cases.values import Values
from tests.reference.interpreter.codec import Json

_STRATEGIES = (
    (None, 2),
    (None, 2),
    (None, 1),
    ("CentralStorageStrategy", 2),
    ("OneDeviceStrategy", 1),
    ("default", 1),
)
_RANK = "cast(get_replica_context().replica_id_in_sync_group + 1, '{dtype}')"
_INITIAL = {"10.0": "float32", "3": "int32", "[1.0, 2.0]": "float32", "True": "bool", "'text'": "string"}
_OTHERS = {
    "float32": ("5.0", "const(5.0)", "7", "[5.0, 6.0]", "const(5)", "'text'", "const('text')", "None"),
    "int32": ("5", "const(5)", "2.5", "const(2.5)", "[5, 6]", "'text'", "None"),
    "bool": ("False", "const(False)", "1", "0.0", "[False, True]", "None"),
    "string": ("'new'", "const('new')", "1", "const(1.0)", "None"),
}
_READS = (
    *(
        "v",
        "v.read_value()",
        "v.value()",
        "np.asarray(v.numpy())",
        "identity(v)",
        "v + v",
        "[x for x in local(v)]",
    ),
    *("[x.read_value() for x in v.values]", "v.values[0]", "strategy.reduce('SUM', v, axis=None)"),
    *("strategy.reduce('MEAN', v, axis=None)", "strategy.extended.read_var(v)", "strategy.gather(v, axis=0)"),
    *(
        "run(lambda: v.read_value())",
        "run(lambda: v.value())",
        "run(lambda: identity(v))",
        "run(lambda x: x, args=(v,))",
    ),
    "run(lambda x: x * 2.0, args=(v,))",
    "run(lambda: get_replica_context().merge_call(lambda s: v.read_value()))",
    "run(lambda: get_replica_context().merge_call(lambda s, x: s.reduce('SUM', x, axis=None), args=(v,)))",
    "run(lambda: get_replica_context().all_reduce('SUM', v))",
    "strategy.extended.update(v, lambda c: c.read_value())",
    "strategy.extended.update(v, lambda c: identity(c), group=False)",
    "[list(v.shape), v.dtype.name, v.trainable, v.aggregation.name, v.synchronization.name]",
)


def case(values: Values) -> Json:
    """The next cell."""
    strategy, replicas = values.either(*_STRATEGIES)
    given: Json = {"kind": "program", "replicas": replicas, "code": _program(values, replicas)}
    return given if strategy is None else given | {"strategy": strategy}


def of_workers(values: Values) -> Json:
    """The next cell for two workers with a replica each."""
    return {"kind": "multi_worker_program", "workers": 2, "code": _program(values, replicas=2)}


def _program(values: Values, replicas: int) -> list[str]:
    initial, dtype = values.either(*_INITIAL.items(), *list(_INITIAL.items())[:1] * 3)
    options = [
        f"aggregation=Agg.{values.either('NONE', 'SUM', 'MEAN', 'ONLY_FIRST_REPLICA')}",
        f"synchronization=Sync.{values.either('NONE', *['AUTO', 'ON_WRITE', 'ON_READ', 'ON_READ'] * 2)}",
    ]
    made = f"Variable({initial}, {', '.join(options)})"
    return [*_created(values, made), *_changed(values, dtype, replicas), f"result = {values.either(*_READS)}"]


def _created(values: Values, made: str) -> list[str]:
    return values.either(
        *[["with strategy.scope():", f"    v = {made}"]] * 6,
        [f"v = {made}"],
        ["made = []", f"run(lambda: made.append({made}) if not made else None)", "v = made[0]"]
        if values.rarely(0.1)
        else ["with strategy.scope():", f"    v = {made}"],
    )


def _changed(values: Values, dtype: str, replicas: int) -> list[str]:
    how = values.either("assign", "assign", "assign_add", "assign_sub")
    other = values.either(*_OTHERS[dtype][:2] * 3, *_OTHERS[dtype])
    each = f"per_replica([{', '.join([f'const({_OTHERS[dtype][0]})'] * replicas)}])"
    own = values.either(
        other,
        f"{_RANK.format(dtype=dtype)} * const({_OTHERS[dtype][0]})"
        if dtype in ("float32", "int32")
        else other,
    )
    return values.either(
        [],
        [f"v.{how}({values.either(other, other, each)})"],
        ["with strategy.scope():", f"    v.{how}({values.either(other, other, each)})"],
        [f"run(lambda: v.{how}({own}))"],
        [f"run(lambda: v.{how}({own}))"],
        [f"run(lambda x: v.{how}(x), args=({each},))"],
        [f"strategy.extended.update(v, lambda c, x: c.{how}(x), args=({values.either(other, each)},))"],
        [
            "with strategy.scope():",
            f"    strategy.extended.update(v, lambda c, x: c.{how}(x), args=({other},), group=False)",
        ],
        [f"run(lambda: get_replica_context().merge_call(lambda s: v.{how}({other})))"],
        [
            f"run(lambda x: get_replica_context().merge_call(lambda s, y: v.{how}(y), args=(x,)), args=({each},))"
        ],
        [
            f"run(lambda: get_replica_context().merge_call(lambda s: s.extended.update(v, lambda c: c.{how}({other}))))"
        ],
    )
