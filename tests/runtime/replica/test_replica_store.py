"""The undo log of a replica's state, against a plain dict that keeps a copy of every step."""

from __future__ import annotations

import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.runtime.replica.replica_store import ReplicaStore

# (operation, argument): assign a key, delete one, end the step, commit or roll back to some earlier step.
ACTIONS = st.lists(
    st.tuples(st.sampled_from(["set", "delete", "step", "commit", "rollback"]), st.integers(0, 4)),
    max_size=60,
)


@given(ACTIONS)
def test_rolling_back_restores_the_state_before_a_step(actions: list[tuple[str, int]]) -> None:
    store, model = ReplicaStore(), dict[int, int]()
    before: dict[int, dict[int, int]] = {0: {}}  # state before each step that can still be undone
    serial, value = 0, 0
    store.begin(serial)
    for what, number in actions:
        if what == "set":
            value += 1
            store[number] = model[number] = value
        elif what == "delete" and number in model:
            del store[number], model[number]
        elif what == "step":
            serial += 1
            before[serial] = dict(model)
            store.begin(serial)
        elif what == "commit":
            target = max(-1, serial - 1 - number)
            store.commit(target)
            before = {step: state for step, state in before.items() if step > target}
        elif what == "rollback":
            target = max((step for step in before if step <= serial - number), default=min(before))
            store.rollback(target)
            model = dict(before[target])
            before = {step: state for step, state in before.items() if step <= target}
            serial += 1
            before[serial] = dict(model)
            store.begin(serial)
        assert dict(store) == model


def test_committed_steps_cannot_be_undone() -> None:
    store = ReplicaStore()
    store.begin(1)
    store["v"] = 1
    store.commit(1)
    store.begin(2)
    store["v"] = 2
    store.rollback(1)
    assert store["v"] == 1


def test_a_step_that_assigns_again_and_again_keeps_only_what_was_before_it() -> None:
    class Value:
        pass

    store, first, between = ReplicaStore(), Value(), Value()
    store.begin(1)
    store["v"] = first
    store.begin(2)
    store["v"] = between
    gone = weakref.ref(between)
    del between
    store["v"] = Value()
    assert gone() is None
    store.rollback(2)
    assert store["v"] is first


def test_what_a_step_has_made_and_deleted_again_is_gone_when_it_is_undone() -> None:
    store = ReplicaStore()
    store.begin(1)
    store["v"] = 1
    del store["v"]
    store.rollback(1)
    assert "v" not in store
    assert store.written("v").times == 0
    with pytest.raises(KeyError):
        del store["v"]


def test_every_way_of_writing_is_undone() -> None:
    store = ReplicaStore()
    store.begin(1)
    store["a"] = 1
    store["b"] = 1
    store.begin(2)
    store.update(a=2, c=2)
    store.setdefault("d", 2)
    assert store.pop("b") == 1
    store |= {"e": 2}
    store.rollback(2)
    assert dict(store) == {"a": 1, "b": 1}
    store.begin(3)
    store.clear()
    store.rollback(3)
    assert dict(store) == {"a": 1, "b": 1}


def test_undoing_also_undoes_who_wrote_last() -> None:
    store = ReplicaStore()
    assert store.written("a").times == 0
    store.begin(7, 3)
    store["a"] = 1
    first = store.written("a")
    assert (first.times, first.step) == (1, 3)
    store.begin(8, 4)
    store["a"] = 2
    store["b"] = 2
    assert (store.written("a").times, store.written("a").step) == (2, 4)
    store.rollback(8)
    assert store.written("a") == first
    assert store.written("b").times == 0
    store.begin(9, 4)
    del store["a"]
    assert store.written("a").times == 0
    store.rollback(9)
    assert store.written("a") == first
