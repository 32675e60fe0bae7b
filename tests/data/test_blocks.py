"""`map` on blocks of rows: the same elements, bit for bit, or row by row; no effect of a function is lost."""

from __future__ import annotations

import builtins
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.data import AUTOTUNE, Dataset, Options
from workbench.data.blocks.calls import BlockCalls
from workbench.data.blocks.table import BlockTable
from workbench.data.tables import Failed

N = 100
SCALE = 3
FACTORS = [2, 3]
COUNTS = {"calls": 0}


def without_blocks(dataset: Dataset) -> Dataset:
    options = Options()
    options.experimental_optimization.map_vectorization = False
    return dataset.with_options(options)


def bits(value: Any) -> Any:
    """A value with its types, to be compared bit for bit."""
    if isinstance(value, tuple):
        return tuple(map(bits, value))
    if isinstance(value, dict):
        return [(key, bits(part)) for key, part in value.items()]
    if isinstance(value, np.ndarray | np.generic):
        return (
            type(value),
            value.dtype.str,
            value.shape,
            value.tolist() if value.dtype == object else value.tobytes(),
        )
    return type(value), value


def outcomes(dataset: Dataset) -> list[Any]:
    found: list[Any] = []
    elements = iter(dataset)
    while True:
        try:
            found.append(bits(next(elements)))
        except StopIteration:
            return found
        except Exception as error:
            found.append((type(error), str(error), getattr(error, "__notes__", [])))


def in_blocks(dataset: Dataset) -> bool:
    """Whether some elements of the dataset were computed in blocks."""
    runs = list(dataset.open(dataset.numbered_pass(0)))
    return any(not isinstance(run, Failed) and isinstance(run.table, BlockTable) for run in runs)


def assert_same(made: Callable[[Dataset], Dataset], source: Dataset) -> None:
    assert outcomes(made(source)) == outcomes(without_blocks(made(source)))


VECTORS = Dataset.from_tensor_slices(np.random.default_rng(0).normal(size=(N, 3)).astype(np.float32))
PAIRS = Dataset.from_tensor_slices(
    (np.arange(N * 4, dtype=np.uint8).reshape(N, 2, 2), np.arange(N, dtype=np.int32))
)
NAMED = Dataset.from_tensor_slices({"x": np.linspace(-1, 1, N), "y": np.arange(N)})
TEXTS = Dataset.from_tensor_slices((np.arange(N), [b"%d" % n for n in range(N)]))


def doubled(x: Any) -> Any:
    return x * 2


def scaled(x: Any, by: float = 0.5) -> Any:
    y = doubled(x) - 1
    return y * by


def closure(offset: Any) -> Callable[..., Any]:
    return lambda x: x + offset


COMPUTED: dict[str, tuple[Dataset, Callable[..., Any]]] = {
    "arithmetic": (Dataset.range(N), lambda x: 2 * x + 1),
    "several results": (
        Dataset.range(N),
        lambda x: (x, x * x, x / 3, x > 4, -x, abs(x - 50), x % 7, x // 7, x**3),
    ),
    "a dict": (Dataset.range(N), lambda x: {"b": x, "a": x + 0.5}),
    "a list is a tuple": (Dataset.range(N), lambda x: [x, x + 1]),
    "a constant beside": (Dataset.range(N), lambda x: (x, 1, 0.5, True)),
    "nothing beside": (Dataset.range(N), lambda x: (x, None)),
    "one result twice": (Dataset.range(N), lambda x: (x + 1, x + 1)),
    "vectors": (VECTORS, lambda v: (v - 0.5) / 2),
    "squares of vectors": (VECTORS, lambda v: v**2),
    "images and labels": (PAIRS, lambda image, label: (image.astype(np.float32) / 255, label)),
    "bytes wrap in arrays": (PAIRS, lambda image, label: (image * 3, label * label)),
    "components of a dict": (NAMED, lambda row: {"x": row["x"] * row["y"], "y": row["y"]}),
    "text beside": (TEXTS, lambda number, text: (number + 1, text)),
    "functions of NumPy": (
        NAMED,
        lambda row: (np.sqrt(np.abs(row["x"])), np.logical_and(row["x"] > 0, row["y"] > 3)),
    ),
    "a ufunc itself": (Dataset.range(N), np.sqrt),
    "global numbers": (Dataset.range(N), lambda x: x * SCALE),
    "closures": (Dataset.range(N), closure(np.float32(0.1))),
    "functions of functions": (Dataset.range(N), scaled),
    "whole numbers, max": (Dataset.range(N), lambda x: np.maximum(x, 20)),
    "bits": (Dataset.range(N), lambda x: (x & 3) ^ 1),
    "types of Python": (Dataset.range(N), lambda x: x.astype(float)),
}


@pytest.mark.parametrize(("source", "function"), COMPUTED.values(), ids=COMPUTED.keys())
def test_exact_functions_are_computed_in_blocks_and_give_the_same(source: Dataset, function: Any) -> None:
    assert in_blocks(source.map(function))
    assert_same(lambda dataset: dataset.map(function), source)
    assert_same(lambda dataset: dataset.map(function).batch(7), source)
    assert_same(lambda dataset: dataset.shuffle(20, seed=1).map(function).batch(7), source)
    assert_same(lambda dataset: dataset.map(function, num_parallel_calls=AUTOTUNE).batch(7), source)


class Fits:
    """An object whose operators do what they like."""

    def __add__(self, other: Any) -> Any:
        return other + 1

    __radd__ = __add__


def branches(x: Any) -> Any:
    return x + 1 if x % 2 else x


def loops(x: Any) -> Any:
    for _ in range(3):
        x = x + 1
    return x


def handles_errors(x: Any) -> Any:
    try:
        return x.sum()
    except AttributeError:
        return x


def counts(x: Any) -> Any:
    COUNTS["calls"] += 1
    return x


def prints(x: Any) -> Any:
    print(x)
    return x


def in_place(row: Any) -> Any:
    row += 1
    return row


def stores(row: Any) -> Any:
    row["x"] = row["x"] * 2
    return row


def keyword_only(x: Any, *, by: int = 2) -> Any:
    return x * by


class Callable_:
    def __call__(self, x: Any) -> Any:
        return x * 2


REFUSED: dict[str, tuple[Dataset, Callable[..., Any]]] = {
    "branches": (Dataset.range(N), branches),
    "boolean operators": (Dataset.range(N), lambda x: x > 3 and x < 5),
    "loops": (Dataset.range(N), loops),
    "handlers": (Dataset.range(N), handles_errors),
    "comprehensions": (VECTORS, lambda v: np.array([part * 2 for part in v])),
    "sums": (VECTORS, lambda v: v.sum()),
    "functions of NumPy that sum": (VECTORS, lambda v: np.add.reduce(v)),
    "shapes": (VECTORS, lambda v: v * v.shape[0]),
    "dimensions": (VECTORS, lambda v: v * v.ndim),
    "lengths": (VECTORS, lambda v: v * len(v)),
    "sizes of bytes": (PAIRS, lambda image, label: (image * image.nbytes, label)),
    "indices": (VECTORS, lambda v: v[0] + v[1]),
    "sorting": (VECTORS, lambda v: np.sort(v)),
    "means": (VECTORS, lambda v: v - v.mean()),
    "matrix products": (VECTORS, lambda v: v @ v),
    "transposed": (PAIRS, lambda image, label: image.T),
    "axes": (VECTORS, lambda v: v.reshape(1, 3)),
    "mixed shapes": (PAIRS, lambda image, label: image * label),
    "an array as it is": (VECTORS, lambda v: v),
    "an array beside": (PAIRS, lambda image, label: (image, label + 1)),
    "exponentials": (VECTORS, lambda v: np.exp(v)),
    "powers of floats": (NAMED, lambda row: row["x"] ** 2),
    "largest floats": (VECTORS, lambda v: np.maximum(v, 0)),
    "fractions to whole numbers": (VECTORS, lambda v: v.astype(np.int32)),
    "whole numbers divided by elements": (NAMED, lambda row: 7 // (row["y"] + 1)),
    "half precision": (VECTORS, lambda v: v.astype(np.float16)),
    "in place": (VECTORS, in_place),
    "changes of the element": (NAMED, stores),
    "calls are counted": (Dataset.range(N), counts),
    "prints": (Dataset.range(N), prints),
    "random numbers": (Dataset.range(N), lambda x: x + random.random() * 0),
    "random numbers of NumPy": (Dataset.range(N), lambda x: x + np.random.random() * 0),
    "lists": (Dataset.range(N), lambda x: x * FACTORS[0]),
    "arrays around": (VECTORS, closure(np.ones(3, np.float32))),
    "objects with operators": (Dataset.range(N), closure(Fits())),
    "texts made": (Dataset.range(N), lambda x: f"{x}"),
    "types asked": (Dataset.range(N), lambda x: x * isinstance(x, np.generic)),
    "identity": (Dataset.range(N), lambda x: x * (x is None)),
    "kind of Python": (Dataset.range(N), lambda x: int(x) * 2),
    "keyword-only": (Dataset.range(N), keyword_only),
    "objects that can be called": (Dataset.range(N), Callable_()),
    "built-in functions": (Dataset.range(N), builtins.float),
    "nested functions": (Dataset.range(N), lambda x: (lambda y: y + 1)(x)),
    "lists inside": (Dataset.range(N), lambda x: ([x, x], x)),
    "datasets": (Dataset.range(N), lambda x: Dataset.range(2).reduce(np.int64(0), lambda a, b: a + b)),
    "numbers beyond the dtype": (PAIRS, lambda image, label: (image + 300, label)),
    "signs mixed": (PAIRS, lambda image, label: (image + np.int8(-1), label)),
    "failing": (Dataset.range(N), lambda x: x.nothing),
    "texts": (Dataset.from_tensor_slices([b"a"] * N), lambda text: text + b"!"),
}  # fmt: skip


@pytest.mark.parametrize(("source", "function"), REFUSED.values(), ids=REFUSED.keys())
def test_any_other_function_is_called_row_by_row(source: Dataset, function: Any, capfd: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not in_blocks(source.map(function))
        if function is not in_place:  # it changes what it reads
            assert_same(lambda dataset: dataset.map(function).batch(7), source)


def test_a_function_with_effects_is_called_once_for_each_element_that_is_asked_for() -> None:
    COUNTS["calls"] = 0
    assert len(list(Dataset.range(N).map(counts).batch(10))) == 10
    assert COUNTS["calls"] == N


def test_a_number_that_changes_between_elements_is_used_from_then_on() -> None:
    factor = 2

    def function(x: Any) -> Any:
        return x * factor

    assert in_blocks(Dataset.range(N).map(function))
    for dataset in (
        Dataset.range(N).map(function),
        Dataset.range(N).map(function).cache(),
        Dataset.range(N).map(lambda x: x + 1).map(function),
        Dataset.range(N).map(function).map(lambda x: x + 1),
        Dataset.range(N).map(function).batch(1).unbatch(),
        Dataset.zip((Dataset.range(N).map(function), Dataset.range(N))),
    ):
        results = []
        for both in (dataset, without_blocks(dataset)):
            factor = 2
            elements = iter(both)
            found = [bits(next(elements)) for _ in range(5)]
            factor = 5
            results.append(found + [bits(next(elements)) for _ in range(5)])
        assert results[0] == results[1]


def test_a_function_whose_code_or_name_changes_is_called_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    elements = iter(Dataset.range(N).map(scaled).batch(5))
    assert next(elements).tolist() == [-0.5, 0.5, 1.5, 2.5, 3.5]
    monkeypatch.setitem(globals(), "doubled", lambda x: x * 4)
    assert next(elements).tolist() == [9.5, 11.5, 13.5, 15.5, 17.5]


def test_another_structure_since_a_name_changed_is_an_error_and_no_wrong_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    elements = iter(Dataset.range(N).map(scaled))
    assert next(elements) == -0.5
    monkeypatch.setattr(scaled, "__code__", (lambda x, by=0.5: (x, x)).__code__)
    with pytest.raises(ValueError, match="element 1 has a different structure from those before it"):
        next(elements)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8])
def test_single_numbers_that_overflow_warn_as_ever(dtype: Any) -> None:
    top = np.iinfo(dtype).max
    source = Dataset.from_tensor_slices(np.arange(top - 40, top, dtype=dtype) + dtype(1))
    for function in (lambda x: x + 1, lambda x: x * 2, lambda x: x * x):
        with pytest.warns(RuntimeWarning, match="overflow encountered in scalar"):
            found = outcomes(source.map(function))
        with pytest.warns(RuntimeWarning, match="overflow encountered in scalar"):
            assert found == outcomes(without_blocks(source.map(function)))


def test_an_element_of_which_numpy_warns_fails_by_itself_where_warnings_are_errors() -> None:
    source = Dataset.range(N).map(lambda x: 1 / (x - 50))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = outcomes(source.batch(10))
        assert found == outcomes(without_blocks(source.batch(10)))
    assert sum(outcome[0] is RuntimeWarning for outcome in found) == 1


def test_divisions_by_zero_that_numpy_is_told_to_ignore_are_computed_alike() -> None:
    with np.errstate(all="ignore"):
        assert in_blocks(Dataset.range(N).map(lambda x: (x - 50) / (x - 50)))
        assert_same(
            lambda dataset: dataset.map(lambda x: ((x - 50) / (x - 50), np.sqrt(x - 50.0))), Dataset.range(N)
        )


def test_results_may_be_changed_in_place() -> None:
    source = Dataset.from_tensor_slices((np.arange(N), np.ones((N, 2))))
    for dataset in (source.map(lambda x, y: (x, x + 1, y * 2)), source.map(lambda x, y: (x, x, y * 2))):
        before = outcomes(dataset.batch(10))
        for first, second, third in dataset.batch(10):
            first += 1
            second *= 0
            third -= 5
        for _, _, row in dataset:
            row -= 5
        assert outcomes(dataset.batch(10)) == before


def test_columns_of_any_layout_give_rows_as_before() -> None:
    array = np.asfortranarray(np.arange(N * 6, dtype=np.float64).reshape(N, 2, 3))
    for values in (array, array[::-1], array[:, ::-1], np.arange(N, dtype=">i4"), np.arange(2 * N)[::2]):
        source = Dataset.from_tensor_slices(values)
        assert_same(lambda dataset: dataset.map(lambda x: x + 1), source)
        (batch,) = source.map(lambda x: x + 1).batch(N)
        assert batch.flags.c_contiguous
        assert batch.flags.writeable


def test_order_of_shuffles_and_of_what_is_taken_ahead_does_not_depend_on_it() -> None:
    for made in (
        lambda dataset: dataset.map(doubled).shuffle(7, seed=3),
        lambda dataset: dataset.map(doubled).shuffle(N, seed=3).batch(9),
        lambda dataset: dataset.map(doubled).shuffle(1, seed=3),
        lambda dataset: dataset.map(doubled).concatenate(Dataset.range(50)).shuffle(30, seed=3),
        lambda dataset: Dataset.range(50).concatenate(dataset.map(doubled)).shuffle(30, seed=3),
        lambda dataset: dataset.map(doubled).batch(4).shuffle(5, seed=3),
        lambda dataset: dataset.map(doubled).batch(4).unbatch().shuffle(3, seed=3),
        lambda dataset: dataset.map(doubled).batch(4).unbatch().shuffle(30, seed=3),
        lambda dataset: dataset.map(doubled).batch(1).unbatch().shuffle(3, seed=3),
        lambda dataset: dataset.map(doubled).batch(4).rebatch(7).shuffle(3, seed=3),
        lambda dataset: dataset.map(doubled).take(40).repeat(2).shuffle(30, seed=3),
        lambda dataset: dataset.map(doubled).prefetch(9).shuffle(30, seed=3),
        lambda dataset: dataset.map(doubled).prefetch(3).batch(4).prefetch(2),
        lambda dataset: dataset.map(doubled).repeat(2).skip(5).take(120).shard(3, 1),
        lambda dataset: dataset.map(doubled).window(4, 2).flat_map(lambda window: window.batch(4)),
        lambda dataset: dataset.map(doubled).enumerate().padded_batch(3),
        lambda dataset: dataset.map(doubled).batch(5).map(doubled).unbatch().unique(),
        lambda dataset: (
            dataset.map(doubled).filter(lambda x: x % 3 == 0).scan(np.int64(0), lambda s, x: (s + x, s))
        ),
        lambda dataset: dataset.map(doubled).cache().repeat(2),
        lambda dataset: dataset.interleave(lambda x: Dataset.range(20).map(doubled), 3, 4).take(500),
    ):
        assert_same(made, Dataset.range(N))


def test_order_of_shuffles_is_the_same_where_elements_are_numbered() -> None:
    both = Dataset.range(50).map(doubled).concatenate(Dataset.range(60).map(doubled))
    for dataset in (
        both.shuffle(30, seed=3),
        both.batch(4).unbatch().shuffle(30, seed=3),
        both.batch(4).shuffle(3, seed=3),
    ):
        found = [
            [
                bits(run.table.row(row)[0])
                for run in dataset.open(dataset.numbered_pass(0, provenance=known))
                for row in run.indices()
            ]
            for known in (False, True)
        ]
        assert found[0] == found[1]
        assert found[0] == outcomes(without_blocks(dataset))


def test_source_elements_behind_results_are_known() -> None:
    dataset = Dataset.range(N).shuffle(N, seed=2).map(doubled).batch(10)
    runs = list(dataset.open(dataset.numbered_pass(0, provenance=True)))
    for run in runs:
        for row in run.indices():
            values = run.table.row(row)[0]
            assert (run.table.ids(range(row, row + 1)) * 2).tolist() == values.tolist()


def test_a_block_that_gives_something_else_is_never_used(monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.data.blocks import expression

    original = expression.Expression.of_rows

    def wrong(self: Any, columns: Any) -> Any:
        results = original(self, columns)
        assert results is not None
        return [column + 1 for column in results]

    monkeypatch.setattr(expression.Expression, "of_rows", wrong)
    dataset = Dataset.range(N).map(doubled)
    assert not in_blocks(dataset)
    assert [int(x) for x in dataset] == list(range(0, 2 * N, 2))
    assert "map(doubled): called row by row: it gives something else for a block." in " ".join(
        repr(dataset.explain()).split()
    )


def test_later_blocks_are_compared_too(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []
    original = BlockCalls._compared

    def noted(self: Any, part: Any, columns: Any, first: int) -> Any:
        compared.append(first)
        return original(self, part, columns, first)

    monkeypatch.setattr(BlockCalls, "_compared", noted)
    assert len(list(Dataset.range(10_000).map(doubled).batch(100))) == 100
    assert compared == [0, 4096, 8192]


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (doubled, "computed for 100 rows at a time, which gives the same as row by row"),
        (branches, "called row by row: it has branches or loops"),
        (counts, "called row by row: it does more than compute"),
        (lambda x: x * FACTORS[0], "called row by row: it refers to list 'FACTORS'"),
        (lambda x: np.exp(x), "called row by row: 'exp' is not known to be exact element by element"),
        (lambda x: random.random(), "called row by row: 'random' is not known to be exact"),
    ],
)
def test_explain_tells_what_was_chosen_and_why(function: Any, why: str) -> None:
    assert why in " ".join(repr(Dataset.range(N).map(function, name="f").explain()).split())


@pytest.mark.parametrize("option", ["map_vectorization", "apply_default_optimizations"])
def test_an_option_turns_it_off(option: str) -> None:
    options = Options()
    setattr(options.experimental_optimization, option, False)
    dataset = Dataset.range(N).map(doubled)
    assert in_blocks(dataset)
    assert not in_blocks(dataset.with_options(options))
    options = Options()
    options.experimental_optimization.apply_default_optimizations = False
    options.experimental_optimization.map_vectorization = True
    assert in_blocks(dataset.with_options(options))


def test_large_and_few_elements_are_left_to_calls() -> None:
    assert not in_blocks(Dataset.from_tensor_slices(np.zeros((20, 2000))).map(doubled))
    assert not in_blocks(Dataset.range(7).map(doubled))
    assert in_blocks(Dataset.range(8).map(doubled))


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.1, 1e300, -1e300, 5e-324, float("inf"), float("-inf"), float("nan")]
DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]
BINARY = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "**": lambda a, b: a**b,
    "==": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "max": lambda a, b: np.maximum(a, b),
    "and": lambda a, b: np.logical_and(a, b),
    "xor": lambda a, b: np.logical_xor(a, b),
}
UNARY = {
    "neg": lambda a: -a,
    "abs": lambda a: abs(a),
    "invert": lambda a: ~a,
    "sqrt": lambda a: np.sqrt(a),
    "square": lambda a: np.square(a),
    "not": lambda a: np.logical_not(a),
    "isnan": lambda a: np.isnan(a),
    "f4": lambda a: a.astype(np.float32),
    "i2": lambda a: a.astype(np.int16),
    "u8": lambda a: a.astype("uint64"),
    "bool": lambda a: a.astype(bool),
}  # fmt: skip


def numbers(dtype: str, count: int) -> st.SearchStrategy[Any]:
    kind = np.dtype(dtype)
    if kind.kind == "f":
        values: st.SearchStrategy[Any] = st.sampled_from(SPECIAL) | st.floats(width=kind.itemsize * 8)  # type: ignore[arg-type]
    elif kind.kind == "b":
        values = st.booleans()
    else:
        limits = np.iinfo(kind)
        values = st.integers(-3, 3) | st.integers(int(limits.min), int(limits.max))
        values = values.filter(lambda value: limits.min <= value <= limits.max)
    return st.lists(values, min_size=count, max_size=count)


@st.composite
def functions(draw: st.DrawFn) -> Callable[[Any, Any], Any]:
    """A function of two components: some operations of each kind on arguments, results and constants."""
    constants = st.sampled_from(
        [0, 1, -1, 2, 3, 255, 0.5, -2.0, np.float32(0.1), np.int8(3), np.float64(1e-3), True]
    )
    steps: list[tuple[Any, ...]] = []
    for number in range(draw(st.integers(1, 4))):
        operand = st.integers(0, number + 1)
        if draw(st.booleans()):
            steps.append((UNARY[draw(st.sampled_from(sorted(UNARY)))], draw(operand)))
        else:
            other = draw(constants) if draw(st.booleans()) else None
            place = draw(operand)
            steps.append((BINARY[draw(st.sampled_from(sorted(BINARY)))], draw(operand), place, other))
    return _composed(steps)


def _composed(steps: list[tuple[Any, ...]]) -> Callable[[Any, Any], Any]:
    """Straight code for the steps, as a user would write it."""
    space: dict[str, Any] = {"np": np}
    lines = []
    for number, step in enumerate(steps):
        space[f"f{number}"] = step[0]
        if len(step) == 2:
            call = f"f{number}(v{step[1]})"
        elif step[3] is None:
            call = f"f{number}(v{step[1]}, v{step[2]})"
        else:
            space[f"c{number}"] = step[3]
            call = f"f{number}(v{step[1]}, c{number})"
        lines.append(f"    v{number + 2} = {call}")
    names = ", ".join(f"v{number + 2}" for number in range(len(steps)))
    exec("def function(v0, v1):\n" + "\n".join(lines) + f"\n    return ({names},)", space)
    return space["function"]  # type: ignore[no-any-return]


@settings(max_examples=150, deadline=None)
@given(data=st.data(), function=functions(), shape=st.sampled_from([(), (2,)]))
def test_whatever_is_computed_in_blocks_is_what_calls_give(
    data: Any, function: Any, shape: tuple[int, ...]
) -> None:
    count = 12
    columns = []
    for _ in range(2):
        dtype = data.draw(st.sampled_from(DTYPES))
        size = count * int(np.prod(shape))
        drawn = data.draw(numbers(dtype, size))
        with np.errstate(all="ignore"):
            columns.append(np.array(drawn, dtype).reshape(count, *shape))
    source = Dataset.from_tensor_slices(tuple(columns))
    for state in ("warn", "ignore"):
        with np.errstate(all=state), warnings.catch_warnings():  # type: ignore[arg-type]
            warnings.simplefilter("ignore")
            assert_same(lambda dataset: dataset.map(function), source)
            assert_same(lambda dataset: dataset.map(function).batch(5), source)
        with np.errstate(all=state), warnings.catch_warnings():  # type: ignore[arg-type]
            warnings.simplefilter("error")
            assert_same(lambda dataset: dataset.map(function).batch(5), source)


@pytest.fixture(autouse=True)
def _default_errors() -> Iterator[None]:
    with np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"):
        yield
