"""What a server computes is checked where its sender is: a bad update is refused, and counts nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench import debugging, distribute
from workbench.distribute.server_optimizers import (
    SGD,
    Adagrad,
    Adam,
    FunctionOptimizer,
    SlotState,
    apply_gradients,
)
from workbench.distribute.servers import finite_updates
from workbench.distribute.servers.shard_store import ShardStore
from workbench.errors import NotFinite

HUGE = np.float32(3e38)


@pytest.fixture
def checked() -> Iterator[None]:
    """With the check on."""
    debugging.enable_check_numerics()
    yield
    debugging.disable_check_numerics()


def _update(index: int, how: str, **more: Any) -> dict[str, Any]:
    origin = {"stream": "s", "call": 0, "index": index, "open": 0}
    return {"method": "update", "key": "w@1", "how": how, "checked": "in a test", **origin, **more}


def _store(value: Any, recorded: list[Any] | None = None) -> ShardStore:
    record = (lambda fields, arrays: None) if recorded is None else lambda *change: recorded.append(change)
    store = ShardStore(record, "ps:3")
    store.answer({"method": "create", "key": "w@1"}, [np.asarray(value, np.float32)])
    return store


def _contents(store: ShardStore) -> Any:
    return [
        (fields, [array.tolist() for array in arrays])
        for fields, arrays in store.contents()
        if "applied" not in fields
    ]


STEP = {"rule": {"kind": "SGD", "learning_rate": 10.0}}
MOMENTUM = {"rule": {"kind": "SGD", "learning_rate": 1.0, "momentum": 0.9}}


@pytest.mark.parametrize(
    ("how", "more", "arrays", "told"),
    [
        (
            "step",
            STEP,
            [[HUGE, 0, 0]],
            r"the step SGD leaves variable 'w:0' not finite .* first at \[0\].*Clip the",
        ),
        (
            "step",
            MOMENTUM,
            [[HUGE, -HUGE, 0]],
            r"variable 'w:0' .*0 NaN and 1 infinite of 3 .* first at \[1\]",
        ),
        (
            "step",
            {"rule": {"kind": "Adagrad"}},
            [[0, 0, 1e30]],
            r"the step Adagrad leaves the slot 'accumulator' of variable 'w:0' .*\. Clip",
        ),
        (
            "step",
            {"rule": {"kind": "Adam"}},
            [[1e30], [2]],
            r"slot 'v' of variable 'w:0' .*; row 2 of 'w:0'",
        ),
        ("step", STEP, [[np.nan, 0, 0]], "1 NaN and 0 infinite .* What was sent is not finite"),
        (
            "assign_add",
            {},
            [[0, HUGE, 0]],
            r"assign_add leaves variable 'w:0' .*What was sent is finite: send",
        ),
        ("assign_sub", {}, [[0, -HUGE, 0]], "assign_sub leaves variable 'w:0'"),
        ("scatter_add", {}, [[HUGE, HUGE], [2, 2]], "scatter_add leaves .*; row 2 of 'w:0'"),
        ("assign", {}, [[0, np.nan, 0]], r"assign leaves variable 'w:0' .*What was sent is not finite"),
        (
            "scatter_update",
            {},
            [[np.inf, 0], [2, 0]],
            "scatter_update leaves .* row 2 of 'w:0'.*What was sent",
        ),
        (
            "set_slots",
            {"slots": {"m": 0.0, "v": 0.0}, "steps": 1},
            [[0, 0, 0], [0, np.nan, 0]],
            r"SlotState.load_state_dict leaves the slot 'v' of variable 'w:0' .*first at \[1\].*What was sent",
        ),
        ("scatter_div", {}, [[1, 0], [0, 1]], "scatter_div leaves .* row 1 of 'w:0'"),
    ],
)
def test_an_update_with_a_bad_result_is_refused_and_leaves_no_trace(
    how: str, more: dict[str, Any], arrays: list[Any], told: str
) -> None:
    recorded: list[Any] = []
    store = _store([1.0, HUGE, 3.0], recorded)
    before, changes, counts = _contents(store), len(recorded), dict(store.counts)
    sent = [np.asarray(arrays[0], np.float32), *(np.asarray(rows) for rows in arrays[1:])]

    with pytest.raises(NotFinite, match=told) as raised:
        store.answer(_update(0, how, **more), sent)

    assert "not finite on ps:3; it was sent in a test: " in str(raised.value)
    assert (_contents(store), len(recorded), store.counts) == (before, changes, counts)
    assert not store.applied.knows(_update(0, how))
    assert store.answer(_update(0, "assign_sub"), [np.ones(3, np.float32)])[0] == {"applied": True}
    assert store.counts["updates"] == 1


def test_good_updates_give_the_same_bits_checked_or_not() -> None:
    rng = np.random.default_rng(3)
    stores = [_store(np.ones((5, 2))), _store(np.ones((5, 2)))]
    dense, some = rng.normal(size=(5, 2)).astype("f4"), rng.normal(size=(3, 2)).astype("f4")
    for store, checks in zip(stores, ("in a test", ""), strict=True):
        index = 0
        for kind in ("SGD", "Adagrad", "Adam"):
            for arrays in ([dense], [some, np.array([4, 0, 2])]):
                step = _update(index, "step", rule={"kind": kind}) | {"checked": checks}
                store.answer(step, arrays)
                index += 1
        store.answer(_update(index, "scatter_add") | {"checked": checks}, [some, np.array([1, 3, 1])])

    assert _contents(stores[0]) == _contents(stores[1])


def test_only_changed_rows_are_looked_at_and_an_older_nan_is_told_from_a_new_one() -> None:
    store = _store([np.nan, 1.0])

    store.answer(_update(0, "scatter_add"), [np.ones(1, np.float32), np.array([1])])
    with pytest.raises(NotFinite, match="It was not finite before either: assign finite values"):
        store.answer(_update(1, "assign_add"), [np.ones(2, np.float32)])
    store.answer(_update(1, "assign"), [np.zeros(2, np.float32)])

    assert store.held["w@1"].array.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("how", "more", "arrays"),
    [
        ("assign", {}, [np.full(3, HUGE)]),
        ("scatter_update", {}, [np.full(2, HUGE), np.array([2, 0])]),
        ("set_slots", {"slots": {"m": 0.0}, "steps": 1}, [np.full(3, HUGE)]),
    ],
)
def test_what_is_sent_as_it_is_is_not_tried_on_a_copy(
    monkeypatch: pytest.MonkeyPatch, how: str, more: dict[str, Any], arrays: list[Any]
) -> None:
    store = _store([np.nan, 1.0, 1.0])
    monkeypatch.setattr(finite_updates, "change", None)
    assert store.answer(_update(0, how, **more), arrays)[0]["applied"]


@pytest.mark.filterwarnings("ignore:overflow encountered in cast:RuntimeWarning")
def test_what_is_infinite_only_in_the_dtype_of_the_variable_is_refused() -> None:
    store = _store([1.0, 1.0])
    with pytest.raises(NotFinite, match="assign leaves variable 'w:0' not finite"):
        store.answer(_update(0, "assign"), [np.array([1e300, 0])])
    with pytest.raises(NotFinite, match=r"scatter_update leaves variable 'w:0' not finite .*; row 1 of"):
        store.answer(_update(0, "scatter_update"), [np.array([1e300]), np.array([1])])


def test_numbers_that_are_always_finite_are_not_looked_at() -> None:
    store = ShardStore()
    store.answer({"method": "create", "key": "w@1"}, [np.arange(2)])

    assert store.answer(_update(0, "assign_add"), [np.ones(2, int)])[0]["applied"]


@pytest.mark.usefixtures("checked")
@pytest.mark.parametrize("rule", [SGD(10.0), Adam(1.0), Adagrad(1.0)])
def test_the_notebook_hears_of_the_shard_and_its_server(in_three: Any, rule: Any) -> None:
    with in_three.scope():
        w = wb.Variable(np.ones((6, 2), "f4"), name="w")
    gradient = np.zeros((6, 2), "f4")
    gradient[5] = HUGE
    shard = w.variables[2]

    with pytest.raises(
        NotFinite, match=rf"variable '{shard.name}' not finite on ps:0; it was sent in the notebook"
    ):
        apply_gradients(rule, [(gradient, w)])

    assert np.isfinite(np.asarray(w)).all()
    apply_gradients(rule, [(np.zeros((6, 2), "f4"), w)])
    assert np.asarray(w).tolist() == np.ones((6, 2)).tolist()


@pytest.mark.usefixtures("checked")
def test_what_the_notebook_sends_as_it_is_must_be_finite(servers: Any) -> None:
    with servers.scope():
        w = wb.Variable(np.ones(3, "f4"), name="w")
    state = SlotState(Adagrad(), [w])
    saved = state.state_dict()

    with pytest.raises(NotFinite, match=r"assign leaves variable 'w:0' .* sent in the notebook: 1 NaN"):
        w.assign([1, np.nan, 2])
    with pytest.raises(NotFinite, match="scatter_update leaves variable 'w:0'"):
        w.scatter_update(wb.IndexedSlices([np.nan], [1]))
    with pytest.raises(NotFinite, match="load_state_dict leaves the slot 'accumulator' of variable 'w:0'"):
        state.load_state_dict({"w": {"steps": 1, "slots": {"accumulator": np.full(3, np.inf, "f4")}}})
    state.load_state_dict(saved)

    assert w.numpy().tolist() == [1, 1, 1]


@pytest.mark.usefixtures("checked")
def test_the_worker_and_the_function_whose_update_it_was_are_named(servers: Any) -> None:
    coordinator = distribute.coordinator.ClusterCoordinator(servers)
    with servers.scope():
        w = wb.Variable(np.ones(2, "f4"), name="w")

    def step(gradient: Any) -> None:
        apply_gradients(SGD(10.0), [(gradient, w)])

    coordinator.schedule(step, args=(np.ones(2, "f4"),))
    coordinator.join()
    coordinator.schedule(step, args=(np.full(2, HUGE, "f4"),))
    with pytest.raises(
        NotFinite, match=r"the step SGD leaves variable 'w:0' .* sent on worker [01], in \S*step: "
    ):
        coordinator.join()
    coordinator.schedule(step, args=(np.ones(2, "f4"),))
    coordinator.join()

    assert w.numpy().tolist() == [-19, -19]


@pytest.mark.usefixtures("checked")
def test_a_users_step_is_checked_too(servers: Any) -> None:
    def divide(values: Any, gradient: Any, slots: Any, step: int) -> Any:
        with np.errstate(all="ignore"):
            return values - gradient / slots["mean"], {"mean": slots["mean"]}

    with servers.scope():
        w = wb.Variable(np.ones(2), name="w")

    with pytest.raises(NotFinite, match=r"the step divide leaves variable 'w:0' .*: 0 NaN and 2 infinite"):
        apply_gradients(FunctionOptimizer(divide, {"mean": 0.0}), [(np.ones(2), w)])
    apply_gradients(FunctionOptimizer(divide, {"mean": 1.0}), [(wb.IndexedSlices([1.0], [1]), w)])

    assert w.numpy().tolist() == [1, 0]


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_nothing_is_checked_once_the_check_is_off(servers: Any) -> None:
    with servers.scope():
        w = wb.Variable(np.ones(2, "f4"), name="w")
    debugging.enable_check_numerics()
    debugging.disable_check_numerics()

    apply_gradients(SGD(10.0), [(np.full(2, HUGE, "f4"), w)])

    assert w.numpy().tolist() == [-np.inf, -np.inf]
