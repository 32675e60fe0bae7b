"""Stores whose variables traced programs replace for all replicas at once, against plain dicts that copy every step."""

from __future__ import annotations

import gc
import weakref

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from workbench.runtime.traced.row_store import Begun, RowStore, place, share, shared

REPLICAS = 3
KEYS = ("a", "b")
# (operation, variable, replica)
ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["traced", "own", "delete", "read", "step", "commit", "rollback"]),
        st.sampled_from(KEYS),
        st.integers(0, REPLICAS - 1),
    ),
    max_size=60,
)


class Rows:
    """What `backends.jax.mesh.Rows` is to a store, without JAX."""

    def __init__(self, values: list[int]) -> None:
        self.values = values

    def component(self, position: int) -> np.ndarray:
        return np.array(self.values[position])


class Replicas:
    """The stores of a group, used as traced and other programs use them."""

    def __init__(self) -> None:
        self.stores = [RowStore() for _ in range(REPLICAS)]
        self.committed = -1
        self.begin(0)

    def begin(self, serial: int) -> None:
        self.serial = serial
        for store in self.stores:
            store.begin(serial, serial)

    def traced(self, key: str, values: list[int]) -> Rows:
        variable, rows = self.shared(key), Rows(values)
        if variable is None:
            share(self.stores, key, rows)  # type: ignore[arg-type]
        else:
            variable.replace(rows, Begun(self.serial, self.serial, self.serial, self.committed))  # type: ignore[arg-type]
        return rows

    def shared(self, key: str):  # type: ignore[no-untyped-def]
        return shared(self.stores, key) if all(key in store for store in self.stores) else None

    def state(self) -> list[dict[str, int]]:
        return [{str(key): int(store[key]) for key in store} for store in self.stores]


@given(ACTIONS)
def test_rolling_back_restores_the_state_before_a_step(actions: list[tuple[str, str, int]]) -> None:
    replicas, model = Replicas(), [dict[str, int]() for _ in range(REPLICAS)]
    before = {0: replicas.state()}  # its value before each step that can still be undone
    value = 0
    traced_in_step: set[str] = set()
    for what, key, replica in actions:
        value += 10
        store = replicas.stores[replica]
        if what == "traced" and key not in traced_in_step:  # a program sets each variable once
            traced_in_step.add(key)
            replicas.traced(key, [value + r for r in range(REPLICAS)])
            for r in range(REPLICAS):
                model[r][key] = value + r
        elif what == "own":
            store[key] = model[replica][key] = value
        elif what == "delete" and key in store:
            del store[key], model[replica][key]
        elif what == "read" and all(key in other for other in replicas.stores):
            if replicas.shared(key) is None:
                here = [int(other[key]) for other in replicas.stores]
                place(replicas.stores, key, Rows(here))  # type: ignore[arg-type]
        elif what in ("step", "commit", "rollback"):
            traced_in_step.clear()
            serial = replicas.serial
            if what == "commit":
                replicas.committed = max(replicas.committed, serial - 1 - replica)
                for other in replicas.stores:
                    other.commit(replicas.committed)
                before = {step: state for step, state in before.items() if step > replicas.committed}
            elif what == "rollback":
                target = max((step for step in before if step <= serial - replica), default=min(before))
                for other in replicas.stores:
                    other.rollback(target)
                model = [dict(state) for state in before[target]]
                before = {step: state for step, state in before.items() if step <= target}
            before.setdefault(serial + 1, [dict(state) for state in model])
            replicas.begin(serial + 1)
        assert replicas.state() == model


def test_what_one_replica_assigns_itself_is_its_own_and_the_others_keep_theirs() -> None:
    replicas = Replicas()
    replicas.traced("a", [1, 2, 3])
    replicas.stores[1]["a"] = 20
    assert shared(replicas.stores, "a") is None
    assert replicas.state() == [{"a": 1}, {"a": 20}, {"a": 3}]
    replicas.traced("a", [4, 5, 6])
    assert shared(replicas.stores, "a") is not None
    assert replicas.state() == [{"a": 4}, {"a": 5}, {"a": 6}]


def test_undoing_an_own_assignment_lets_programs_find_the_variable_in_place_again() -> None:
    replicas = Replicas()
    replicas.traced("a", [1, 2, 3])
    variable = shared(replicas.stores, "a")
    replicas.begin(1)
    replicas.stores[1]["a"] = 20
    for store in replicas.stores:
        store.rollback(1)
    assert shared(replicas.stores, "a") is variable
    assert replicas.state() == [{"a": 1}, {"a": 2}, {"a": 3}]


def test_assignments_are_counted_over_both_ways() -> None:
    replicas = Replicas()
    for store in replicas.stores:
        store["a"] = 0
    for serial in (1, 2):
        replicas.begin(serial)
        replicas.traced("a", [serial] * REPLICAS)
    replicas.begin(3)
    replicas.stores[2]["a"] = 9
    assert [store.written("a").times for store in replicas.stores] == [3, 3, 4]
    assert [store.written("a").step for store in replicas.stores] == [2, 2, 3]


def test_putting_rows_in_place_is_no_assignment() -> None:
    replicas = Replicas()
    for r, store in enumerate(replicas.stores):
        store["a"] = r
    written = [store.written("a") for store in replicas.stores]
    place(replicas.stores, "a", Rows([0, 1, 2]))  # type: ignore[arg-type]
    assert shared(replicas.stores, "a") is not None
    assert [store.written("a").times for store in replicas.stores] == [w.times for w in written]


def test_rows_that_cannot_be_undone_any_more_are_forgotten() -> None:
    replicas = Replicas()
    replicas.traced("a", [0, 0, 0])
    replicas.begin(1)
    seen = weakref.ref(replicas.traced("a", [1, 1, 1]))
    for serial in (2, 3):
        replicas.begin(serial)
        replicas.committed = serial - 1
        replicas.traced("a", [serial] * REPLICAS)
    gc.collect()
    assert seen() is None
