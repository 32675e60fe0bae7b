"""Variables, on both kinds of cluster."""

from __future__ import annotations

import copy
import gc
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import workbench as wb
from workbench.distribute import get_replica_context
from workbench.distribute.variables.variable import variable_of
from workbench.errors import CaptureError, FailedPreconditionError, InvalidArgumentError


def _replica() -> int:
    return get_replica_context().replica_id_in_sync_group


def _components(variable: Any) -> list[Any]:
    return [part.numpy().tolist() for part in variable.values]


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [("NONE", [11, 12]), ("SUM", [13, 13]), ("MEAN", [11.5, 11.5]), ("ONLY_FIRST_REPLICA", [11, 11])],
)
def test_aggregation_says_what_replicas_add(strategy: Any, aggregation: str, expected: list[float]) -> None:
    with strategy.scope():
        v = wb.Variable(10.0, aggregation=aggregation)
    strategy.run(lambda: v.assign_add(np.float32(_replica() + 1)))
    assert _components(v) == expected


@pytest.mark.parametrize(
    ("aggregation", "expected"), [("SUM", 3.0), ("MEAN", 1.5), ("ONLY_FIRST_REPLICA", 1.0)]
)
def test_sync_on_read_variables_aggregate_when_read(strategy: Any, aggregation: str, expected: float) -> None:
    with strategy.scope():
        v = wb.Variable(0.0, synchronization="ON_READ", aggregation=aggregation)
    strategy.run(lambda: v.assign(np.float32(_replica() + 1)))
    assert v.read_value() == expected
    assert _components(v) == [1, 2]
    v.assign(8.0)
    assert v.numpy() == 8
    assert not v.trainable


def test_a_number_that_differs_by_replica_can_be_summed(strategy: Any) -> None:
    with strategy.scope():
        v = wb.Variable(0, aggregation="SUM")
    strategy.run(lambda: v.assign(_replica() + 1))
    assert v.numpy() == 3
    with pytest.raises(ValueError, match="same number 2 times"):
        strategy.run(lambda: v.assign(4))


def test_a_variable_acts_as_its_array(strategy: Any) -> None:
    with strategy.scope():
        v = wb.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")

    def step() -> tuple[Any, ...]:
        return v @ v, 1 - v, v[0], np.asarray(v).sum(), np.from_dlpack(v).shape, -v, v > 2, np.exp(v), len(v)

    for place in (strategy.run(step), [wb.distribute.PerReplica((leaf,)) for leaf in step()]):
        product, flipped, row, total, *_ = place
        np.testing.assert_array_equal(product.values[-1], [[7, 10], [15, 22]])
        np.testing.assert_array_equal(flipped.values[0], [[0, -1], [-2, -3]])
        assert row.values[0].tolist() == [1, 2]
        assert total.values[0] == 10
    assert np.from_dlpack(v).shape == (2, 2)
    assert (v.name, v.shape, v.dtype.name, v.ndim, v.size) == ("w:0", (2, 2), "float32", 2, 4)


def test_what_is_read_cannot_be_written_to(strategy: Any) -> None:
    with strategy.scope():
        v = wb.Variable([1.0, 2.0])

    def write() -> None:
        v.read_value()[0] = 5

    for misuse in (write, lambda: strategy.run(write)):
        with pytest.raises(ValueError, match="read-only"):
            misuse()
    v.numpy()[0] = 5  # a copy
    with pytest.raises(TypeError, match="assign_add"):
        v += 1
    with pytest.raises(TypeError, match="assign"):
        v[0] = 1
    with pytest.raises(TypeError, match="out="):
        np.add(v, 1, out=v)
    assert v.numpy().tolist() == [1, 2]


def test_an_array_that_was_assigned_stays_the_callers(strategy: Any) -> None:
    with strategy.scope():
        initial = np.zeros(2, np.float32)
        v = wb.Variable(initial)
    initial[0] = 9

    def step() -> None:
        mine = np.ones(2, np.float32)
        v.assign(mine)
        mine[0] = 9

    assert v.numpy().tolist() == [0, 0]
    strategy.run(step)
    assert _components(v) == [[1, 1], [1, 1]]


def test_a_failed_step_leaves_no_trace(strategy: Any) -> None:
    with strategy.scope():
        v = wb.Variable([1.0])

    def step() -> None:
        v.assign_add(np.ones(1, np.float32))
        if _replica() == 1:
            raise KeyError("late")

    with pytest.raises(KeyError):
        strategy.run(step)
    assert _components(v) == [[1], [1]]
    strategy.run(lambda: v.assign_add(np.ones(1, np.float32)))
    assert _components(v) == [[2], [2]]


@pytest.mark.parametrize("how", ["assign", "assign_add", "assign_sub"])
def test_values_that_do_not_fit_are_refused(strategy: Any, how: str) -> None:
    with strategy.scope():
        v = wb.Variable([1, 2], name="n")
    for place in (lambda fn: fn(), strategy.run):
        with pytest.raises(ValueError, match=r"'n:0'.*shape \(3,\)"):
            place(lambda: getattr(v, how)([1, 2, 3]))
        with pytest.raises(InvalidArgumentError, match=r"astype\(np.int32\)"):
            place(lambda: getattr(v, how)(np.array([1.5, 2.5])))
        with pytest.raises(TypeError, match="a value of float32 does not fit int32"):
            place(lambda: getattr(v, how)([1.5, 2.5]))


def test_a_variable_of_texts_takes_texts_alone(strategy: Any) -> None:
    with strategy.scope():
        v = wb.Variable(np.array(b"a", object))
    v.assign(np.array(b"b", object))
    assert v.numpy().item() == b"b"
    with pytest.raises(InvalidArgumentError, match="a value of int64 does not fit object"):
        v.assign(np.array(1))


@pytest.mark.parametrize("dtype", [None, "string"])
@pytest.mark.parametrize(
    "texts", [["a", "b"], ["a", b"b"], np.array(["a", "b"]), np.array(["a", "b"], object)]
)
def test_a_variable_of_texts_has_bytes_objects(texts: Any, dtype: Any) -> None:
    variable = wb.Variable(texts, dtype=dtype)
    assert variable.numpy().tolist() == [b"a", b"b"]
    assert variable.assign(np.array(["longer", ""])).numpy().tolist() == [b"longer", b""]
    with pytest.raises(TypeError, match="may hold only text and bytes, item 1 is int"):
        variable.assign(np.array(["a", 1], object))
    with pytest.raises(TypeError, match="may hold only text and bytes, item 0 is int"):
        wb.Variable(np.array([1, 2], object), dtype=dtype)


@pytest.mark.parametrize(("initial", "other"), [(True, np.array(True)), ("a", "b")])
def test_bools_and_texts_are_assigned_and_not_computed_with(strategy: Any, initial: Any, other: Any) -> None:
    with strategy.scope():
        v = wb.Variable(initial, aggregation="ONLY_FIRST_REPLICA")
        alone = wb.Variable(initial, synchronization="ON_READ", aggregation="SUM")

    for variable in (v, wb.Variable(initial)):
        with pytest.raises(
            InvalidArgumentError, match=r"^assign_add on variable .* needs numbers, got dtype "
        ):
            variable.assign_add(other)
    with pytest.raises(InvalidArgumentError, match=r"assign_sub on variable .* needs numbers"):
        strategy.run(lambda: v.assign_sub(other))
    with pytest.raises(InvalidArgumentError, match="ON_READ with SUM, needs numbers"):
        alone.assign(other)
    assert [part.numpy() for part in v.values] == [wb.Variable(initial).numpy()] * 2


@pytest.mark.parametrize("texts", [["b", "a longer one"], "c"])
def test_the_first_replicas_texts_are_everybodys(strategy: Any, texts: Any) -> None:
    with strategy.scope():
        v = wb.Variable(np.full(np.shape(texts), "a", object), aggregation="ONLY_FIRST_REPLICA")

    strategy.run(lambda: v.assign(texts if _replica() == 0 else np.full(np.shape(texts), "other", object)))

    expected = np.char.encode(texts).tolist()
    assert _components(v) == [expected, expected]


@pytest.mark.parametrize("value", [True, np.array(False)])
def test_bools_have_no_sum_over_replicas(strategy: Any, value: Any) -> None:
    with strategy.scope():
        v = wb.Variable(True, aggregation="SUM")

    with pytest.raises(InvalidArgumentError, match="needs numbers, got dtype bool"):
        strategy.run(lambda: v.assign(value))


@pytest.mark.parametrize("initial", ["a", 1j, True, 1])
def test_a_mean_needs_floating_numbers(strategy: Any, initial: Any) -> None:
    with strategy.scope(), pytest.raises(ValueError, match="aggregation MEAN needs a floating dtype"):
        wb.Variable(initial, aggregation="MEAN")


@pytest.mark.parametrize("how", ["assign", "assign_add", "scatter_update"])
def test_narrow_whole_numbers_of_ml_dtypes_do_not_wrap_around(how: str) -> None:
    variable = wb.Variable([0, 0], dtype="int4")

    def change(values: Any) -> Any:
        return getattr(variable, how)(wb.IndexedSlices(values, [0, 1]) if how == "scatter_update" else values)

    assert change([-8, 7]).numpy().tolist() == [-8, 7]
    for value in ([8, 0], np.array([0, -9]), [0.5, 0]):
        with pytest.raises(
            (TypeError, ValueError), match=r"fit int4; convert it with value\.astype\(ml_dtypes\.int4\)"
        ):
            change(value)
    assert variable.numpy().tolist() == [-8, 7]


def test_kinds_that_cannot_be_are_refused(strategy: Any) -> None:
    with strategy.scope():
        with pytest.raises(ValueError, match="floating dtype"):
            wb.Variable(1, aggregation="MEAN")
        with pytest.raises(ValueError, match="ON_READ for"):
            wb.Variable(1.0, synchronization="NONE")
        with pytest.raises(ValueError, match="unknown VariableAggregation 'max'"):
            wb.Variable(1.0, aggregation="max")
        unread = wb.Variable(1.0, synchronization="ON_READ")
    with pytest.raises(ValueError, match="no common value"):
        unread.read_value()


@pytest.mark.parametrize("aggregation", ["NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA"])
def test_each_component_gets_its_part_of_a_per_replica(strategy: Any, aggregation: str) -> None:
    value = strategy.distribute_values_from_function(lambda c: np.float32(c.replica_id_in_sync_group + 1))
    with strategy.scope():
        written = wb.Variable(0.0, aggregation=aggregation)
        apart = wb.Variable(0.0, synchronization="ON_READ", aggregation=aggregation)
    for variable in (written, apart):
        variable.assign(value)
        assert _components(variable) == [1, 2]
    written.assign_add(value)
    assert _components(written) == [2, 4]
    with pytest.raises(ValueError, match=r"has shape \(2,\)"):
        written.assign(strategy.run(lambda: np.ones(2, np.float32)))


def test_assigning_in_a_merge_function_gives_each_component_its_part(strategy: Any) -> None:
    with strategy.scope():
        v = wb.Variable(0.0, aggregation="SUM")

    def merge(_: Any, x: Any) -> None:
        v.assign(x)

    strategy.run(lambda: get_replica_context().merge_call(merge, (np.float32(_replica() + 1),)))
    assert _components(v) == [1, 2]


def test_components_can_be_updated_alone(strategy: Any) -> None:
    with strategy.scope():
        v = wb.Variable(1.0, name="w")
    first, second = strategy.local_results(v)
    second.assign_add(4.0)
    assert _components(v) == [1, 5]
    assert (first.name, second.name) == ("w:0", "w/replica_1:0")
    assert first.device != second.device
    strategy.extended.update(v, lambda part, x: part.assign_sub(x), args=(np.float32(1),))
    assert _components(v) == [0, 4]
    assert strategy.extended.update(v, lambda part: part * 2, group=False) == (0, 8)
    both = strategy.extended.update(v, lambda part: {"twice": part * 2, "nothing": None})
    assert isinstance(both["twice"], wb.distribute.DistributedValues)
    assert both["twice"].values == (0, 8)
    assert both["nothing"] is None


def test_a_variable_made_in_a_replica_function_lasts(strategy: Any) -> None:
    def make() -> Any:
        made = wb.Variable(5.0 + _replica(), name="inner", aggregation="SUM")
        made.assign_add(np.float32(1))
        return made

    made = strategy.run(make)
    gc.collect()
    assert isinstance(made, wb.Variable)
    assert _components(made) == [7, 7]
    strategy.run(lambda: made.assign_add(np.float32(1)))
    assert made.numpy() == 9


def test_a_variable_made_in_a_replica_function_is_one_object(local: Any) -> None:
    seen: list[Any] = []

    def make() -> Any:
        made = wb.Variable(float(_replica()), name="inner")
        seen.append(made)
        return made

    made = local.run(make)
    assert [other is made for other in seen] == [True, True]
    assert _components(made) == [0, 0]


def test_a_variable_made_in_a_replica_function_has_one_name(strategy: Any) -> None:
    with pytest.raises(RuntimeError, match="under different names, 'n0', 'n1'"):
        strategy.run(lambda: wb.Variable(1.0, name=f"n{_replica()}"))
    with pytest.raises(
        RuntimeError, match="a variable with a constraint cannot be created in a replica function"
    ):
        strategy.run(lambda: wb.Variable(1.0, constraint=abs))


def test_a_variable_knows_its_strategy_its_constraint_and_a_key_for_itself(strategy: Any) -> None:
    with strategy.scope():
        v = wb.Variable(1.0, constraint=np.abs)
        other = wb.Variable(1.0)
    plain = wb.Variable(1.0)
    assert v.distribute_strategy is strategy
    assert plain.distribute_strategy is None
    assert v.constraint is np.abs
    assert other.constraint is None
    with pytest.raises(ValueError, match="constraint must be None or a function"):
        wb.Variable(1.0, constraint=3)
    seen = {v.ref(): "v", other.ref(): "other", plain.ref(): "plain", v.values[1].ref(): "part"}
    v.assign(2.0)
    assert len(seen) == 4
    assert seen[v.ref()] == "v"
    assert seen[v.values[1].ref()] == "part"
    assert v.ref().deref() is v
    assert strategy.reduce("SUM", strategy.run(lambda: len({v.ref(), other.ref(), v.ref()})), axis=None) == 4


def test_an_assignment_may_return_nothing(strategy: Any) -> None:
    with strategy.scope():
        v = wb.Variable(1.0)
    for variable in (v, wb.Variable(1.0), v.values[0]):
        assert variable.assign(2.0, use_locking=True, name="set") is variable
        assert variable.assign_add(2.0, read_value=False) is None
        assert variable.assign_sub(1.0, read_value=False) is None
        assert variable.numpy() == 3


def test_replicas_forget_a_deleted_variable_with_the_next_one(strategy: Any) -> None:
    with strategy.scope():
        gone = wb.Variable(1.0)
    description = gone.description
    del gone
    gc.collect()
    with strategy.scope():
        _ = wb.Variable(2.0)
    stale = pickle.loads(pickle.dumps(description))
    with pytest.raises(FailedPreconditionError, match="does not hold the variable 'Variable:0'"):
        strategy.run(lambda: variable_of(stale).read_value())


def test_a_plain_variable_lives_on_the_host(strategy: Any) -> None:
    plain = wb.Variable(lambda: [1.0, 2.0])
    plain.assign_add([1.0, 1.0])
    assert plain.numpy().tolist() == [2, 3]
    assert plain.strategy is None
    assert len(plain.values) == 1
    with pytest.raises(CaptureError, match=r"with strategy.scope\(\)"):
        pickle.dumps(plain)


def test_a_plain_variable_in_a_replica_function_of_processes_is_explained(strategy: Any) -> None:
    plain = wb.Variable(1.0, name="outside")
    if strategy.group.gang.shipping.codec.by_reference:
        assert strategy.run(lambda: plain + 1).values == (2, 2)
        return
    with pytest.raises(CaptureError, match=r"captures 'plain'.*'outside:0'.*with strategy.scope\(\)"):
        strategy.run(lambda: plain + 1)
    with pytest.raises(CaptureError, match=r"'outside:0'.*with strategy.scope\(\)"):
        strategy.run(lambda x: x + 1, args=({"x": plain},))
    assert strategy.run(lambda: 1).values == (1, 1)


def test_a_variable_belongs_to_one_strategy(threads: Any) -> None:
    mine, other = (wb.MirroredStrategy(["CPU:0", "CPU:1"]) for _ in range(2))
    with mine.scope():
        v = wb.Variable(1.0)
    with pytest.raises(RuntimeError, match="another strategy"):
        other.run(lambda: v + 1)
    with other.scope(), pytest.raises(RuntimeError, match="scope of another strategy"):
        v.assign(2.0)


def test_a_variable_is_itself_again_after_travelling(strategy: Any) -> None:
    with strategy.scope():
        v = wb.Variable(1.0)
    assert pickle.loads(pickle.dumps(v)) is v
    assert strategy.run(lambda: {"v": [v]})["v"][0] is v
    assert strategy.run(lambda x: x, args=(v,)) is v


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (3, "int32"),
        (2**31, "int64"),
        (3.5, "float32"),
        (True, "bool"),
        (1j, "complex128"),
        ([1, 2.5], "float32"),
        ([], "float32"),
        ([np.float64(1), 2.0], "float64"),
        (np.arange(3), "int64"),
    ],
)
def test_python_numbers_get_32_bits_and_arrays_keep_their_dtype(value: Any, dtype: str) -> None:
    assert wb.Variable(value).dtype == dtype
    assert wb.Variable(lambda: value).dtype == dtype


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (3, "uint8"),
        (-1, np.int8),
        (2**40, np.int64),
        (2, "bfloat16"),
        (True, np.int32),
        ([], np.int32),
        (-8, "int4"),
        (True, "uint2"),
        (2**64, np.float64),
        ([2**64, 1, 2], np.float64),
        ([[2**64, 0.1], [1, 2]], np.float64),
        ([1, 2**63], np.uint64),
        ([0.1, 1j], np.complex128),
        (0.1, np.complex128),
        (0.1, ">f8"),
        ([], "string"),
        ("a", "string"),
    ],
)
def test_an_initial_value_takes_the_dtype_that_is_named(value: Any, dtype: Any) -> None:
    assert wb.Variable(value, dtype=dtype).numpy().tolist() == (
        value.encode() if isinstance(value, str) else value
    )


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1.5, np.int32),
        (300, "uint8"),
        (-1, np.uint32),
        (2**31, np.int32),
        (1j, "bfloat16"),
        (300, "int4"),
        (-1, "uint4"),
        (0.5, "int4"),
        (np.array([0, 8], "int8"), "int4"),
        (np.array(-1).astype(ml_dtypes.int4), np.uint8),
        (-1, np.uint64),
        ([-1, 2**63], np.uint64),
        (1.0, "string"),
        ([1, 2], "string"),
        (np.array([1, 2]).astype(ml_dtypes.bfloat16), "string"),
        (1.0, "V4"),
        (np.zeros(2, "V8"), np.float64),
    ],
)
def test_a_dtype_that_cannot_hold_the_initial_value_is_refused(value: Any, dtype: Any) -> None:
    with pytest.raises(TypeError, match=r"the initial value of a variable: [|\w]+ does not fit"):
        wb.Variable(value, dtype=dtype)


@pytest.mark.parametrize(
    ("dtype", "instead"),
    [
        (np.int32, r"convert it with np\.asarray\(value\)\.astype\(np\.int32\), or"),
        ("int4", r"convert it with np\.asarray\(value\)\.astype\(ml_dtypes\.int4\), or"),
        ("string", "give texts, or"),
        ("V4", r"give an array of dtype '\|V4', or"),
    ],
)
def test_the_error_says_how_to_get_a_value_of_the_dtype(dtype: Any, instead: str) -> None:
    with pytest.raises(TypeError, match=f"{instead} leave dtype out$"):
        wb.Variable(1.5, dtype=dtype)


@pytest.mark.parametrize("how", ["assign", "assign_add"])
def test_whole_numbers_are_assigned_where_they_fit(strategy: Any, how: str) -> None:
    with strategy.scope():
        variable = wb.Variable(np.zeros(2, np.uint8))

    def step(value: Any) -> None:
        getattr(variable, how)(value)

    strategy.run(step, args=([3, 4],))
    assert variable.numpy().tolist() == [3, 4]
    getattr(variable, how)(np.array([1, 2], np.int64))
    assert variable.dtype == np.uint8
    for error, value in ((TypeError, [0, 300]), (TypeError, [-1, 0]), (ValueError, np.array([0, 2**40]))):
        with pytest.raises(error, match="does not fit uint8"):
            getattr(variable, how)(value)


def test_synchronization_and_aggregation_print_their_names() -> None:
    variable = wb.Variable(1.0, aggregation="sum")
    assert f"{variable.aggregation} {variable.synchronization}" == (
        "VariableAggregation.SUM VariableSynchronization.AUTO"
    )


@pytest.mark.parametrize("aggregation", ["none", "mean", "only_first_replica"])
def test_a_wide_variable_keeps_all_digits_of_pythons_numbers(strategy: Any, aggregation: str) -> None:
    with strategy.scope():
        variable = wb.Variable([0.1, 0.0], dtype=np.float64, aggregation=aggregation)
        total = wb.Variable(0.0, dtype=np.float64, synchronization="on_read", aggregation="sum")
    assert variable.numpy().tolist() == [0.1, 0.0]

    def step() -> None:
        variable.assign([0.1, 0.3])

    strategy.run(step)
    assert variable.numpy().tolist() == [0.1, 0.3]
    variable.scatter_add(wb.IndexedSlices([0.7], [1]))
    assert variable.assign_add((1e300, 0.0)).numpy().tolist() == [1e300, 0.3 + 0.7]
    assert total.assign(0.1).numpy() == 0.1
    large = wb.Variable(2**63, dtype=np.uint64)
    assert large.assign(2**64 - 1).numpy() == 2**64 - 1
    assert large.assign(3).dtype == np.uint64
    assert total.assign(2**64).numpy() == 2.0**64


_APART = {"NONE": [[1, 1], [2, 2]], "SUM": [[3, 3], [3, 3]]}


@pytest.mark.parametrize("synchronization", ["ON_WRITE", "ON_READ"])
@pytest.mark.parametrize("aggregation", ["NONE", "SUM"])
def test_a_deep_copy_is_a_variable_of_its_own(strategy: Any, synchronization: str, aggregation: str) -> None:
    with strategy.scope():
        v = wb.Variable(
            [0.0, 0.0],
            False,
            name="w",
            synchronization=synchronization,
            aggregation=aggregation,
            constraint=abs,
        )
    strategy.run(lambda: v.assign(np.full(2, _replica() + 1, np.float32)))
    before = _components(v)

    copied, again, reference = copy.deepcopy([v, v, v.ref()])

    assert copied is again is reference.deref()
    assert before == _components(copied) == _APART["NONE" if synchronization == "ON_READ" else aggregation]
    options = ("name", "trainable", "constraint", "aggregation", "synchronization", "strategy")
    assert [getattr(copied, each) for each in options] == [getattr(v, each) for each in options]
    strategy.run(lambda: copied.assign(np.zeros(2, np.float32)))
    assert _components(v) == before
    with pytest.raises(RuntimeError, match="copy it in the notebook"):
        strategy.run(lambda: copy.deepcopy(v))


def test_a_deep_copy_of_a_plain_variable_is_plain(strategy: Any) -> None:
    v = wb.Variable([1, 2])

    with strategy.scope():
        copied = copy.deepcopy(v)
    copied.assign([3, 4])

    assert (copied.strategy, v.numpy().tolist(), copied.numpy().tolist()) == (None, [1, 2], [3, 4])
    assert copy.copy(v) is v


def test_values_on_replicas_are_copied_as_themselves(strategy: Any) -> None:
    made = strategy.run(lambda: np.ones(2))
    dataset = strategy.experimental_distribute_dataset(wb.data.Dataset.range(4).batch(2))

    for each in (made, dataset):
        assert copy.copy(each) is each
        assert copy.deepcopy({"x": each})["x"] is each


def test_results_of_the_default_strategy_become_values_of_plain_variables() -> None:
    made = wb.distribute.get_strategy().run(lambda: np.float32(3))

    v = wb.Variable(made)
    v.assign_add(made)

    assert (v.strategy, float(v.numpy())) == (None, 6)


def test_a_plain_variable_takes_no_values_of_several_replicas(strategy: Any) -> None:
    made = strategy.run(lambda: np.float32(3))

    with pytest.raises(ValueError, match="2"):
        wb.Variable(1.0).assign(made)
    with pytest.raises(TypeError, match="one value for all replicas"):
        wb.Variable(made)
