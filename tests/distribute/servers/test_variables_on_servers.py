"""Variables on parameter servers, whole and in shards, from the notebook."""

from __future__ import annotations

import copy
import os
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench import distribute
from workbench.errors import FailedPreconditionError, InvalidArgumentError


def test_variables_go_to_the_servers_in_turn(servers: Any) -> None:
    with servers.scope():
        made = [wb.Variable(float(n)) for n in range(3)]

    assert [wb.DeviceSpec.from_string(v.device).task for v in made] == [0, 1, 0]
    assert [float(v) for v in made] == [0, 1, 2]
    assert repr(made[1]) == "<ServerVariable 'Variable:0' float32[] on ps:1>"


def test_a_variable_is_read_and_updated(servers: Any) -> None:
    with servers.scope():
        v = wb.Variable(np.arange(6.0).reshape(3, 2), name="v")

    v.assign(v + 1)
    v.assign_add(np.ones((3, 2)))
    v.assign_sub(np.full((3, 2), 0.5))
    v.scatter_add(wb.IndexedSlices(np.ones((2, 2)), [2, 2]))

    np.testing.assert_array_equal(v, [[1.5, 2.5], [3.5, 4.5], [7.5, 8.5]])
    np.testing.assert_array_equal(v.sparse_read([[2], [0]]), [[[7.5, 8.5]], [[1.5, 2.5]]])
    np.testing.assert_array_equal(wb.nn.embedding_lookup(v, [1], name="rows"), [[3.5, 4.5]])


def test_a_value_read_does_not_change_when_the_variable_does(servers: Any) -> None:
    with servers.scope():
        v = wb.Variable([1.0, 2.0])

    before = v.read_value()
    v.assign_add([1.0, 1.0])

    assert before.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda v: v.assign(np.ones(3, "float32")), ValueError),
        (lambda v: v.assign(np.ones((2, 2), "complex64")), InvalidArgumentError),
        (lambda v: v.assign([[1j, 0], [0, 0]]), TypeError),
        (lambda v: v.scatter_add(wb.IndexedSlices(np.ones((1, 2), "float32"), [2])), InvalidArgumentError),
        (lambda v: v.sparse_read([-1]), InvalidArgumentError),
        (lambda v: v.sparse_read([0.5]), TypeError),
    ],
)
def test_a_wrong_update_is_refused_and_changes_nothing(
    servers: Any, change: Any, error: type[Exception]
) -> None:
    with servers.scope():
        v = wb.Variable(np.zeros((2, 2), "float32"), name="v")

    with pytest.raises(error, match="'v:0'"):
        change(v)
    assert not np.asarray(v).any()


def test_texts_are_refused(servers: Any) -> None:
    with servers.scope(), pytest.raises(TypeError, match="object"):
        wb.Variable(np.array(["a", None], object))


def test_a_number_is_refused_by_shards_as_by_other_variables(in_three: Any) -> None:
    with in_three.scope():
        table = wb.Variable(np.zeros((9, 2), "int32"), name="table")
    with pytest.raises(TypeError, match="does not fit int32"):
        table.assign([[0.5, 1.0]] * 9)
    with pytest.raises(InvalidArgumentError, match="does not fit int32"):
        table.assign(np.full((9, 2), 0.5))


def test_rows_are_divided_over_shards_and_servers(in_three: Any) -> None:
    with in_three.scope():
        table = wb.Variable(np.arange(14.0).reshape(7, 2), name="table")

    assert type(table) is distribute.ShardedVariable
    assert [part.shape for part in table.variables] == [(3, 2), (2, 2), (2, 2)]
    assert [part.name for part in table] == ["table/part_0:0", "table/part_1:0", "table/part_2:0"]
    assert [part.whereabouts for part in table] == ["on ps:0", "on ps:1", "on ps:0"]
    np.testing.assert_array_equal(table * 2, np.arange(14.0).reshape(7, 2) * 2)
    np.testing.assert_array_equal(table[-1], [12, 13])
    np.testing.assert_array_equal(table[1:3, 0], [2, 4])


def test_a_row_of_numbers_in_shards_is_a_number(in_three: Any) -> None:
    with in_three.scope():
        numbers = wb.Variable(np.arange(7.0))
    assert numbers[-1] == 6
    assert wb.nn.embedding_lookup(numbers, 2) == 2


def test_rows_are_looked_up_and_scattered_in_their_shards_alone(in_three: Any) -> None:
    with in_three.scope():
        table = wb.Variable(np.zeros((7, 2), "float32"), name="table")
    versions = [in_three.hosting.client.stream.versions.get(part.description.key) for part in table]
    assert versions == [None, None, None]

    table.scatter_add(wb.IndexedSlices(np.ones((3, 2), "float32"), [6, 5, 6]))
    rows = wb.nn.embedding_lookup(table, [[6], [5]])

    np.testing.assert_array_equal(rows, [[[2, 2]], [[1, 1]]])
    versions = [in_three.hosting.client.stream.versions.get(part.description.key) for part in table]
    assert versions == [None, None, 1]  # the others got no request


def test_a_table_in_parts_has_their_rows_one_after_the_other(in_three: Any) -> None:
    whole = np.arange(14.0).reshape(7, 2)
    with in_three.scope():
        table = wb.Variable(whole)

    for parts in ([whole], [whole[:3], np.zeros((0, 2)), whole[3:]], table.variables, (table, whole)):
        np.testing.assert_array_equal(
            wb.nn.embedding_lookup(parts, [[6, 0], [3, 3]]), whole[[[6, 0], [3, 3]]]
        )
    np.testing.assert_array_equal(wb.nn.embedding_lookup([table, whole + 1], 13), [13, 14])
    norms = np.linalg.norm(wb.nn.embedding_lookup(table.variables, [6, 5], max_norm=2.0), axis=1)
    np.testing.assert_allclose(norms, 2.0)
    for outside in ([7], [-1]):
        with pytest.raises(InvalidArgumentError, match="is not in"):
            wb.nn.embedding_lookup(table.variables, outside)
    with pytest.raises(InvalidArgumentError, match="empty"):
        wb.nn.embedding_lookup([], [0])
    for params in (table, [table], whole):
        with pytest.raises(TypeError, match="must be integers"):
            wb.nn.embedding_lookup(params, [0.5])
        assert wb.nn.embedding_lookup(params, []).shape == (0, 2)


def test_a_sharded_variable_is_assigned_as_a_whole(in_three: Any) -> None:
    with in_three.scope():
        table = wb.Variable(np.zeros(5), name="table")

    table.assign(np.arange(5.0))
    table.assign_add(np.ones(5))

    assert [part.read_value().tolist() for part in table] == [[1, 2], [3, 4], [5]]
    with pytest.raises(ValueError, match="shape"):
        table.assign(np.zeros(4))


@pytest.mark.parametrize("how", ["assign", "assign_add", "assign_sub"])
def test_an_assignment_gives_the_sharded_variable_whatever_it_is_asked(in_three: Any, how: str) -> None:
    with in_three.scope():
        table = wb.Variable(np.zeros(5), False, name="table")

    for read_value in (True, False):
        assert getattr(table, how)(np.ones(5), read_value=read_value) is table
    assert not table.trainable


def test_the_shards_of_a_variable_stay_what_they_are(in_three: Any) -> None:
    with in_three.scope():
        table = wb.Variable(np.arange(5.0), name="table")

    with pytest.raises(AttributeError):
        table.variables = []
    table.variables.clear()
    assert len(table.variables) == 3


def test_a_deep_copy_of_a_sharded_variable_has_shards_of_its_own(in_three: Any) -> None:
    with in_three.scope():
        table = wb.Variable(np.arange(5.0), name="table")

    copied = copy.deepcopy(table)
    copied.assign(np.zeros(5))

    assert [len(part) for part in copied] == [2, 2, 1]
    assert table.numpy().tolist() == [0, 1, 2, 3, 4]
    assert copy.copy(table).variables[0] is table.variables[0]


def test_an_initializer_is_called_once(in_three: Any) -> None:
    calls = []

    def initial() -> Any:
        calls.append(None)
        return np.zeros(len(calls))

    with in_three.scope():
        made = wb.Variable(initial)

    assert made.shape == (1,)
    assert len(calls) == 1


def test_a_partitioner_that_divides_other_dimensions_is_refused(four: Any) -> None:
    made = distribute.ParameterServerStrategy(None, lambda shape, dtype: [1, 2], servers=1)
    with made.scope(), pytest.raises(InvalidArgumentError, match="only the first one"):
        wb.Variable(np.zeros((4, 4)))
    made.close()


def test_a_variable_that_is_no_longer_used_is_dropped_by_its_server(servers: Any) -> None:
    with servers.scope():
        first = wb.Variable(1.0, name="first")
        del first
        kept = wb.Variable(2.0, name="kept"), wb.Variable(3.0, name="other")

    held = [servers.hosting.client.ask(n, {"method": "describe"})["variables"] for n in (0, 1)]

    assert sorted(entry[0].partition("@")[0] for entries in held for entry in entries) == ["kept", "other"]
    assert len(kept) == 2


def test_run_calls_a_function_in_replica_context(servers: Any) -> None:
    with servers.scope():
        v = wb.Variable(1.0)

    def step(x: Any) -> Any:
        context = distribute.get_replica_context()
        assert context is not None
        v.assign_add(x)
        return context.num_replicas_in_sync, context.all_reduce("SUM", v.read_value())

    assert servers.run(step, args=(2.0,)) == (1, 3.0)


def test_the_extended_methods_update_and_colocate(servers: Any) -> None:
    with servers.scope():
        a = wb.Variable(1.0)
        with servers.extended.colocate_vars_with(a):
            b, c = wb.Variable(2.0), wb.Variable(3.0)
        servers.extended.update(a, lambda v, x: v.assign_add(x), args=(5.0,))

    assert float(a) == 6
    assert {v.device for v in (a, b, c)} == {"/job:ps/replica:0/task:0/device:CPU:0"}
    assert servers.extended.parameter_devices[1] == "/job:ps/replica:0/task:1/device:CPU:0"


def test_a_closed_strategy_says_so_and_leaves_no_journal(four: Any, tmp_path: Any) -> None:
    made = distribute.ParameterServerStrategy(servers=1, journal_folder=str(tmp_path))
    with made.scope():
        v = wb.Variable(1.0)
    assert len(os.listdir(tmp_path)) == 1

    made.close()

    with pytest.raises(FailedPreconditionError, match="closed"):
        v.read_value()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"worker": ["a:1"]}, "'ps'"),
        ({"ps": ["a:1"]}, "'worker'"),
        ({"worker": ["a:1"], "ps": ["b:1"], "gpu": ["c:1"]}, "jobs gpu"),
        ({"worker": ["a:1"] * 9, "ps": ["b:1"]}, "9 workers and 1 parameter server"),
    ],
)
def test_a_cluster_without_the_roles_is_refused(four: Any, spec: Any, text: str) -> None:
    resolver = distribute.cluster_resolver.SimpleClusterResolver(distribute.ClusterSpec(spec))

    with pytest.raises(InvalidArgumentError, match=text):
        distribute.experimental.ParameterServerStrategy(resolver)


def test_no_server_is_refused(four: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="at least one"):
        distribute.ParameterServerStrategy(servers=0)


@pytest.mark.parametrize("wrong", ["x", {"worker": ["a:1"]}, distribute.ClusterSpec({"worker": ["a:1"]})])
@pytest.mark.parametrize(
    ("strategy", "argument"),
    [
        (distribute.ParameterServerStrategy, "cluster_resolver"),
        (wb.MultiWorkerMirroredStrategy, "cluster_resolver"),
        (wb.TPUStrategy, "tpu_cluster_resolver"),
    ],
)
def test_what_is_no_resolver_is_refused(four: Any, strategy: Any, argument: str, wrong: Any) -> None:
    with pytest.raises(
        TypeError, match=rf"^{strategy.__name__}: {argument} is one of .*, got {type(wrong).__name__}"
    ):
        strategy(wrong)


@pytest.mark.parametrize("given", ["x", 3, [2.5, 1], None])
def test_a_partitioner_that_gives_no_numbers_is_named_with_the_variable(four: Any, given: Any) -> None:
    strategy = distribute.ParameterServerStrategy(None, lambda shape, dtype: given, servers=2)
    try:
        with (
            strategy.scope(),
            pytest.raises(
                InvalidArgumentError, match=r"variable 'w' of shape \(4, 2\): the partitioner gave .*list"
            ),
        ):
            wb.Variable(np.zeros((4, 2)), name="w")
    finally:
        strategy.close()


@pytest.mark.parametrize("shards", [0, -1])
def test_a_partitioner_has_to_put_rows_somewhere(four: Any, shards: int) -> None:
    partitioner = distribute.experimental.partitioners.FixedShardsPartitioner(shards)
    strategy = distribute.ParameterServerStrategy(None, partitioner, servers=2)
    try:
        with strategy.scope():
            assert wb.Variable(np.zeros((0, 2))).shape == (0, 2)
            with pytest.raises(
                InvalidArgumentError, match=rf"'w' .* gave \[{shards}, 1\]; rows need at least"
            ):
                wb.Variable(np.zeros((4, 2)), name="w")
    finally:
        strategy.close()


def test_a_variable_without_a_name_has_the_usual_one(four: Any) -> None:
    partitioner = distribute.experimental.partitioners.FixedShardsPartitioner(2)
    strategy = distribute.ParameterServerStrategy(None, partitioner, servers=2)
    try:
        with strategy.scope():
            assert wb.Variable(1.0, name=None).name == wb.Variable(1.0).name == "Variable:0"
            sharded = wb.Variable(np.zeros((4, 2)), name=None)
            assert [part.name for part in sharded.variables] == ["Variable/part_0:0", "Variable/part_1:0"]
    finally:
        strategy.close()


@pytest.mark.parametrize(
    "give", [lambda: [2.0, 1], lambda: (2, 1), lambda: np.array([2, 1]), lambda: (count for count in (2, 1))]
)
def test_a_partitioner_may_give_any_whole_numbers(four: Any, give: Any) -> None:
    strategy = distribute.ParameterServerStrategy(None, lambda shape, dtype: give(), servers=2)
    with strategy.scope():
        assert len(wb.Variable(np.zeros((4, 2))).variables) == 2
    strategy.close()


@pytest.mark.parametrize("servers", ["2", 1.5, True])
def test_a_number_of_servers_that_is_none_is_refused(four: Any, servers: Any) -> None:
    with pytest.raises(TypeError, match=rf"servers must be a whole number, got \w+ {servers!r}"):
        distribute.ParameterServerStrategy(servers=servers)


def test_a_partitioner_that_cannot_be_called_is_refused(four: Any) -> None:
    with pytest.raises(TypeError, match=r"variable_partitioner must be one of .*partitioners.* got int: 3"):
        distribute.ParameterServerStrategy(None, 3, servers=1)  # type: ignore[arg-type]


def test_a_notebook_shows_the_servers_and_what_they_hold(servers: Any) -> None:
    from workbench.ui.formatters import servers_html

    with servers.scope():
        kept = wb.Variable(np.zeros((256, 8), "float32"))
    text = servers_html(servers)

    assert "2 workers" in text
    assert "ps:0" in text
    assert "ps:1" in text
    assert kept.shape == (256, 8)
    assert "8 KiB" in text or "8.0 KiB" in text or "8.2 kB" in text
