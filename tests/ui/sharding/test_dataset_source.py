"""What the view of a dataset's sharding is sent while the dataset is gone through."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.data.sharding.model import Shape, Sharding, progress_lines
from workbench.data.sharding.progress import InputProgress
from workbench.ui.sharding.dataset_model import listed_elements
from workbench.ui.sharding.dataset_source import DatasetSource, Followed
from workbench.ui.sharding.explain_sharding import dataset_source

WHAT_IF = {"kind": "what_if", "batch_size": 4, "hosts": 1, "replicas_per_host": 2, "policy": "AUTO"}


def explained(what: Any, shape: Any = None) -> Sharding:
    found = wb.explain_sharding(what, shape)
    assert isinstance(found, Sharding)
    return found


def test_only_progress_is_sent_until_replicas_leave_the_steps_that_are_drawn(
    strategy: wb.MirroredStrategy,
) -> None:
    data = wb.data.Dataset.range(1000).batch(4)
    distributed = strategy.distribute_dataset(data)
    source = DatasetSource(explained(distributed), data, Followed(distributed, data))
    assert source.model()["progress"] is None
    assert source.change() is None

    kinds = []
    for batch in distributed:
        strategy.run(np.sum, args=(batch,))
        message = source.change()
        assert message is not None
        kinds.append(message["kind"])
        if message["kind"] == "model":
            drawn = [reading["step"] for reading in message["model"]["readers"][0]["readings"]]
            assert message["model"]["progress"]["steps"][0] in drawn
    assert len(kinds) == 250
    assert 2 < kinds.count("model") < 10
    assert not source.ended


def test_a_dataset_is_followed_through_the_strategy_that_distributes_it_later(
    strategy: wb.MirroredStrategy,
) -> None:
    data = wb.data.Dataset.range(8).batch(4)
    source = DatasetSource(explained(data, strategy), data, Followed(strategy, data))
    assert source.model()["progress"] is None

    strategy.run(np.sum, args=(next(iter(distributed := strategy.distribute_dataset(data))),))
    other = strategy.distribute_dataset(wb.data.Dataset.range(8).batch(4))
    next(iter(other))
    assert source.model()["progress"]["steps"] == [0, 0]
    assert explained(data, strategy).progress == distributed.progress


def test_while_something_else_is_tried_out_no_progress_is_shown(strategy: wb.MirroredStrategy) -> None:
    data = wb.data.Dataset.range(8).batch(4)
    distributed = strategy.distribute_dataset(data)
    next(iter(distributed))
    source = DatasetSource(explained(distributed), data, Followed(distributed, data))

    other = source.answer(WHAT_IF | {"batch_size": 3})
    assert other is not None
    assert (other["model"]["progress"], other["model"]["steps"]) == (None, 3)
    assert source.change() is None
    back = source.answer(WHAT_IF)
    assert back is not None
    assert back["model"]["progress"]["given"] == 1
    assert source.answer({"kind": "visible"}) is None


def test_a_dataset_that_nobody_keeps_is_not_followed_any_more(strategy: wb.MirroredStrategy) -> None:
    distributed = strategy.distribute_dataset(wb.data.Dataset.range(8).batch(4))
    followed = Followed(distributed, distributed.source)
    assert not followed.ended
    del distributed

    assert followed.ended
    assert followed.progress is None


def test_where_a_dataset_came_to_is_known_when_it_is_gone(strategy: wb.MirroredStrategy) -> None:
    data = wb.data.Dataset.range(8).batch(4)
    source = DatasetSource(explained(data, strategy), data, Followed(strategy, data))
    elements = iter(strategy.distribute_dataset(data))  # it has no other references
    batches = [next(elements)]
    assert source.model()["progress"]["given"] == 1
    batches += elements
    for batch in batches:
        strategy.run(np.sum, args=(batch,))
    del elements

    (message,) = filter(None, [source.change(), source.change()])
    assert message["part"]["progress"]["given"] == 2
    assert message["part"]["progress"]["steps"] == (1, 1)


@pytest.mark.parametrize("through", ["the strategy", "the distributed dataset"])
def test_where_a_dataset_came_to_is_known_that_comes_and_goes_between_two_looks(
    strategy: wb.MirroredStrategy, through: str
) -> None:
    data = wb.data.Dataset.range(8).batch(4)
    distributed = strategy.distribute_dataset(data)
    found = explained(distributed) if through == "the distributed dataset" else explained(data, strategy)
    source = dataset_source(found)
    assert source.model()["progress"] is None

    for batch in distributed:
        strategy.run(np.sum, args=(batch,))
    del distributed, batch

    (message,) = filter(None, [source.change(), source.change()])
    assert message["model"]["progress"]["given"] == 2
    assert message["model"]["progress"]["steps"] == [1, 1]


def test_the_newest_elements_lie_on_the_axis_of_the_strategys_steps(strategy: wb.MirroredStrategy) -> None:
    group = strategy.group
    first = group.number
    distributed = strategy.distribute_dataset(wb.data.Dataset.range(400).batch(4))
    for batch in distributed:
        strategy.run(np.sum, args=(batch,))
        strategy.run(np.mean, args=(batch,))  # a second step with the same element

    progress = explained(distributed).progress
    assert progress is not None
    assert progress.given == 100
    sampled = progress.sampled
    assert sampled is not None
    assert (sampled.run_id, sampled.group) == (group.gang.run_id, group.name)
    assert sampled.steps == tuple(range(first, first + 200, 2))[-64:]


def test_what_a_function_distributes_is_explained_too(strategy: wb.MirroredStrategy) -> None:
    distributed = strategy.distribute_datasets_from_function(
        lambda context: wb.data.Dataset.range(8).batch(2)
    )
    found = explained(distributed)

    assert (found.counts, found.policy, found.dropped) == ((4, 4), "OFF", None)
    assert "a function made the dataset" in found.reason
    source = DatasetSource(found, distributed.source, Followed(distributed, distributed.source))
    assert source.answer(WHAT_IF) is None


def test_the_explanation_of_what_is_gone_through_says_where_replicas_are(
    strategy: wb.MirroredStrategy,
) -> None:
    distributed = strategy.distribute_dataset(wb.data.Dataset.range(8).batch(4))
    assert "epoch" not in repr(explained(distributed))
    for batch in distributed:
        strategy.run(np.sum, args=(batch,))

    text = repr(explained(distributed))
    assert "epoch 0: 2 steps of 2 begun; all replicas are at step 1; waited for input" in text
    assert max(map(len, text.splitlines())) <= 88


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ((-1, -1), "no replica is in one yet"),
        ((3, 3), "all replicas are at step 3"),
        ((3, 1), "replicas are at step 3, replica 1 is behind at step 1"),
        ((0, 3, 0), "replicas are at step 3, replica 0 and 1 more are behind at step 0"),
    ],
)
def test_the_text_names_who_is_behind(steps: tuple[int, ...], text: str) -> None:
    progress = InputProgress(2, 4, 2.0, steps, (1.0,) * len(steps))

    lines = " ".join(line.strip() for line in progress_lines(progress, 10))
    assert lines.startswith(
        f"epoch 2: 4 steps of 10 begun; {text}; waited for input, by replica: 50\u202f% 50\u202f%"
    )
    assert lines.endswith("explain() of the distributed dataset tells which stage takes that time")
    hardly = replace(progress, waited_seconds=(0.1,) * len(steps))
    assert "explain()" not in " ".join(progress_lines(hardly, 10))


@pytest.mark.parametrize("drop_remainder", [False, True])
def test_what_if_begins_with_the_question_that_was_asked(tmp_path: Path, drop_remainder: bool) -> None:
    """A host without lines makes the first step smaller than the batch; the batch is what the dataset says."""
    for name, lines in (("full.txt", 11), ("empty.txt", 0)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in range(lines)), encoding="ascii")
    files = [str(tmp_path / "full.txt"), str(tmp_path / "empty.txt")]
    data = wb.data.TextLineDataset(files).batch(8, drop_remainder=drop_remainder)
    found = wb.explain_sharding(data, Shape(2, 2), policy="FILE")
    assert isinstance(found, Sharding)
    source = DatasetSource(found, data, None)
    model = source.model()
    assert sum(reader["readings"][0]["rows"] for reader in model["readers"]) == 4
    assert model["batch_size"] == 8

    asked = {"kind": "what_if", "batch_size": 8, "hosts": 2, "replicas_per_host": 2, "policy": "FILE"}
    answer = source.answer(asked)
    assert answer is not None
    assert answer["model"] == model


def test_all_elements_of_a_replica_s_step_come_on_request_until_they_are_closed() -> None:
    data = wb.data.Dataset.range(100).shuffle(100, seed=4).batch(40)
    found = wb.explain_sharding(data, 2)
    assert isinstance(found, Sharding)
    source = DatasetSource(found, data, None)
    assert source.model()["listed"] is None

    answer = source.answer({"kind": "list", "step": 1, "replica": 1})
    assert answer is not None
    listed = answer["part"]["listed"]
    assert (listed["step"], listed["replica"], listed["rows"], listed["hidden"]) == (1, 1, 20, 0)
    numbers = [range(int(run.split("–")[0]), int(run.split("–")[-1]) + 1) for run in listed["runs"]]
    assert [number for run in numbers for number in run] == list(found.steps[1][1].ids)
    assert source.model()["listed"]["runs"] == list(listed["runs"])

    assert source.answer({"kind": "list", "step": -1, "replica": -1}) == {
        "kind": "part",
        "part": {"listed": None},
    }
    assert source.model()["listed"] is None
    for step, replica in ((3, 0), (0, 2), (0, -1)):
        with pytest.raises(
            wb.errors.InvalidArgumentError, match=f"step {step} of replica {replica} is not known"
        ):
            source.answer({"kind": "list", "step": step, "replica": replica})


def test_of_very_many_elements_a_message_has_the_first() -> None:
    data = wb.data.Dataset.range(40_000).shuffle(40_000, seed=4).batch(40_000)
    found = wb.explain_sharding(data, 1, max_elements=40_000)
    assert isinstance(found, Sharding)
    listed = listed_elements(found, step=0, replica=0)

    assert sum(len(run) + 2 for run in listed.runs) <= 64 << 10
    assert len(listed.runs) > 8000
    assert listed.hidden > 20_000
