"""A pass that is measured: what each stage is charged with, on whichever thread it works."""

from __future__ import annotations

import pickle
import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import workbench as wb
from workbench.data.cost.profile import PipelineProfile, merged
from workbench.data.dataset import Dataset
from workbench.data.iterator import elements_of
from workbench.data.meter import UNMEASURED, Meter
from workbench.data.passes import Pass
from workbench.data.stage import Opener, Stage
from workbench.data.tables import Run

_END: Any = object()


class Clock:
    """A clock that only moves when a test says so."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns

    def pass_seconds(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("workbench.data.meter.perf_counter_ns", made)
    return made


def _measured(dataset: Dataset, *, take: int | None = None) -> tuple[list[Any], PipelineProfile]:
    meter = Meter(dataset)
    elements: list[Any] = []
    for element in elements_of(dataset.open(Pass(Dataset, meter=meter))):
        elements.append(element)
        if len(elements) == take:
            break
    return elements, meter.pipelines()[0]


def _slow(clock: Clock, seconds: float) -> Callable[[Any], Any]:
    def slow(value: Any) -> Any:
        clock.pass_seconds(seconds)
        return value

    return slow


def test_a_pass_that_nobody_measures_has_no_meter() -> None:
    assert Pass(Dataset).meter is UNMEASURED
    assert list(wb.data.Dataset.range(3)) == [0, 1, 2]


def test_elements_are_the_same_with_and_without_a_meter() -> None:
    dataset = Dataset.range(100).shuffle(10, seed=3).map(lambda x: x * 2).batch(7).filter(lambda x: x[0] > 4)
    expected = [element.tolist() for element in dataset]

    elements, profile = _measured(dataset)

    assert [element.tolist() for element in elements] == expected
    assert profile.names == tuple(part.text for part in (dataset.source, *dataset.stages))
    assert [stage.elements for stage in profile.stages] == [100, 100, 100, 15, len(expected)]


def test_time_is_charged_to_the_stage_that_took_it(clock: Clock) -> None:
    dataset = Dataset.range(4).map(_slow(clock, 3)).map(_slow(clock, 1))

    _, profile = _measured(dataset)

    assert [stage.own_seconds for stage in profile.stages] == [0, 12, 4]
    assert [stage.waited_seconds for stage in profile.stages] == [0, 0, 12]
    assert profile.elapsed_seconds == 16


def test_time_between_two_elements_is_nobodys(clock: Clock) -> None:
    dataset = Dataset.range(3).map(_slow(clock, 1))
    meter = Meter(dataset)

    for _ in elements_of(dataset.open(Pass(Dataset, meter=meter))):
        clock.pass_seconds(10)

    (profile,) = meter.pipelines()
    assert sum(stage.own_seconds for stage in profile.stages) == 3
    assert profile.elapsed_seconds == 33


def test_putting_a_batch_together_is_work_of_the_batch(clock: Clock) -> None:
    class Column(np.ndarray):  # type: ignore[type-arg]
        def __getitem__(self, key: Any) -> Any:
            if isinstance(key, slice):
                clock.pass_seconds(5)
            return super().__getitem__(key)

    dataset = Dataset.from_tensor_slices(np.arange(8.0))
    dataset.source.table.columns = (np.arange(8.0).view(Column),)  # type: ignore[attr-defined]

    _, profile = _measured(dataset.batch(4).map(_slow(clock, 1)))

    source, batch, mapped = profile.stages
    assert (source.own_seconds, batch.own_seconds, mapped.own_seconds) == (0, 10, 2)
    assert mapped.waited_seconds == 10
    assert batch.produced_bytes == 64


def test_failures_are_counted_apart_from_elements() -> None:
    def odd(value: Any) -> Any:
        if value % 2:
            raise ValueError("odd")
        return value

    dataset = Dataset.range(10).map(odd)

    _, profile = _measured(dataset)

    assert (profile.stages[1].elements, profile.stages[1].failures) == (5, 5)


def test_the_size_of_elements_is_estimated_from_a_few() -> None:
    dataset = Dataset.from_tensor_slices(np.zeros((1000, 4), np.float32)).map(lambda x: x.astype(np.float64))

    _, profile = _measured(dataset)

    assert [stage.produced_bytes for stage in profile.stages] == [16_000, 32_000]


def test_a_stage_that_is_opened_again_goes_on_counting() -> None:
    _, profile = _measured(Dataset.range(5).map(lambda x: x).repeat(3))

    assert [stage.elements for stage in profile.stages] == [5 * 3, 5 * 3, 5 * 3]


def test_inputs_of_a_combination_have_profiles_of_their_own() -> None:
    one, other = Dataset.range(6).map(lambda x: x), Dataset.range(6).map(lambda x: x)

    _, profile = _measured(Dataset.zip((one, other)).take(4))

    names = [pipeline.names for pipeline in profile.stages[0].inputs]
    assert names == [one_names := (one.source.text, one.stages[0].text), one_names]
    assert [pipeline.elements for pipeline in profile.stages[0].inputs] == [4, 4]


def test_datasets_that_a_function_gives_share_one_profile_by_their_stages() -> None:
    dataset = Dataset.range(20).interleave(lambda x: Dataset.range(3).map(lambda y: y + x), cycle_length=4)

    _, profile = _measured(dataset)

    (inner,) = profile.stages[1].inputs
    assert inner.names[0].startswith("range")
    assert inner.elements == 60


def test_kinds_of_inner_datasets_are_bounded() -> None:
    dataset = Dataset.range(50).flat_map(lambda x: Dataset.range(50).take(int(x) + 1))

    elements, profile = _measured(dataset)

    assert len(elements) == sum(range(1, 51))
    assert len(profile.stages[1].inputs) == 8


@dataclass(frozen=True)
class _Ahead(Stage):
    """Reads on a thread of its own, as `prefetch` does, and informs its meter."""

    name: ClassVar[str] = "ahead"
    capacity: int
    clock: Clock

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        meter = current.meter
        meter.workers(1, chosen=True)
        waiting: queue.Queue[Run] = queue.Queue(self.capacity)

        def read() -> None:
            with meter.working():
                for run in upstream():
                    self.clock.pass_seconds(1)
                    with meter.blocked():
                        waiting.put(run, timeout=10)
            waiting.put(_END, timeout=10)

        thread = threading.Thread(target=read)
        with meter.waiting():  # threads with one clock can only take turns
            thread.start()
            thread.join(10)
        while True:
            with meter.waiting():
                run = waiting.get(timeout=10)
                self.clock.pass_seconds(0.5)
            if run is _END:
                return
            meter.queue(waiting.qsize(), self.capacity, held_bytes=8)
            yield run


def test_a_stage_with_a_thread_tells_what_it_does(clock: Clock) -> None:
    dataset = Dataset.range(4).map(_slow(clock, 2)).with_stage(_Ahead(8, clock))

    _, profile = _measured(dataset)

    _, mapped, ahead = profile.stages
    assert mapped.own_seconds == 8
    assert ahead.own_seconds == 4
    assert ahead.waited_seconds == 8 + 12 + 5 * 0.5
    assert ahead.workers is not None
    assert (ahead.workers.count, ahead.workers.kind, ahead.workers.chosen) == (1, "threads", True)
    assert ahead.queue is not None
    assert (ahead.queue.capacity, ahead.queue.fill, ahead.queue.held_bytes) == (8, (4 + 3 + 2 + 1) / 4, 8)


def test_a_stage_at_work_shows_before_it_is_done(clock: Clock) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(value: Any) -> Any:
        if threading.current_thread() is thread and value == 1:
            begun.set()
            assert go_on.wait(30)
        return value

    dataset = Dataset.range(3).map(slow)
    meter = Meter(dataset)
    thread = threading.Thread(target=lambda: list(dataset.open(Pass(Dataset, meter=meter))))
    thread.start()
    assert begun.wait(30)
    clock.pass_seconds(7)

    (profile,) = meter.pipelines()
    go_on.set()
    thread.join(30)

    assert profile.stages[1].own_seconds == 7
    assert meter.pipelines()[0].stages[1].own_seconds == 7


def test_work_in_another_process_counts() -> None:
    meter = Meter(dataset := Dataset.range(3))
    meters = meter.input_of(dataset)
    assert meters is not None

    meters[0].worked(2_000_000_000)
    meters[0].workers(2, "processes")
    meters[0].note("called on blocks of 64 rows")

    stage = meter.pipelines()[0].stages[0]
    assert (stage.own_seconds, stage.note) == (2, "called on blocks of 64 rows")
    assert stage.worker_count == 2


def test_profiles_travel_are_subtracted_and_merged(clock: Clock) -> None:
    dataset = Dataset.zip((Dataset.range(6).map(_slow(clock, 1)), Dataset.range(6))).batch(2)
    meter = Meter(dataset)
    elements = elements_of(dataset.open(Pass(Dataset, meter=meter)))
    next(elements)
    (early,) = meter.pipelines()
    assert list(elements)
    (late,) = pickle.loads(pickle.dumps(meter.pipelines()))

    later = late.since(early)
    assert [stage.elements for stage in later.stages] == [4, 2]
    assert later.elapsed_seconds == 4
    assert later.stages[0].inputs[0].stages[1].own_seconds == 4

    both = merged([late, late])
    assert both.processes == 2
    assert both.elapsed_seconds == late.elapsed_seconds == 6
    assert [stage.elements for stage in both.stages] == [12, 6]
    assert both.stages[0].inputs[0].stages[1].own_seconds == 12


def test_what_is_left_out_is_subtracted_and_merged() -> None:
    def fails_at_odd(x: Any) -> Any:
        if x % 2:
            raise LookupError
        return x

    dataset = Dataset.range(6).map(fails_at_odd).ignore_errors()
    meter = Meter(dataset)
    elements = elements_of(dataset.open(Pass(Dataset, meter=meter)))
    assert [int(next(elements)) for _ in range(2)] == [0, 2]
    (early,) = meter.pipelines()
    assert len(list(elements)) == 1
    (late,) = meter.pipelines()

    assert [profile.stages[2].left_out for profile in (early, late, late.since(early))] == [1, 3, 2]
    assert merged([late, late]).stages[2].left_out == 6


def test_profiles_of_different_pipelines_are_not_merged() -> None:
    one, other = _measured(Dataset.range(3))[1], _measured(Dataset.range(3).batch(2))[1]

    with pytest.raises(ValueError, match=r"batch\(2\)"):
        merged([one, other])


def test_a_profile_of_another_pass_is_not_subtracted() -> None:
    one, other = _measured(Dataset.range(3))[1], _measured(Dataset.range(3).batch(2))[1]

    assert other.since(one) == other


def test_an_iterator_that_is_dropped_ends_its_stages() -> None:
    closed = threading.Event()

    def generator() -> Iterator[int]:
        try:
            yield from range(1000)
        finally:
            closed.set()

    dataset = Dataset.from_generator(generator, output_signature=wb.data.TensorSpec((), np.int64))

    _measured(dataset.map(lambda x: x), take=3)

    assert closed.wait(30)
