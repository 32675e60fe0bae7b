"""`wb.inspect`: facts per replica, in text, HTML and as data; values stay where they are."""

from __future__ import annotations

import contextlib
import doctest
import json
import time
import types
import weakref
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest

import workbench as wb
from tests.server.summaries import summary
from tests.ui.conftest import Tags
from workbench.backends.summary import read
from workbench.distribute import Mirrored, PerReplica
from workbench.runtime.replica.env import current_env
from workbench.telemetry.snapshot import EventItem
from workbench.ui.inspect import differences
from workbench.ui.inspect import text as inspection_text
from workbench.ui.models.inspected import Difference


@pytest.fixture(scope="module")
def out(strategy: wb.MirroredStrategy) -> dict[str, Any]:
    """The result of a step: each replica has its own."""

    def step() -> dict[str, Any]:
        rank = wb.distribute.get_replica_context().replica_id_in_sync_group
        return {
            "loss": np.float32(0.5) if rank == 0 else np.float32(np.nan),
            "big": np.full((300, 200 + rank), 2.0),
            "label": "<script>alert(1)</script>",
        }

    return strategy.run(step)


def test_a_per_replica_value_is_a_table_with_a_row_per_replica(out: dict[str, Any]) -> None:
    loss = out["loss"]

    heading, titles, *rows = repr(wb.inspect(loss)).splitlines()
    assert heading == "PerReplica 'loss' float32 () over 2 replicas  # not synchronised"
    assert titles.split()[:6] == ["replica", "host:device", "mean", "std", "min", "max"]
    assert titles.split()[-3:] == ["nan", "inf", "age"]
    fine, bad = (row.split() for row in rows)
    assert fine[:6] == ["0", "a:cpu:0", "0.500", "0", "0.500", "0.500"]
    assert fine[-3:] == ["0", "0", ANY]
    assert bad[:6] == ["1", "a:cpu:1", "nan", "–", "–", "–"]
    assert bad[-8:] == ["1", "0", ANY, "<--", "NaN", "at", "step", ANY]


def test_a_structure_has_one_table_per_leaf_named_by_its_place(out: dict[str, Any]) -> None:
    found = wb.inspect(out)

    assert [value.name for value in found.values] == ["out['big']", "out['label']", "out['loss']"]


def test_components_of_different_shape_show_it_in_a_column(out: dict[str, Any]) -> None:
    text = repr(wb.inspect(out["big"], name="big"))

    assert "f64[300,200]" in text
    assert "f64[300,201]" in text


def test_components_that_are_summarised_are_not_fetched(out: dict[str, Any]) -> None:
    wb.inspect(out)

    assert not out["big"].handle.is_here(0)


def test_copies_that_agree_are_in_sync(strategy: wb.MirroredStrategy) -> None:
    with strategy.scope():
        w = wb.Variable(np.ones((4, 2), np.float32), name="w")
    found = wb.inspect(w)
    (value,) = found.values

    assert value.agreement is not None
    assert value.agreement.in_sync
    heading, _, row = repr(found).splitlines()
    assert heading == (
        f"MirroredVariable 'w:0' float32 (4,2): in sync (sha {value.agreement.sha256[:4]}…), max|Δ|=0"
    )
    assert row.split() == ["all", "2", "1.00", "0", "1.00", "1.00", "2.83", "0", "0", "0", ANY]


def test_copies_that_differ_tell_by_how_much_and_from_which_replica_on(strategy: wb.MirroredStrategy) -> None:
    with strategy.scope():
        w = wb.Variable(np.zeros(3, np.float32), name="w")

    def part() -> None:
        w.assign_add(
            np.full(3, 0.25 * wb.distribute.get_replica_context().replica_id_in_sync_group, np.float32)
        )

    strategy.run(part)
    found = wb.inspect(w)

    step = strategy.group.committed_step - 1  # comparing took one more
    assert f"diverged at step {step}, max|Δ|=0.250, first replica 1" in repr(found)
    assert "diverged" in Tags(found._repr_html_()).text


def test_copies_that_differ_are_told_in_a_sentence_with_who_since_when_and_where(
    strategy: wb.MirroredStrategy,
) -> None:
    with strategy.scope():
        w = wb.Variable(np.zeros((6, 4), np.float32), name="apart")

    def part(row: int) -> None:
        rank = wb.distribute.get_replica_context().replica_id_in_sync_group
        new = np.array(w.read_value())
        if rank == 1:
            new[row, :3] += 0.5
        w.assign(new)

    assert wb.inspect(w).values[0].agreement.course is None  # type: ignore[union-attr]  # seen once
    strategy.run(part, args=(2,))
    step = strategy.group.committed_step
    agreement = wb.inspect(w).values[0].agreement
    assert agreement is not None
    assert agreement.sentence == f"Both copies differ since step {step}, in row 2 only"
    assert agreement.evidence == "the largest difference is 0.500, 3 of 24 elements differ"
    assert agreement.step == step
    assert agreement.differences == (Difference(0, 0.0, 0), Difference(1, 0.5, 3))
    assert agreement.course is not None
    assert agreement.course.steps[-1] == step
    assert agreement.course.mean == (0.0, 0.5)

    strategy.run(part, args=(4,))
    again = wb.inspect(w).values[0].agreement
    assert again is not None
    assert again.sentence == f"Both copies differ since step {step}, in rows 2 and 4 only"
    w.assign(np.zeros((6, 4), np.float32))
    assert wb.inspect(w).values[0].agreement.course.mean[-1] == 0.0  # type: ignore[union-attr]


def test_a_number_that_steps_return_has_a_course_that_goes_on_without_the_value(
    strategy: wb.MirroredStrategy,
) -> None:
    def step(i: int) -> np.float32:
        return np.float32(i + wb.distribute.get_replica_context().replica_id_in_sync_group)

    def train(first: int, last: int) -> Any:
        for i in range(first, last):
            loss = strategy.run(step, args=(i,))
        return loss

    def source() -> Any:
        found = wb.inspect(train(0, 3))
        assert (found.values[0].run_id, found.values[0].group) == (
            strategy.group.gang.cluster.name,
            strategy.group.name,
        )
        return found.source()

    followed = source()
    assert followed.model()["values"][0]["course"]["mean"][-3:] == [0.5, 1.5, 2.5]
    assert followed.change() is None
    assert not followed.ended
    assert followed.interval_seconds < 10

    train(3, 5).values  # until the last of them is over
    course = followed.change()["model"]["values"][0]["course"]
    assert course["replicas"][1][-5:] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert len(course["steps"]) == len(course["mean"])

    arrays = wb.inspect(strategy.run(lambda: np.ones(3)))
    assert arrays.values[0].course is None
    assert arrays.source().ended


def test_a_number_that_was_inspected_after_its_first_step_is_followed(strategy: wb.MirroredStrategy) -> None:
    def step(i: int) -> np.float32:
        return np.float32(i)

    def train(i: int) -> Any:
        return strategy.run(step, args=(i,))

    followed = wb.inspect(train(0)).source()
    assert followed.model()["values"][0]["course"] is None  # one step is no history
    assert followed.change() is None
    assert not followed.ended
    assert followed.interval_seconds < 10

    train(1).values  # until it is over
    assert followed.change()["model"]["values"][0]["course"]["mean"] == [0.0, 1.0]
    assert followed.change() is None


def test_figures_that_leave_nan_out_say_so(strategy: wb.MirroredStrategy) -> None:
    def step() -> np.ndarray:
        return np.array(
            [1.0, np.nan if wb.distribute.get_replica_context().replica_id_in_sync_group else 2.0]
        )

    assert "leave NaN and infinity out" in repr(wb.inspect(strategy.run(step)))
    assert "leave NaN" not in repr(wb.inspect(strategy.run(lambda: np.full(2, np.nan))))


def test_variables_whose_components_may_differ_are_not_compared(strategy: wb.MirroredStrategy) -> None:
    with strategy.scope():
        n = wb.Variable(0, name="n", synchronization="ON_READ", aggregation="SUM")
    (value,) = wb.inspect(n).values

    assert (value.kind, value.agreement) == ("SyncOnReadVariable", None)


def test_one_component_of_a_variable_has_one_row(strategy: wb.MirroredStrategy) -> None:
    with strategy.scope():
        w = wb.Variable(np.zeros(3, np.float32), name="w")
    (value,) = wb.inspect(strategy.local_results(w)[1]).values

    assert [replica.replica for replica in value.replicas] == [1]


def test_values_in_the_notebook_can_be_inspected_too() -> None:
    array = np.arange(5)

    assert "int64 (5)" in repr(wb.inspect(array))
    assert [value.kind for value in wb.inspect([array, 2.0, wb.Variable(1.0)]).values] == [
        "ndarray",
        "float",
        "Variable",
    ]


def test_values_that_replicas_do_not_have_yet_have_a_row_for_each() -> None:
    (value,) = wb.inspect(Mirrored((np.ones(2), np.ones(2)))).values

    assert [replica.replica for replica in value.replicas] == [0, 1]


def test_facts_are_json(out: dict[str, Any]) -> None:
    found = json.loads(json.dumps(wb.inspect(out["loss"]).to_dict(), allow_nan=False))

    assert found["values"][0]["replicas"][1]["summary"]["nan"] == 1
    assert found["values"][0]["replicas"][1]["summary"]["mean"] is None


def test_html_shows_names_of_the_user_as_text(strategy: wb.MirroredStrategy) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    with strategy.scope():
        w = wb.Variable(0.0, name=hostile)
    drawn = Tags(wb.inspect(w)._repr_html_())

    assert hostile in drawn.text
    assert not {"img", "onerror", "script"} & set(drawn.tags)


def test_no_line_is_wider_than_88_columns(strategy: wb.MirroredStrategy) -> None:
    with strategy.scope():
        w = wb.Variable(np.full((2, 3), 1.23456e-12), name="a_rather_long_name_for_a_variable")

    assert max(map(len, repr(wb.inspect([w, np.full((12, 34), -1e300)])).splitlines())) <= 88


def test_of_many_replicas_those_with_nan_are_shown() -> None:
    components = [np.ones(2)] * 50
    components[45] = np.array([np.nan, 1.0])
    text = repr(wb.inspect(Mirrored(tuple(components))))

    assert "<-- NaN" in text
    assert "49 more replicas, finite and close to each other" in text


def test_a_strategy_is_looked_at_through_its_variables() -> None:
    own = wb.MirroredStrategy()
    with own.scope():
        kept = [wb.Variable(np.zeros(2), name="first"), wb.Variable(np.ones(3), name="second")]

    assert [value.name for value in wb.inspect(own).values] == [variable.name for variable in kept]


def test_nan_since_which_step_is_told_of_small_results(strategy: wb.MirroredStrategy) -> None:
    @wb.function
    def step(k: int) -> Any:
        rank = wb.distribute.get_replica_context().replica_id_in_sync_group
        return np.float32(np.nan if k >= 3 and rank == 1 else 1.0)

    for k in range(6):
        loss = strategy.run(step, args=(k,))
    (value,) = wb.inspect(loss).values

    assert [replica.note for replica in value.replicas] == [
        "",
        f"NaN since step {strategy.group.committed_step - 2}",
    ]
    assert all(replica.age_seconds is not None and replica.age_seconds >= 0 for replica in value.replicas)


def test_a_variable_went_wrong_between_two_inspections(strategy: wb.MirroredStrategy) -> None:
    with strategy.scope():
        w = wb.Variable(np.zeros(3, np.float32), name="w")

    @wb.function
    def part(add: bool) -> None:
        rank = wb.distribute.get_replica_context().replica_id_in_sync_group
        w.assign_add(
            np.full(3, float(add) * np.inf if rank else 0.0, np.float32) if add else np.zeros(3, np.float32)
        )

    strategy.run(part, args=(False,))
    assert "in sync" in repr(wb.inspect(w))
    fine = strategy.group.committed_step
    for add in (False, True, True):
        strategy.run(part, args=(add,))
    strategy.group.wait()
    bad = strategy.group.committed_step
    first = repr(wb.inspect(w))

    assert f"diverged between steps {fine + 1} and {bad}" in first
    assert f"<-- Inf between steps {fine + 1} and {bad}" in first
    strategy.run(part, args=(False,))
    assert f"diverged between steps {fine + 1} and {bad}" in repr(wb.inspect(w))


def test_what_the_notebook_assigns_outdates_what_was_known(strategy: wb.MirroredStrategy) -> None:
    with strategy.scope():
        w = wb.Variable(np.zeros(3, np.float32), name="w")

    def part(amount: float) -> None:
        rank = wb.distribute.get_replica_context().replica_id_in_sync_group
        w.assign_add(np.full(3, amount * rank, np.float32))

    for _ in range(2):
        strategy.run(part, args=(1.0,))
    assert "diverged between steps" in repr(wb.inspect(w))
    w.assign(np.zeros(3, np.float32))
    strategy.run(part, args=(1.0,))
    once = repr(wb.inspect(w))
    step = strategy.group.committed_step - 1  # comparing took one more
    assert f"diverged at step {step}," in once
    w.assign(np.zeros(3, np.float32))
    for _ in range(2):
        strategy.run(part, args=(2.0,))
    last = strategy.group.committed_step
    assert f"diverged between steps {last - 1} and {last}," in repr(wb.inspect(w))
    w.assign(np.full(3, np.nan, np.float32))
    assert "<-- NaN, at [0]" in repr(wb.inspect(w))  # no step did that


def test_what_the_notebook_assigns_on_one_replica_outdates_what_was_known(
    strategy: wb.MirroredStrategy,
) -> None:
    with strategy.scope():
        w = wb.Variable(np.zeros(3, np.float32), name="w")

    def part(amount: float, *, often: int = 1) -> None:
        rank = wb.distribute.get_replica_context().replica_id_in_sync_group
        for _ in range(1 if rank else often):  # replica 0 has assigned far more often
            w.assign_add(np.full(3, amount * rank, np.float32))

    strategy.run(lambda: part(0.0, often=9))
    strategy.run(part, args=(1.0,))
    assert "diverged between steps" in repr(wb.inspect(w))
    own = strategy.local_results(w)[1]
    own.assign(np.zeros(3, np.float32))
    assert "in sync" in repr(wb.inspect(w))
    strategy.run(part, args=(1.0,))
    step = strategy.group.committed_step
    assert f"diverged at step {step}, max|Δ|=1.00" in repr(wb.inspect(w))

    own.assign(np.full(3, 5.0, np.float32))  # no step did that
    assert "diverged, max|Δ|=5.00" in repr(wb.inspect(w))
    strategy.run(part, args=(0.0,))
    assert "diverged, max|Δ|=5.00" in repr(wb.inspect(w))


def test_a_variable_that_replicas_assign_unequally_often_went_wrong_when_the_last_one_did(
    strategy: wb.MirroredStrategy,
) -> None:
    with strategy.scope():
        w = wb.Variable(np.zeros(3, np.float32), name="w")

    def part(amounts: tuple[int, ...]) -> None:
        rank = wb.distribute.get_replica_context().replica_id_in_sync_group
        for _ in range(amounts[rank]):
            w.assign(np.full(3, float(rank and amounts[1] == 1), np.float32))

    strategy.run(part, args=((3, 3),))
    assert "in sync" in repr(wb.inspect(w))
    fine = strategy.group.committed_step
    strategy.run(part, args=((3, 0),))
    strategy.run(part, args=((0, 1),))
    assert f"diverged between steps {fine + 1} and {fine + 2}" in repr(wb.inspect(w))


def test_the_place_of_the_first_nan_is_told(strategy: wb.MirroredStrategy) -> None:
    def step() -> Any:
        array = np.ones((4, 6), np.float32)
        if wb.distribute.get_replica_context().replica_id_in_sync_group == 1:
            array[2, 5] = array[3, 0] = np.nan
        return array

    found = wb.inspect(strategy.run(step), name="x")

    assert f"<-- NaN at step {strategy.group.committed_step}, at [2,5]" in repr(found)
    assert [replica.bad_since for replica in found.values[0].replicas] == [-1, strategy.group.committed_step]


def test_what_is_not_finite_is_told_to_the_log_once_until_it_is_seen_to_be_gone(
    cluster: wb.Cluster, strategy: wb.MirroredStrategy
) -> None:
    with strategy.scope():
        w, v = (wb.Variable(np.zeros((2, 3), np.float32), name=name) for name in ("spoiled", "v"))

    def told() -> list[EventItem]:
        return [event for event in cluster.feed.snapshot().events if "found in spoiled:0" in event.message]

    def spoil() -> None:
        if wb.distribute.get_replica_context().replica_id_in_sync_group == 1:
            w.assign(np.array([[0, 0, 0], [0, np.nan, 0]], np.float32))

    found = summary(cluster).nan
    strategy.run(spoil)
    step = strategy.group.committed_step
    for _ in range(2):
        wb.inspect([w, v])
    (alert,) = told()
    assert (alert.kind, alert.name, alert.severity) == ("alert", "nan", "warning")
    assert (alert.replica, alert.host, alert.step) == (1, "a", step)
    assert (
        alert.message
        == f"MirroredStrategy: wb.inspect found in spoiled:0 on replica 1: NaN at step {step}, at [1,1]"
    )
    assert summary(cluster).nan == found + 1

    for variable in (w, v):
        variable.assign(np.zeros((2, 3), np.float32))
    wb.inspect(w)
    assert len(told()) == 1
    for variable in (w, v):
        variable.assign(np.full((2, 3), np.inf, np.float32))
    wb.inspect([w, v])
    _, alert = told()
    assert (alert.name, alert.replica, alert.step) == ("inf", -1, -1)
    assert (
        alert.message
        == "MirroredStrategy: wb.inspect found in spoiled:0 on replicas 0 and 1: Inf, at [0,0], and in 1 more value"
    )


def test_spread_values_have_a_histogram_in_text_and_html(strategy: wb.MirroredStrategy) -> None:
    with strategy.scope():
        w = wb.Variable(np.repeat(np.arange(24, dtype=np.float32), 3), name="w")
    found = wb.inspect(w)

    assert "████████" in repr(found)
    assert "histogram" in repr(found)
    assert "████████" in Tags(found._repr_html_()).text
    assert found.values[0].replicas[0].summary.histogram == (3,) * 24


def test_an_empty_batch_is_named_as_a_reason_for_nan(strategy: wb.MirroredStrategy) -> None:
    def mean(batch: Any) -> Any:
        return np.float64(batch.sum()) / len(batch) if len(batch) else np.float64(np.nan)

    data = wb.data.Dataset.range(5).batch(2)
    for batch in strategy.distribute_dataset(data):
        loss = strategy.run(mean, args=(batch,))
    text = repr(wb.inspect(loss))

    assert "replica 1 got an empty batch in this step: a mean over no rows is NaN." in text
    assert max(map(len, text.splitlines())) <= 88
    assert "empty batch" in Tags(wb.inspect(loss)._repr_html_()).text
    del batch
    assert "empty batch" not in repr(wb.inspect(loss))  # a lost replica reports nothing


def test_ages_have_two_digits() -> None:
    assert doctest.testmod(inspection_text).failed == 0


def test_of_many_values_those_are_shown_that_are_not_finite_and_few_bytes_are_sent() -> None:
    many = [np.float32(number) for number in range(3000)]
    many[2000] = np.float32("nan")
    found = wb.inspect(many)
    assert len(found.values) == 3000

    text, page = repr(found), found._repr_html_()
    model = json.dumps(found.source().model())
    assert "2,900 more values are not shown" in text
    assert [len(shown) < 300_000 for shown in (text, page, model)] == [True] * 3
    for shown in (text, page, model):
        assert "[2000]" in shown
        assert "[98]" in shown
        assert "[99]" not in shown
    assert "not shown" not in repr(wb.inspect(many[:100]))


def test_of_very_many_values_the_first_are_looked_at_and_it_says_so() -> None:
    many = {f"c{number}": np.float32(number) for number in range(5000)}
    found = wb.inspect(many)

    assert len(found.values) == 4096
    assert "only the first 4,096 values were looked at: inspect a part, or give exact=True" in " ".join(
        repr(found).split()
    )
    assert len(wb.inspect(many, exact=True).values) == 5000

    [hint] = found.source().answer({"kind": "again"})["model"]["values"][-1]["hints"]
    assert "only the first 4,096" in hint


def test_what_is_said_of_a_part_of_a_huge_array_says_so(low_limits: None) -> None:
    array = np.zeros(1 << 21, np.int8)

    partly, all_of_it = repr(wb.inspect(array)), repr(wb.inspect(array, exact=True))

    assert "262,144 of 2,097,152 elements were read, evenly spaced" in partly
    assert "exact=True" in partly
    assert "were read" not in all_of_it


def test_copies_are_compared_where_they_are_read(low_limits: None) -> None:
    with wb.connect(replicas=2, processes=False, replace=True):
        strategy = wb.MirroredStrategy()
        with strategy.scope():
            w = wb.Variable(np.zeros(1 << 21, np.float32), name="w")

        def part(first: int) -> None:
            context = wb.distribute.get_replica_context()
            array = np.zeros(1 << 21, np.float32)
            array[first] = context.replica_id_in_sync_group
            w.assign(array)

        strategy.run(part, (3,))
        [apart] = wb.inspect(w).values
        strategy.run(part, ((1 << 16) + 3,))  # between the stretches
        [unseen] = wb.inspect(w).values
        [seen] = wb.inspect(w, exact=True).values

        assert (apart.agreement.in_sync, apart.agreement.max_abs_difference) == (False, 1.0)
        assert unseen.agreement.in_sync
        assert any("what is said to be equal" in hint for hint in unseen.hints)
        assert (seen.agreement.in_sync, seen.agreement.max_abs_difference) == (False, 1.0)
        with pytest.raises(AssertionError, match="'w:0' is not in sync"):
            wb.testing.assert_in_sync(w)


def test_of_copies_that_differ_everywhere_some_are_compared(
    low_limits: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(differences, "_MOST_COMPARED", 2)
    with wb.connect(replicas=2, processes=False, replace=True):
        strategy = wb.MirroredStrategy()
        with strategy.scope():
            w = wb.Variable(np.zeros((1 << 20) + 1), name="w")

        def part() -> None:
            context = wb.distribute.get_replica_context()
            w.assign(np.arange((1 << 20) + 1) * float(context.replica_id_in_sync_group))

        strategy.run(part)
        [some] = wb.inspect(w).values
        [all_of_them] = wb.inspect(w, exact=True).values

        # Of 17 stretches, it reads numbers 0, 5, 10 and 15, and compares 0 and 10.
        assert some.agreement.max_abs_difference == 11 * 65_536 - 1
        assert any("max|Δ| is that of 131,072 of the 262,144 elements" in hint for hint in some.hints)
        assert all_of_them.agreement.max_abs_difference == 1 << 20
        assert not any("max|Δ| is that of" in hint for hint in all_of_them.hints)


@pytest.mark.parametrize("size", [10, (1 << 18) + 1])
def test_components_of_different_shape_have_no_difference(size: int) -> None:
    with wb.connect(replicas=2, processes=False, replace=True):
        strategy = wb.MirroredStrategy()
        with strategy.scope():
            w = wb.Variable(np.zeros(size), name="w")

        def step() -> None:
            env = current_env()
            env.store[w.description.key] = np.zeros(size + env.rank)

        strategy.run(step)
        [found] = wb.inspect(w).values

        assert not found.agreement.in_sync
        assert np.isnan(found.agreement.max_abs_difference)
        assert "shapes differ" in repr(wb.inspect(w))


def test_of_large_copies_those_stretches_travel_that_differ() -> None:
    same, other = read(np.zeros(5 << 16)), np.zeros(5 << 16)
    other[[3, 4 << 16]] = 1

    what = differences.apart(5 << 16, [same.checksums, same.checksums, read(other).checksums], exact=False)

    assert what.numbers.tolist() == [0, 4]
    assert (what.compared, what.differing) == (2 << 16, 2 << 16)


def test_copies_of_replica_0_are_dropped_before_the_next_arrives() -> None:
    arrived: list[weakref.ref[Any]] = []

    class Communicator:
        def internal(self, purpose: str) -> Any:
            return contextlib.nullcontext()

        def broadcast(self, part: np.ndarray, root: int, site: str) -> np.ndarray:
            assert all(earlier() is None for earlier in arrived)
            first = part + 1
            arrived.append(weakref.ref(first))
            return first

    env: Any = types.SimpleNamespace(communicator=Communicator())
    values = [np.full(4, number) for number in range(3)]
    gaps = differences.differences(env, values, [], [np.empty(0, np.int64)] * 3)

    assert [gap[:2].tolist() for gap in gaps] == [[1.0, 4.0]] * 3
    assert len(arrived) == 3


def test_of_short_copies_all_travel() -> None:
    checksums = [read(np.full(10, value)).checksums for value in (0.0, 1.0)]

    assert differences.apart(10, checksums, exact=False).numbers.tolist() == []


def test_a_value_says_of_which_step_it_is() -> None:
    with wb.connect(replicas=2, processes=False, replace=True):
        strategy = wb.MirroredStrategy()
        with strategy.scope():
            w = wb.Variable(np.zeros(3, np.float32), name="w")

        def step() -> np.float32:
            w.assign_add(np.ones(3, np.float32))
            return np.float32(1.0)

        for _ in range(3):
            result = strategy.run(step)
        strategy.run(lambda: None)
        third = 2
        assert [replica.step for replica in wb.inspect(result).values[0].replicas] == [third, third]
        assert [replica.step for replica in wb.inspect(w).values[0].replicas] == [third, third]
        assert "step" in repr(wb.inspect(w)).splitlines()[1]
        w.assign(np.ones(3, np.float32))  # by no step
        assert [replica.step for replica in wb.inspect(w).values[0].replicas] == [-1, -1]
        before = time.time()
        model = wb.inspect(w).model
        assert before <= model.looked_at <= time.time()


def test_64_replicas_are_summarised_by_quantiles_and_outliers() -> None:
    losses = np.linspace(1.0, 2.0, 64)
    losses[40], losses[41] = 50.0, np.inf
    found = wb.inspect(PerReplica(tuple(losses.tolist())), name="loss")
    (value,) = found.values
    assert value.spread is not None
    (quantiles,) = value.spread.quantiles
    finite = losses[np.isfinite(losses)]
    assert quantiles.figure == "value"
    expected = np.quantile(finite, [0, 0.1, 0.5, 0.9, 1])
    got = [quantiles.low, quantiles.p10, quantiles.median, quantiles.p90, quantiles.high]
    np.testing.assert_allclose(got, expected)
    assert value.spread.outliers == (40, 41)
    assert (value.spread.outlying, value.spread.not_finite) == (2, 1)

    lines = repr(found).splitlines()
    assert len(lines) == 7
    assert lines[1].replace("\N{NARROW NO-BREAK SPACE}", "").split() == [
        *("over", "replicas", "min", "10%", "median", "90%", "max")
    ]
    assert lines[4].split()[0] == "40"
    assert "62 more replicas, finite and close to each other" in lines[-1]
    assert "40" in found._repr_html_()

    arrays = [np.full(4, rank / 64) for rank in range(64)]
    arrays[9] = np.array([-900.0, 900.0, 0.0, 0.0])  # with the mean of the others
    (value,) = wb.inspect(PerReplica(tuple(arrays))).values
    assert value.spread is not None
    assert [part.figure for part in value.spread.quantiles] == ["mean", "std", "min", "max", "L2"]
    assert value.spread.outliers == (9,)
    (value,) = wb.inspect(PerReplica(tuple([1.0] * 33))).values
    assert value.spread is not None
    assert value.spread.outliers == ()
    assert "no replica is far from the others; all 33 are finite" in repr(wb.inspect(PerReplica((1.0,) * 33)))
    (value,) = wb.inspect(PerReplica((1.0,) * 32)).values
    assert value.spread is None


@pytest.mark.parametrize("value", [object(), "text"])
def test_what_is_no_array_is_named_once(value: object) -> None:
    assert repr(wb.inspect(value, name="x")) == f"{type(value).__name__} 'x' (no numbers)"
