"""Random programs over one variable: kinds, updates in every context, and what they leave."""

from __future__ import annotations

import math

from tests.differential.cases.values import Values
from tests.reference.interpreter.codec import Json

_RANK = "cast(get_replica_context().replica_id_in_sync_group + 1, 'float32')"
_INITIAL = {"10.0": "5.0", "[1.0, 2.0]": "[3.0, 4.0]", "[[1.0, 2.0], [3.0, 4.0]]": "[[1.0, 1.0], [2.0, 2.0]]"}
_RESULTS = (
    *("v", "v", "v", "v.read_value()", "np.asarray(v.numpy())", "identity(v)", "[x for x in local(v)]"),
    *("v * 2.0", "1.0 - v", "v > 1.0", "run(lambda: v.read_value())", "run(lambda: v * 2.0)"),
    "[list(v.shape), v.dtype.name, v.trainable, v.aggregation.name, v.synchronization.name]",
)
_SCATTERS = ("add", "sub", "update", "max", "min", "mul", "div")


def case(values: Values) -> Json:
    """The next case."""
    if values.rarely(0.12):
        return {"kind": "program", "replicas": 1, "strategy": "default", "code": _by_coordinates(values)}
    initial, other = values.either(*_INITIAL.items())
    options = [f"aggregation=Agg.{values.either('NONE', 'SUM', 'MEAN', 'ONLY_FIRST_REPLICA')}"]
    options.append(f"synchronization=Sync.{values.either('AUTO', 'ON_WRITE', 'ON_READ')}")
    code = ["with strategy.scope():", f"    v = Variable({initial}, {', '.join(options)})"]
    for _ in range(values.either(0, 1, 1, 2)):
        code += _update(values, values.either(other, f"const({other})"), other)
    code.append(f"result = {values.either(*_RESULTS)}")
    given: Json = {"kind": "program", "replicas": values.either(1, 2, 2, 3), "code": code}
    return given | ({"strategy": "CentralStorageStrategy"} if values.rarely(0.15) else {})


def _update(values: Values, value: str, plain: str) -> list[str]:
    how = values.either("assign", "assign_add", "assign_sub")
    own = f"{_RANK} * const({plain})"
    rows = f"IndexedSlices(const({plain if plain.startswith('[') else '[1.0]'})[:1], const([0]), const([2]))"
    scatter = f"scatter_{values.either(*_SCATTERS)}"
    return values.either(
        [f"v.{how}({value})"],
        ["with strategy.scope():", f"    v.{how}({value})"],
        [f"run(lambda: v.{how}({own}))"],
        [f"run(lambda: v.{how}(const({plain})))"],
        [f"run(lambda: v.{scatter}({rows}))"],
        [f"v.{scatter}({rows})"],
        [f"strategy.extended.update(v, lambda x, d: x.{how}(d), args=({value},))"],
        [
            "def merge(s, x):",
            f"    v.{how}(s.reduce('MEAN', x, axis=None))",
            f"run(lambda: get_replica_context().merge_call(merge, args=({own},)))",
        ],
    )


def _by_coordinates(values: Values) -> list[str]:
    """A plain variable, changed and read by coordinates."""
    shape = [values.random.randint(1, 3) for _ in range(values.either(1, 2, 2, 3))]
    dtype = values.either("float32", "float32", "float64", "int32", "int64")
    depth = values.random.randint(1, len(shape))
    count = values.either(0, 1, 2, 3)
    limits = [size + values.rarely(0.05) for size in shape[:depth]]
    places = [[values.random.randrange(limit) for limit in limits] for _ in range(count)]
    wanted = [count, *shape[depth:]]
    updates = (
        f"np.full({wanted if not values.rarely(0.1) else [count + 1]}, {values.either(2, 5)}, '{dtype}')"
    )
    indices = f"np.reshape(np.array({places}, 'int32'), {[count, depth]})"
    lead = values.random.randrange(len(shape))
    inner = [[values.random.randrange(shape[lead]) for _ in range(2)] for _ in range(shape[0])]
    own = inner if lead == 1 else inner[0]
    size = [shape[0], 2, *shape[2:]] if lead == 1 else [2, *shape[1:]]
    batch = f"IndexedSlices(const(np.full({size}, 9, '{dtype}')), const({own}))"
    update = values.either(
        *[f"v.scatter_nd_{how}({indices}, {updates})" for how in ("add", "sub", "update", "min", "max")],
        f"v.batch_scatter_update({batch})" if lead < 2 else "v.batch_scatter_update([1])",
    )
    shown = values.either("v", "v.numpy()", f"v.gather_nd({indices})", "[list(v.get_shape()), v]")
    made = f"v = Variable(np.arange({math.prod(shape)}, dtype='{dtype}').reshape({shape}))"
    return [made, update, f"result = {shown}"]
