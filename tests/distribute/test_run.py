"""`Strategy.run`, `wb.function` and merge calls."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.distribute import PerReplica, get_replica_context, get_strategy
from workbench.errors import CaptureError, InvalidArgumentError, ReplicaError


def _replica() -> int:
    return get_replica_context().replica_id_in_sync_group


def test_results_keep_their_structure_with_a_per_replica_for_each_leaf(strategy: Any) -> None:
    result = strategy.run(lambda: {"a": (_replica(), None), "b": [7]})
    assert result["a"][0].values == (0, 1)
    assert result["a"][1] is None
    assert result["b"][0].values == (7, 7)
    assert strategy.run(lambda: None) is None


def test_distributed_values_are_found_at_any_depth_of_arguments(strategy: Any) -> None:
    value = strategy.distribute_values_from_function(lambda c: float(c.replica_id_in_sync_group))
    result = strategy.run(
        lambda x, *, y: x["a"][0] + y[1] + x["b"], args=({"a": [value], "b": 1},), kwargs={"y": (2, value)}
    )
    assert result.values == (1.0, 3.0)


def test_an_error_keeps_its_type_and_the_strategy_goes_on(strategy: Any) -> None:
    def step() -> int:
        if _replica() == 1:
            raise LookupError("no such thing")
        return 1

    with pytest.raises(LookupError, match="no such thing") as caught:
        strategy.run(step)
    assert isinstance(caught.value, ReplicaError)
    assert caught.value.replica == 1
    assert strategy.run(lambda: 2).values == (2, 2)


def test_what_is_no_function_is_refused(strategy: Any) -> None:
    with pytest.raises(TypeError, match=r"strategy\.run\(fn"):
        strategy.run(3)


def _yields() -> Any:
    yield _replica()


async def _awaits() -> None:
    return None


async def _yields_and_awaits() -> Any:
    yield _replica()


class _Yielding:
    def __call__(self) -> Any:
        yield _replica()


WOULD_RUN_NOTHING = {
    "generator": (_yields, r"_yields is a generator function \(it has a yield\).*return what it yields"),
    "partial": (functools.partial(_yields), "_yields is a generator function"),
    "callable": (_Yielding(), "_Yielding is a generator function"),
    "wb.function": (wb.function(_yields), "_yields is a generator function"),
    "async": (_awaits, r"_awaits is an async function.*write it with def.*\(test_run\.py:\d+\)"),
    "async generator": (wb.function(_yields_and_awaits), "_yields_and_awaits is an async function"),
}


@pytest.mark.parametrize("which", WOULD_RUN_NOTHING)
def test_a_function_of_which_a_call_runs_nothing_is_refused_before_anything_starts(
    strategy: Any, which: str
) -> None:
    fn, text = WOULD_RUN_NOTHING[which]
    before = strategy.run(lambda: get_replica_context()._env.step).values[0]
    for refuses in (strategy, get_strategy()):  # the default strategy
        with pytest.raises(TypeError, match=text):
            refuses.run(fn)
    assert strategy.run(lambda: get_replica_context()._env.step).values[0] == before + 1


def test_wrong_arguments_say_how_the_function_is_called_and_show_no_frames_of_ours(strategy: Any) -> None:
    def step(x: Any, *, rate: float = 0.1) -> Any:
        return len(x) * rate  # a TypeError raised inside the function

    signature = r"; it is step\(x, \*, rate=0\.1\) \(test_run\.py:\d+\)"
    for args, text in (
        ((), "missing 1 required positional argument: 'x'"),
        ((1, 2), "takes 1 .* were given"),
    ):
        with pytest.raises(TypeError, match=rf"(?s){text}{signature}") as caught:
            strategy.run(step, args)
        assert 'File "' not in str(caught.value)

    with pytest.raises(TypeError, match=r"object of type 'int' has no len\(\)\n\n") as caught:
        strategy.run(step, (1,))
    assert str(caught.value).count('File "') == 1


def test_a_default_of_an_argument_may_have_any_repr(strategy: Any) -> None:
    class Rude:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    def step(x: Any, rude: Any = Rude()) -> Any:  # noqa: B008
        return x

    with pytest.raises(TypeError, match=r"argument: 'x'; it is step\(…\) \(test_run\.py"):
        strategy.run(step)


def test_a_function_gives_the_same_as_the_plain_one(strategy: Any) -> None:
    with strategy.scope():
        v = wb.Variable(0.0)

    @wb.function
    def step(x: Any) -> Any:
        v.assign_add(np.float32(x))
        return v.read_value() * 2

    results = [strategy.run(step, args=(k,)) for k in range(5)]
    assert [float(result.values[1]) for result in results] == [0, 2, 6, 12, 20]
    assert step(0) == 20  # outside of run, it is the plain function
    assert step.name == "step"


def test_the_method_of_an_object_is_sent_once(strategy: Any) -> None:
    class Model:
        def __init__(self, factor: int) -> None:
            self.factor = factor

        @wb.function
        def step(self, x: int) -> int:
            return self.factor * x

    model = Model(3)
    assert model.step is model.step
    assert strategy.run(model.step, args=(2,)).values == (6, 6)
    assert strategy.run(model.step, args=(3,)).values == (9, 9)
    assert Model(4).step(2) == 8


def test_a_function_that_changes_its_structure_breaks_its_promise(strategy: Any) -> None:
    @wb.function
    def step(k: int) -> Any:
        return {"a": k} if k < 2 else [k, None]

    assert strategy.local_results(strategy.run(step, args=(1,))) == ({"a": 1}, {"a": 1})
    broken = strategy.run(step, args=(2,))
    with pytest.raises(
        InvalidArgumentError, match=r"returned \[\*, None\], and \{'a': \*\} in its first run"
    ):
        strategy.local_results(broken)
    assert strategy.local_results(strategy.run(step, args=(0,))) == ({"a": 0}, {"a": 0})


def test_arguments_in_another_form_are_refused_with_the_right_one(strategy: Any) -> None:
    with pytest.raises(TypeError, match=r"got int; write args=\(value,\)"):
        strategy.run(lambda x: x, args=3)
    with pytest.raises(TypeError, match=r"got list; write kwargs=\{'name': value\}"):
        strategy.run(lambda x: x, kwargs=[3])
    assert strategy.run(lambda x: x, args=[3]).values == (3, 3)


def test_texts_are_not_reduced(strategy: Any) -> None:
    with pytest.raises(TypeError, match="expected an array of numbers, got str"):
        strategy.run(lambda: get_replica_context().all_reduce("sum", "abc"))


def test_a_function_decorates_functions_only() -> None:
    assert wb.function()(len)("ab") == 2
    assert wb.function(wb.function(len)).python_function is len
    with pytest.raises(TypeError, match="decorates a function"):
        wb.function(3)  # type: ignore[call-overload]


def test_a_plain_function_travels_again_when_something_it_uses_has_changed(strategy: Any) -> None:
    with strategy.scope():
        held = [wb.Variable(np.float32(1))]
    factor, known = 2, strategy.group.gang.shipping.pickled

    def step() -> Any:
        return held[0] * np.float32(factor)

    seen = [strategy.run(step).values[1]]
    first = len(known)
    seen.append(strategy.run(step).values[1])
    assert len(known) == first
    factor = 3
    seen.append(strategy.run(step).values[1])
    with strategy.scope():
        held[0] = wb.Variable(np.float32(5))
    seen.append(strategy.run(step).values[1])
    held[0].assign(7)
    seen.append(strategy.run(step).values[1])
    assert seen == [2, 2, 3, 15, 21]


def test_a_merge_function_sees_all_replicas_and_each_gets_its_part(strategy: Any) -> None:
    def merge(s: Any, x: Any, *, y: Any) -> Any:
        first, second = s.local_results(x)
        return {"swapped": PerReplica((second, first)), "sum": s.reduce("SUM", y["k"], axis=None)}

    def step() -> Any:
        mine = np.float32(_replica() + 1)
        return get_replica_context().merge_call(merge, args=(mine,), kwargs={"y": {"k": mine}})

    result = strategy.run(step)
    assert result["swapped"].values == (2, 1)
    assert result["sum"].values == (3, 3)


def test_a_merge_function_may_run_steps_and_change_variables(strategy: Any) -> None:
    with strategy.scope():
        v = wb.Variable(1.0)

    def merge(s: Any, x: Any) -> None:
        doubled = s.run(lambda part: part * 2, args=(x,))
        v.assign_add(s.reduce("SUM", doubled, axis=None))

    strategy.run(lambda: get_replica_context().merge_call(merge, args=(np.float32(_replica()),)))
    assert v.numpy() == 3


def test_the_error_of_a_merge_function_reaches_run(strategy: Any) -> None:
    def merge(_: Any) -> None:
        raise ZeroDivisionError("in merge")

    with pytest.raises(ZeroDivisionError, match="in merge"):
        strategy.run(lambda: get_replica_context().merge_call(merge))
    assert strategy.run(_replica).values == (0, 1)


def test_collectives_take_structures_numbers_and_variables(strategy: Any) -> None:
    with strategy.scope():
        v = wb.Variable([1.0, 2.0])

    def step() -> Any:
        context = get_replica_context()
        reduced = context.all_reduce("sum", {"v": v, "n": 1, "f": (0.5, np.int64(_replica()))})
        gathered = context.all_gather((v, np.full((_replica() + 1, 1), _replica())), axis=0)
        return reduced, gathered, context.all_reduce("MEAN", np.int32(_replica()))

    reduced, (values, rows), mean = strategy.run(step)
    assert reduced["v"].values[1].tolist() == [2, 4]
    assert reduced["n"].values[0] == 2
    assert reduced["n"].values[0].dtype == np.int32
    assert reduced["f"][0].values[0].dtype == np.float32
    assert reduced["f"][1].values[0] == 1
    assert values.values[0].tolist() == [1, 2, 1, 2]
    assert rows.values[1].tolist() == [[0], [1], [1]]
    assert mean.values[0] == 0.5


def test_a_structure_is_gathered_in_one_collective(strategy: Any) -> None:
    def step() -> Any:
        context, r = get_replica_context(), _replica()
        texts = np.array([b"r%d" % r], object)
        leaves = [np.full((r + 1, 2), 10 * r + n, np.float32 if n % 2 else np.int64) for n in range(40)]
        found = context.all_gather({"many": leaves, "texts": texts, "one": np.arange(r + 1)}, 0)
        return found, len(context._env.communicator.flight())

    found, collectives = strategy.run(step)
    rows = [[part.values[0].tolist(), part.values[0].dtype] for part in found["many"]]
    assert rows == [
        [[[n, n], [10 + n, 10 + n], [10 + n, 10 + n]], np.float32 if n % 2 else np.int64] for n in range(40)
    ]
    assert found["texts"].values[1].tolist() == [b"r0", b"r1"]
    assert found["one"].values[1].tolist() == [0, 0, 1]
    assert collectives.values == (3, 3)  # the texts take two


def test_texts_can_be_gathered(strategy: Any) -> None:
    result = strategy.run(
        lambda: get_replica_context().all_gather(
            np.array([b"r%d" % _replica()] * (_replica() + 1), object), 0
        )
    )
    assert result.values[0].tolist() == [b"r0", b"r1", b"r1"]


def test_mismatched_collectives_name_the_place(strategy: Any) -> None:
    with pytest.raises(ValueError, match=r"test_run\.py:\d+"):
        strategy.run(lambda: get_replica_context().all_reduce("sum", np.ones(1 + _replica())))
    with pytest.raises(NotImplementedError, match="IndexedSlices"):
        strategy.run(lambda: get_replica_context().all_gather(wb.IndexedSlices(np.ones((1, 1)), [0]), 0))
    with pytest.raises(ValueError, match="out of range"):
        strategy.run(lambda: get_replica_context().all_gather(np.ones(2), 1))


def test_sparse_rows_are_reduced_by_concatenation(strategy: Any) -> None:
    def step(op: str) -> Any:
        rows = wb.IndexedSlices(np.full((1, 2), _replica() + 1.0), np.array([_replica()]), (3, 2))
        return get_replica_context().all_reduce(op, rows).dense()

    assert strategy.run(step, args=("sum",)).values[0].tolist() == [[1, 1], [2, 2], [0, 0]]
    assert strategy.run(step, args=("mean",)).values[1].tolist() == [[0.5, 0.5], [1, 1], [0, 0]]


def test_a_result_that_does_not_pickle_stays_on_the_replicas(strategy: Any) -> None:
    made = strategy.run(lambda: (i for i in range(3)))
    if not strategy.group.gang.shipping.codec.by_reference:
        with pytest.raises(
            CaptureError, match=r"^a generator .*cannot be sent to the notebook: TypeError: .*; return"
        ):
            strategy.local_results(made)
    assert strategy.run(sum, args=(made,)).values == (3, 3)
