"""`Dataset.explain`: what is measured, what it says, and what it leaves alone."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.data.cost.bottleneck import verdict
from workbench.data.cost.flow import PipelineFlow, ReplicaWait, pipeline_flow, replica_waits
from workbench.data.cost.profile import PipelineProfile, QueueProfile, StageProfile, Workers
from workbench.data.cost.recent import ReaderHistory
from workbench.data.dataset import Dataset
from workbench.data.explanation import InputExplanation, input_flow


def _flow(*stages: StageProfile, elapsed_seconds: float = 10, name: str = "here") -> PipelineFlow:
    return pipeline_flow(PipelineProfile(stages, elapsed_seconds), name=name)


def _stage(name: str, own_seconds: float = 0, **more: Any) -> StageProfile:
    return StageProfile(name, **{"elements": 100, "own_seconds": own_seconds, **more})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    now = itertools.count()
    clock = type("Clock", (), {"seconds": 0.0})()
    monkeypatch.setattr("workbench.data.meter.perf_counter_ns", lambda: int(clock.seconds * 1e9) + next(now))
    monkeypatch.setattr("workbench.data.explanation.time.monotonic", lambda: clock.seconds)
    return clock


def test_the_stage_that_takes_the_time_is_named_with_what_would_help(clock: Any) -> None:
    def parse(value: Any) -> Any:
        clock.seconds += 0.01
        return value

    found = Dataset.range(50).map(parse).batch(10).explain()

    text = repr(found)
    advice = (
        r"map\(parse\) takes (>99|100)\u202f% of the time: give it num_parallel_calls=wb\.data\.AUTOTUNE\."
    )
    assert re.search(advice, text)
    assert re.search(r"^> map\(parse\)\s+100\s.*(>99|100)\u202f%\s+10,000 µs$", text, re.M)
    assert "one pass" in text
    assert max(map(len, text.splitlines())) <= 88


def test_it_ends_at_the_bound_that_comes_first(clock: Any) -> None:
    def slow(value: Any) -> Any:
        clock.seconds += 0.25
        return value

    dataset = Dataset.range(100).map(slow)

    assert dataset.explain(elements=3).flow.pipelines[0].stages[-1].elements == 3
    by_time = dataset.explain(seconds=0.5)
    assert by_time.flow.pipelines[0].stages[-1].elements == 2
    assert by_time.flow.limit == "the first 0.5 s of a pass"
    assert dataset.take(2).explain().flow.limit == "one pass"


def test_an_endless_dataset_is_measured_for_the_given_time(clock: Any) -> None:
    def tick(value: Any) -> Any:
        clock.seconds += 0.25
        return value

    assert Dataset.counter().map(tick).explain(seconds=2).flow.elapsed_seconds == pytest.approx(2)


@pytest.mark.parametrize(
    "bound", [{"elements": 0}, {"elements": -1}, {"seconds": 0}, {"seconds": float("nan")}]
)
def test_a_bound_that_leaves_nothing_is_refused(bound: dict[str, Any]) -> None:
    with pytest.raises(wb.errors.InvalidArgumentError, match="explain"):
        Dataset.range(3).explain(**bound)


def test_shuffled_orders_stay_as_they_are_without_it() -> None:
    one, other = (Dataset.range(50).shuffle(50, seed=7) for _ in range(2))
    one.explain()

    assert [list(one), list(one)] == [list(other), list(other)]


def test_a_cache_is_not_filled(tmp_path: Path) -> None:
    calls: list[int] = []

    def note(value: Any) -> Any:
        calls.append(int(value))
        return value

    for dataset in (
        Dataset.range(3).map(note).cache(),
        Dataset.range(3).map(note).cache(str(tmp_path / "kept")),
    ):
        text = repr(dataset.explain())
        assert "not filled while it is measured" in text
        calls.clear()
        assert list(dataset) == [0, 1, 2]
        assert len(calls) >= 3
        calls.clear()
        assert "not filled" not in repr(dataset.explain())
        assert calls == []


def test_a_snapshot_is_not_written(tmp_path: Path) -> None:
    dataset = Dataset.range(5).snapshot(str(tmp_path / "snapshot"))

    assert "not written while it is measured" in repr(dataset.explain())
    assert not list(tmp_path.rglob("*"))
    assert list(dataset) == list(range(5))
    assert "not written" not in repr(dataset.explain())


def test_elements_that_fail_are_counted_and_a_first_one_that_fails_raises() -> None:
    def odd(value: Any) -> Any:
        if value % 2:
            raise ValueError("odd")
        return value

    assert Dataset.range(10).map(odd).explain().flow.pipelines[0].stages[1].failures == 5
    with pytest.raises(ValueError, match="odd"):
        Dataset.range(1, 2).map(odd).explain()
    with pytest.raises(wb.errors.NotFoundError):
        wb.data.TextLineDataset("/nowhere/at/all.txt").explain()


def test_elements_that_are_left_out_are_counted() -> None:
    dataset = Dataset.range(10).map(lambda x: 6 // int(x % 4)).ignore_errors().batch(2)

    found = dataset.explain()

    assert "ignore_errors: left out 3 elements." in repr(found).replace("\n", " ")
    assert "ignore_errors: left out 3 elements." in found._repr_html_()
    assert "left out" not in repr(Dataset.range(3).ignore_errors().explain())


def test_the_bottleneck_stands_out_in_html_too(clock: Any) -> None:
    def parse(value: Any) -> Any:
        clock.seconds += 0.01
        return value

    rows = Dataset.range(50).map(parse).batch(10).explain()._repr_html_().split("<tr")

    (marked,) = [row for row in rows if "▶" in row]
    assert "map(parse)" in marked
    assert 'title="bottleneck"' in marked
    assert "bold" in marked


def test_an_empty_dataset_says_that_nothing_was_read() -> None:
    assert "Nothing was read yet." in repr(Dataset.range(0).explain())


def test_a_generator_is_closed_afterwards() -> None:
    closed = []

    def numbers() -> Iterator[int]:
        try:
            yield from itertools.count()
        finally:
            closed.append(True)

    dataset = Dataset.from_generator(numbers, output_signature=wb.data.TensorSpec((), np.int64))
    dataset.explain(elements=5)

    assert closed == [True]


def test_elements_one_by_one_are_said_to_want_batches() -> None:
    sentence, advice = verdict([_flow(_stage("range", 0.01))], [])

    assert (sentence, advice) == (
        "Handing elements over one by one takes most of the time.",
        "batch them with dataset.batch(n)",
    )


@pytest.mark.parametrize(
    ("stage", "advice"),
    [
        ("text lines", "files.interleave"),
        ("interleave(read)", "num_parallel_calls=wb.data.AUTOTUNE"),
        ("flat_map(read)", "interleave"),
        ("map(parse) 'decoding'", "num_parallel_calls=wb.data.AUTOTUNE"),
        ("generator", "many rows at a time"),
        ("batch(32)", "prefetch(wb.data.AUTOTUNE)"),
        ("filter(<lambda>)", "map with num_parallel_calls"),
    ],
)
def test_each_kind_of_stage_has_advice_of_its_own(stage: str, advice: str) -> None:
    found = verdict([_flow(_stage("range"), _stage(stage, 7))], [])

    assert found[0] == f"{stage} takes 70\u202f% of the time."
    assert advice in found[1]


def test_a_stage_within_interleave_is_helped_by_the_interleave() -> None:
    inner = PipelineProfile((_stage("range"), _stage("map(read)", 8)), 10)
    flow = _flow(_stage("range"), _stage("interleave(f)", inputs=(inner,)))

    assert flow.stages[flow.bottleneck].name == "map(read)"
    assert verdict([flow], [])[1].startswith("interleave(f) can run it for several inputs at a time")


def test_workers_are_judged_by_how_busy_each_is_and_said_to_be_chosen() -> None:
    parallel = _stage("map(parse)", 36, workers=Workers(4, "threads", chosen=True))
    queued = _stage("prefetch(4)", queue=QueueProfile(4, chosen=True, fills=300, looks=100, held_bytes=2048))
    flow = _flow(_stage("range", 2), parallel, queued)

    assert flow.stages[flow.bottleneck].busy_share == pytest.approx(0.9)
    assert verdict([flow], [])[0] == "map(parse) keeps its 4 threads busy 90\u202f% of the time."
    text = repr(InputExplanation(input_flow([flow], elapsed_seconds=10)))
    assert "4 threads (AUTOTUNE)" in text
    assert "3.00 of 4 (AUTOTUNE), 2 KiB" in text
    assert max(map(len, text.splitlines())) <= 88


def test_a_map_that_is_computed_in_blocks_gets_other_advice_than_one_that_is_called_for_each_element() -> (
    None
):
    blocks = Dataset.range(100_000).map(lambda x: x * 2 + 1).explain().flow.pipelines[0].stages[1]
    each = Dataset.range(100).map(lambda x: int(x)).explain().flow.pipelines[0].stages[1]

    assert blocks.block_rows > 1
    assert each.block_rows == 0
    sentence, advice = verdict([_flow(_stage("range"), _stage("map(scale)", 7, block_rows=4096))], [])
    assert sentence == "map(scale) takes 70\u202f% of the time."
    assert "computed for 4,096 rows at a time already" in advice
    assert "num_parallel_calls" not in advice


def test_rates_of_the_last_seconds_stand_beside_the_averages() -> None:
    def profile(elapsed_seconds: float, elements: int) -> tuple[PipelineProfile, ...]:
        inner = PipelineProfile((_stage("records", elements=10 * elements),), elapsed_seconds)
        source = _stage("interleave(read)", elements=elements, inputs=(inner,))
        return (PipelineProfile((source, _stage("batch(4)", elements=elements // 4)), elapsed_seconds),)

    told = ReaderHistory().and_now(profile(1, 1000), at=101)
    assert told.recent(101) is None  # the averages cover the last seconds
    for second in range(2, 11):
        told = told.and_now(profile(second, 1000 + 80 * (second - 1)), at=100 + second)
    (recent,) = told.recent(110) or ()
    (newest,) = told.newest

    flow = pipeline_flow(newest, recent)

    assert [stage.name for stage in flow.stages] == ["records", "interleave(read)", "batch(4)"]
    assert [stage.recent_per_second for stage in flow.stages] == [800, 80, 20]
    assert flow.stages[1].elements_per_second == 172
    text = repr(InputExplanation(input_flow([flow], elapsed_seconds=10)))
    assert re.search(r"^  interleave\(read\)\s+172\s+80", text, re.M)
    assert "now: elements/s in the last 5 s." in text
    assert "now" not in repr(InputExplanation(input_flow([pipeline_flow(newest)], elapsed_seconds=10)))
    assert told.recent(130) is None  # nothing was reported for a long time
    assert told.and_now(profile(1, 10), at=131).recent(131) is None  # another process reads


def test_replicas_that_hardly_wait_need_no_advice() -> None:
    waits = replica_waits([0.1, 0.2], [0, 0], 10)

    assert verdict([_flow(_stage("map(parse)", 9))], waits) == (
        "Input keeps up: replicas waited 2\u202f% of the time for it.",
        "",
    )
    assert not any(wait.starving for wait in waits)


def test_the_starving_replica_and_the_host_with_the_bottleneck_are_named() -> None:
    waits = replica_waits([1.0, 6.0], [0, 1], 10)
    pipelines = [
        _flow(_stage("map(parse)", 2), name="a"),
        _flow(_stage("map(parse)", 8), name="b"),
    ]

    assert [wait.starving for wait in waits] == [False, True]
    assert verdict(pipelines, waits)[0] == (
        "Replica 1 waits 60\u202f% of the time for input: map(parse) takes 80\u202f% of the time on b."
    )


def test_a_stage_that_is_as_busy_on_every_host_is_said_of_none_alone() -> None:
    pipelines = [_flow(_stage("map(parse)", 8 + host / 10), name=f"host {host}") for host in range(9)]

    assert verdict(pipelines, [])[0] == "map(parse) takes 88\u202f% of the time on every host."
    pipelines[8] = _flow(_stage("map(parse)", 1), name="host 8")
    assert verdict(pipelines, [])[0] == "map(parse) takes 87\u202f% of the time on 8 of 9 hosts."


def test_a_replica_waits_for_the_host_that_it_is_on() -> None:
    pipelines = [
        _flow(_stage("map(parse)", 9), name="a"),
        replace(_flow(_stage("batch(4)", 3), name="b"), host=1),
    ]

    found, _ = verdict(pipelines, replica_waits([1.0, 6.0], [0, 1], 10))

    assert (
        found == "Replica 1 waits 60\u202f% of the time for input: batch(4) takes 30\u202f% of the time on b."
    )


def test_a_replica_whose_host_is_no_busier_than_others_waits_for_something_else() -> None:
    pipelines = [replace(_flow(_stage("map(parse)", 2), name=f"host {host}"), host=host) for host in range(8)]

    found, advice = verdict(pipelines, replica_waits([0.1] * 7 + [6.0], range(8), 10))

    assert found == (
        "Replica 7 waits 60\u202f% of the time for input, though no stage on host 7 is busier than on other hosts."
    )
    assert "prefetch" in advice


def test_replicas_that_all_wait_alike_are_named_together() -> None:
    waits = replica_waits([8.8, 9.0], [0, 0], 10)

    assert [wait.starving for wait in waits] == [True, True]
    assert verdict([_flow(_stage("generator", 9))], waits)[0] == (
        "Every replica waits 90\u202f% of the time for input: generator takes 90\u202f% of the time."
    )
    assert verdict([_flow(_stage("range"))], waits)[0].startswith("Every replica waits 90\u202f% of the time")


def test_many_hosts_and_replicas_are_bounded() -> None:
    pipelines = [_flow(_stage("range"), name=f"host {host}") for host in range(40)]
    waits = replica_waits([float(replica) for replica in range(100)], [0] * 100, 1000)
    flow = input_flow(pipelines, waits, status="live", elapsed_seconds=1000)

    assert (len(flow.pipelines), flow.hidden_pipelines) == (1, 0)
    assert (len(flow.replicas), flow.hidden_replicas) == (8, 92)
    assert flow.replicas[-1] == ReplicaWait(99, 0, 99.0, 0.099, False)
    text = repr(InputExplanation(flow))
    assert "Input of 40 hosts" in text
    assert len(text.splitlines()) < 12


def test_names_from_users_are_text_in_html() -> None:
    dataset = Dataset.range(3).map(lambda x: x, name="<script>alert(1)</script>")

    found = dataset.explain()._repr_html_()

    assert "<script>" not in found
    assert "&lt;script&gt;" in found
