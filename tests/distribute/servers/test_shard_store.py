"""What a parameter server keeps: each update once, however often it comes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from workbench.distribute.servers.shard_store import ShardStore
from workbench.errors import FailedPreconditionError, InvalidArgumentError

Change = tuple[dict[str, Any], list[Any]]


def _store(record: Any = None) -> ShardStore:
    store = ShardStore(*([record] if record else []))
    store.answer({"method": "create", "key": "w@1"}, [np.arange(4.0)])
    return store


def _add(index: int, *, call: int = 0, first_open: int = 0, **more: Any) -> dict[str, Any]:
    origin = {"stream": "s", "call": call, "index": index, "open": first_open}
    return {"method": "update", "key": "w@1", "how": "assign_add", **origin, **more}


def _value(store: ShardStore) -> list[float]:
    values: list[float] = store.answer({"method": "read", "key": "w@1"}, [])[1][0].tolist()
    return values


def test_an_update_that_comes_again_is_applied_once() -> None:
    store = _store()

    replies = [store.answer(_add(0), [np.ones(4)])[0] for _ in range(3)]

    assert [reply["applied"] for reply in replies] == [True, False, False]
    assert _value(store) == [1, 2, 3, 4]


def test_a_function_that_runs_again_goes_on_where_its_first_run_was_lost() -> None:
    store = _store()
    for index in (0, 1):
        store.answer(_add(index, call=5), [np.ones(4)])

    for index in (0, 1, 2):
        store.answer(_add(index, call=5), [np.ones(4)])

    assert _value(store) == [3, 4, 5, 6]


def test_a_worker_that_was_given_up_changes_nothing_once_its_function_has_ended_elsewhere() -> None:
    store = _store()
    store.answer(_add(0, call=5), [np.ones(4)])
    store.answer(_add(0, call=9, first_open=8), [np.ones(4)])

    late = store.answer(_add(1, call=5), [np.ones(4)])[0]

    assert not late["applied"]
    assert _value(store) == [2, 3, 4, 5]


def test_ended_functions_are_forgotten() -> None:
    store = _store()

    for call in range(20_000):
        store.answer(_add(0, call=call, first_open=call), [np.ones(4)])

    assert len(store.applied) < 5_000
    assert _value(store)[0] == 20_000


@pytest.mark.parametrize(
    ("how", "values", "indices", "expected"),
    [
        ("scatter_add", [1.0, 1.0], [0, 2], [1, 1, 3, 3]),
        ("scatter_add", [1.0, 1.0], [2, 2], [0, 1, 4, 3]),
        ("scatter_sub", [1.0, 1.0], [2, 2], [0, 1, 0, 3]),
        ("scatter_mul", [2.0, 3.0], [3, 3], [0, 1, 2, 18]),
        ("scatter_max", [9.0], [1], [0, 9, 2, 3]),
        ("scatter_update", [7.0], [1], [0, 7, 2, 3]),
    ],
)
def test_a_scatter_update_changes_rows_where_they_lie(
    how: str, values: list[float], indices: list[int], expected: list[float]
) -> None:
    store = _store()
    held = store.held["w@1"].array

    store.answer({**_add(0), "how": how}, [np.array(values), np.array(indices)])

    assert store.held["w@1"].array is held
    assert held.tolist() == expected


def test_rows_are_gathered_as_asked_for() -> None:
    rows = _store().answer({"method": "gather", "key": "w@1"}, [np.array([[3, 0], [0, 1]])])[1][0]

    assert rows.tolist() == [[3, 0], [0, 1]]


def test_what_cannot_be_recorded_is_not_applied() -> None:
    def full(fields: Any, arrays: Any) -> None:
        raise OSError("no space")

    store = _store()
    store.record = full

    with pytest.raises(OSError, match="no space"):
        store.answer(_add(0), [np.ones(4)])
    assert _value(store) == [0, 1, 2, 3]


def test_a_store_is_made_again_from_what_was_recorded() -> None:
    changes: list[Change] = []
    store = _store(lambda fields, arrays: changes.append((fields, arrays)))
    store.answer(_add(0), [np.ones(4)])
    store.answer({**_add(1), "how": "step", "rule": {"kind": "Adam", "learning_rate": 0.1}}, [np.ones(4)])

    for recorded in (changes, store.contents()):
        again = ShardStore()
        for fields, arrays in recorded:
            again.replay(fields, arrays)

        assert _value(again) == _value(store)
        assert again.held["w@1"].steps == 1
        assert {name: slot.tolist() for name, slot in again.held["w@1"].slots.items()} == {
            name: slot.tolist() for name, slot in store.held["w@1"].slots.items()
        }
        assert not again.answer(_add(1), [np.ones(4)])[0]["applied"]
        assert again.held["w@1"].version == 2


def test_a_step_that_is_too_stale_is_left_out() -> None:
    store = _store()
    for index in range(3):
        store.answer(_add(index), [np.ones(4)])

    taken = store.answer(_add(3, read=1, max_staleness=2), [np.ones(4)])[0]
    left = store.answer(_add(4, read=1, max_staleness=2), [np.ones(4)])[0]

    assert taken["applied"]
    assert left == {"applied": False, "staleness": 3}


def test_a_variable_that_is_not_there_is_named() -> None:
    with pytest.raises(FailedPreconditionError, match="'b:0'"):
        _store().answer({"method": "read", "key": "b@2"}, [])


def test_a_request_that_nobody_knows_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="'guess'"):
        _store().answer({"method": "guess"}, [])


def test_a_server_comes_back_behind_an_update_that_failed() -> None:
    recorded: list[Change] = []
    store = _store(lambda fields, arrays: recorded.append((fields, arrays)))
    with pytest.raises(ValueError, match="could not be broadcast"):
        store.answer(_add(0), [np.ones(3)])
    store.answer(_add(1), [np.ones(4)])

    again = ShardStore()
    for change in recorded:
        again.replay(*change)

    assert _value(again) == _value(store) == [1, 2, 3, 4]
