"""Random calls of the assertions: operands that nearly agree, other dtypes and shapes, wrong arguments."""

from __future__ import annotations

import copy

from tests.differential.cases.values import Values
from tests.reference.interpreter.codec import Json

_TWO = ("equal", "none_equal", "less", "less_equal", "greater", "greater_equal", "near")
_ONE = ("positive", "negative", "non_negative", "non_positive", "integer", "scalar")
_PLAIN: tuple[Json, ...] = (
    {"py": 1},
    {"py": 1.0},
    {"py": True},
    {"pystr": "a"},
    {"list": [{"py": 1}, {"py": 2}]},
    None,
)


def case(values: Values) -> Json:
    """The next case."""
    make = values.either(_pair, _pair, _single, _rank, _rank_in, _finite, _shapes, _shapes)
    given: Json = make(values)
    if given["kind"] == "debugging" and given["fn"] != "check_numerics" and values.rarely(0.15):
        given["kwargs"] = {"message": {"pystr": values.either("custom-77", "", "a %s b")}}
    return given


def _call(fn: str, *args: Json) -> Json:
    return {"kind": "debugging", "fn": fn, "args": list(args)}


def _operand(values: Values) -> Json:
    return values.either(*_PLAIN) if values.rarely(0.1) else values.array()


def _pair(values: Values) -> Json:
    x = values.array()
    broadcast = [size if values.rarely(0.6) else 1 for size in x["s"]]
    y = values.either(_near(values, x), _near(values, x), values.array(x["t"], broadcast), _operand(values))
    return _call(f"assert_{values.either(*_TWO)}", x, y)


def _near(values: Values, x: Json) -> Json:
    other = values.array(x["t"], x["s"])
    return other if values.rarely(0.3) else copy.deepcopy(x)


def _single(values: Values) -> Json:
    return _call(f"assert_{values.either(*_ONE)}", _operand(values))


def _rank(values: Values) -> Json:
    rank = values.either(
        {"py": 0}, {"py": 1}, {"py": 2}, {"py": 1.0}, {"t": "int32", "s": [], "v": 1}, {"pystr": "1"}, None
    )
    return _call(values.either("assert_rank", "assert_rank_at_least"), _operand(values), rank)


def _rank_in(values: Values) -> Json:
    ranks = [{"py": rank} for rank in values.random.sample(range(4), values.either(0, 1, 2))]
    return _call("assert_rank_in", _operand(values), {"list": ranks})


def _finite(values: Values) -> Json:
    return _call(
        values.either("assert_all_finite", "check_numerics"), values.array(), {"pystr": "not finite"}
    )


def _shapes(values: Values) -> Json:
    return {"kind": "assert_shapes", "shapes": [_shape(values) for _ in range(values.either(0, 1, 2, 3))]}


def _shape(values: Values) -> Json:
    array = values.array(values.either("int32", "float32", "string"))
    symbols: list[Json] = [values.either(size, size, "N", "Q", None, ".", str(size)) for size in array["s"]]
    leading: Json = values.either({"ellipsis": True}, "*")
    changed = values.either(
        symbols,
        symbols,
        [leading, *symbols[values.random.randint(0, len(symbols)) :]],
        [*symbols, leading],
        symbols[1:],
        [*symbols, "N"],
        "".join("." if symbol is None else str(symbol) for symbol in symbols),
    )
    return [array, changed]
