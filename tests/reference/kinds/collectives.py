"""Kinds that reduce, gather and broadcast: from outside, inside replicas, and on a cross-device object."""

from __future__ import annotations

import json
from typing import Any

from tests.reference.compare import Comparison
from tests.reference.distributed import components
from tests.reference.interpreter.clusters import default_context, distributed, make_strategy
from tests.reference.interpreter.codec import Json, decode
from tests.reference.interpreter.world import World
from tests.reference.observation import Observed
from tests.reference.outcomes import api


def reduce(given: Json, world: World, observed: Observed) -> None:
    with default_context():
        strategy = make_strategy(world.clusters, given.get("strategy"), given["replicas"])
        observed.comparison = _comparison(given)
        value, axis = _value(strategy, given), _axis(given["axis"])
        observed.fields["result"] = strategy.reduce(given["reduce_op"], value, axis=axis)


def gather(given: Json, world: World, observed: Observed) -> None:
    with default_context():
        strategy = make_strategy(world.clusters, given.get("strategy"), given["replicas"])
        observed.fields["result"] = strategy.gather(_value(strategy, given), axis=_axis(given["axis"]))


def all_reduce(given: Json, world: World, observed: Observed) -> None:
    with default_context():
        strategy = make_strategy(world.clusters, given.get("strategy"), given["replicas"])
        observed.comparison = _comparison(given)
        context, op = api("distribute.get_replica_context"), given["reduce_op"]
        value = _value(strategy, given)
        observed.fields["per_replica"] = strategy.run(lambda x: context().all_reduce(op, x), args=(value,))


def all_gather(given: Json, world: World, observed: Observed) -> None:
    with default_context():
        strategy = make_strategy(world.clusters, given.get("strategy"), given["replicas"])
        context, axis = api("distribute.get_replica_context"), given["axis"]
        value = _value(strategy, given)
        observed.fields["per_replica"] = strategy.run(
            lambda x: context().all_gather(x, axis=axis), args=(value,)
        )


def cross_device_reduce(given: Json, world: World, observed: Observed) -> None:
    with default_context():
        strategy = make_strategy(world.clusters, None, given["replicas"])
        ops = api(f"distribute.{given['ops']}")()
        observed.comparison = _comparison(given)
        with strategy.scope():
            op, value = getattr(api("distribute.ReduceOp"), given["reduce_op"]), _value(strategy, given)
            where = value if given["destinations"] == "value" else given["destinations"]
            if "batch" in given:
                result = ops.batch_reduce(op, [(value, where)] * given["batch"])
            else:
                result = ops.reduce(op, value, where)
            observed.fields["result"] = result
            observed.fields["devices"] = _Places(result)


def cross_device_broadcast(given: Json, world: World, observed: Observed) -> None:
    with default_context():
        strategy = make_strategy(world.clusters, None, given["replicas"])
        ops = api(f"distribute.{given['ops']}")()
        value = decode(given["value"])
        with strategy.scope():
            everywhere = given["destinations"] == "replicas"
            where = (
                distributed(strategy, [value] * given["replicas"]) if everywhere else given["destinations"]
            )
            observed.fields["result"] = result = ops.broadcast(value, where)
            observed.fields["devices"] = _Places(result)


def _value(strategy: Any, given: Json) -> Any:
    if "value" in given:
        return decode(given["value"])
    return distributed(strategy, [decode(value) for value in given["values"]])


def _axis(axis: Json) -> int | tuple[int, ...] | None:
    return tuple(axis) if isinstance(axis, list) else axis


def _comparison(given: Json) -> Comparison:
    integers = '"t": "int' in (text := json.dumps(given)) or '"t": "uint' in text
    return Comparison(any_float=integers and given["reduce_op"].upper() == "MEAN")


class _Places:
    """Where results are: one array each in the notebook, or one component on each replica."""

    def __init__(self, result: Any) -> None:
        self._many = isinstance(result, list)
        results = result if self._many else [result]
        self._counts = [len(components(each) or (each,)) for each in results]

    def judge(self, expected: Json, path: str, comparison: Comparison) -> None:
        """Compares the number of places with that of the recorded devices; arrays do not name theirs."""
        counts = [len(devices) for devices in (expected if self._many else [expected])]
        comparison.match(counts, self._counts, path)


KINDS = {
    fn.__name__: fn
    for fn in (reduce, gather, all_reduce, all_gather, cross_device_reduce, cross_device_broadcast)
}
