"""Shards on several servers are read and changed at once, each server for one thing at a time and each change once."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench import distribute
from workbench.distribute.server_optimizers import SGD, apply_gradients
from workbench.distribute.servers import sharded_variable
from workbench.errors import FailedPreconditionError


def _together(servers: Any) -> list[list[int]]:
    """The servers that get requests at the same time, from now on."""
    client, waves = servers.hosting.client, []
    wave = client._wave

    def noted(requests: Any) -> Any:
        waves.append([server for server, _, _ in requests])
        return wave(requests)

    client._wave = noted
    return waves


def test_all_servers_are_asked_at_once_and_get_the_updates_of_all_their_shards_in_a_row(
    in_three: Any,
) -> None:
    with in_three.scope():
        table = wb.Variable(np.zeros((6, 2)), name="table")
    waves = _together(in_three)

    rows = table.sparse_read([5, 0, 3])
    table.scatter_add(wb.IndexedSlices(np.ones((3, 2)), [5, 0, 3]))
    table.assign_add(np.ones((6, 2)))
    apply_gradients(SGD(1.0), [(np.ones((6, 2)), table)])

    assert waves == [[0, 1], [0], *[[0, 1, 0]] * 3]
    assert rows.tolist() == [[0, 0]] * 3
    assert np.asarray(table)[:, 0].tolist() == [1, 0, 0, 1, 0, 1]


def test_a_server_works_while_the_rows_for_the_next_one_are_taken(
    in_three: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with in_three.scope():
        table = wb.Variable(np.zeros((6, 2)), name="table")
    client, events = in_three.hosting.client, []
    send, taken = client._send, sharded_variable._taken

    def noted_send(server: int, fields: Any, arrays: Any) -> None:
        send(server, fields, arrays)
        events.append(f"sent to {server}")

    def noted_taken(values: Any, chosen: Any, indices: Any) -> Any:
        events.append(f"took {len(chosen)}")
        return taken(values, chosen, indices)

    monkeypatch.setattr(client, "_send", noted_send)
    monkeypatch.setattr(sharded_variable, "_taken", noted_taken)
    table.scatter_add(wb.IndexedSlices(np.ones((3, 2)), [5, 0, 2]))

    assert events == ["took 1", "sent to 0", "took 1", "sent to 1", "took 1", "sent to 0"]
    assert np.asarray(table)[:, 0].tolist() == [1, 0, 1, 0, 0, 1]


def test_an_optimizers_step_of_many_variables_is_one_round_of_requests(servers: Any) -> None:
    with servers.scope():
        variables = [wb.Variable(np.zeros(3), name=f"v{number}") for number in range(130)]
    waves = _together(servers)

    apply_gradients(SGD(1.0), [(np.full(3, number), v) for number, v in enumerate(variables)])

    assert [len(wave) for wave in waves] == [128, 2]  # at most 64 per server before its answers are read
    assert [v.numpy()[0] for v in variables] == [-number for number in range(130)]


@pytest.mark.parametrize("nth", [1, 4])
def test_updates_in_a_row_count_once_where_their_server_is_killed_amid_them(nth: int, tmp_path: Path) -> None:
    rule = {
        "point": "server.before_reply",
        "nth": 12 + nth,
        "action": "kill",
        "once": str(tmp_path / "killed"),
    }
    with wb.connect(replicas=2, replace=True, environment={"WB_FAULTS": json.dumps([rule])}):
        strategy = distribute.ParameterServerStrategy(servers=1)
        with strategy.scope():
            variables = [wb.Variable(np.zeros(3)) for _ in range(6)]
        for _ in range(3):
            apply_gradients(SGD(1.0), [(np.ones(3), v) for v in variables])

        assert [v.numpy().tolist() for v in variables] == [[-3.0] * 3] * 6
        assert strategy.hosting.servers[0].restarts == 1
    assert (tmp_path / "killed").exists()


def test_threads_that_ask_the_same_servers_in_other_orders_do_not_wait_for_each_other(in_three: Any) -> None:
    with in_three.scope():
        first, second = (wb.Variable(np.zeros((6, 1)), name=name) for name in "ab")

    def work(table: Any) -> None:
        for _ in range(50):
            table.scatter_add(wb.IndexedSlices(np.ones((6, 1)), np.arange(6)))

    threads = [threading.Thread(target=work, args=(table,), daemon=True) for table in (first, second) * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert not any(thread.is_alive() for thread in threads)
    assert np.asarray(first).ravel().tolist() == np.asarray(second).ravel().tolist() == [100.0] * 6


def test_where_one_server_refuses_the_line_to_the_others_stays_in_order(in_three: Any) -> None:
    with in_three.scope():
        table = wb.Variable(np.zeros((6, 2)), name="table")
    client = in_three.hosting.client
    missing = table.variables[0].description
    client.write(missing.server, {"method": "drop", "keys": [missing.key]})

    with pytest.raises(FailedPreconditionError, match="table/part_0"):
        table.sparse_read([0, 2])

    assert table.sparse_read([2, 3]).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("point", ["server.after_journal", "server.before_reply"])
def test_a_change_of_all_shards_is_made_once_when_a_server_dies_in_it(point: str, tmp_path: Path) -> None:
    rule = {"point": point, "nth": 4, "action": "kill", "once": str(tmp_path / "killed")}
    partitioner = distribute.experimental.partitioners.FixedShardsPartitioner(2)
    with wb.connect(replicas=3, replace=True, environment={"WB_FAULTS": json.dumps([rule])}):
        strategy = distribute.ParameterServerStrategy(None, partitioner, servers=2)
        with strategy.scope():
            table = wb.Variable(np.zeros((4, 2)), name="table")
        for _ in range(6):
            table.scatter_add(wb.IndexedSlices(np.ones((4, 2)), [0, 1, 2, 3]))

        assert np.asarray(table).tolist() == [[6, 6]] * 4
        assert sum(server.restarts for server in strategy.hosting.servers) == 1
    assert (tmp_path / "killed").exists()


def test_rows_that_occur_often_add_up_in_order(in_three: Any) -> None:
    with in_three.scope():
        table = wb.Variable(np.zeros((6, 1), "float32"), name="table")
    indices = np.array([0, 3, 0, 0, 1, 3, 0, 0, 0, 5])
    values = 10.0 ** np.arange(10).reshape(10, 1).astype("float32") / 3  # another order rounds to another sum

    table.scatter_add(wb.IndexedSlices(values, indices))
    table.scatter_sub(wb.IndexedSlices(np.ones((3, 1), "float32"), [2, 2, 4]))

    expected = np.zeros(6, "float32")
    np.add.at(expected, indices, values.ravel())
    np.subtract.at(expected, [2, 2, 4], 1.0)
    assert np.asarray(table).ravel().tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
def test_indices_of_any_width_find_their_shards(in_three: Any, dtype: str) -> None:
    with in_three.scope():
        table = wb.Variable(np.zeros((600, 1), "float32"), name="table")

    table.scatter_add(wb.IndexedSlices(np.ones((2, 1), "float32"), np.array([3, 100], dtype)))

    assert np.flatnonzero(table).tolist() == [3, 100]
    assert table.sparse_read(np.array([4, 100], dtype)).tolist() == [[0], [1]]
