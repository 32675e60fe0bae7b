"""Statistics of iterators: typed as in the documentation of tf.data.experimental.StatsAggregator."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import numpy as np
import pytest

import workbench as wb

experimental = wb.data.experimental


def _with(dataset: wb.data.Dataset, **settings: Any) -> tuple[wb.data.Dataset, Any]:
    aggregator = wb.data.experimental.StatsAggregator()
    options = wb.data.Options()
    options.experimental_stats.aggregator = aggregator
    for name, value in settings.items():
        setattr(options.experimental_stats, name, value)
    return dataset.with_options(options), aggregator


def test_latencies_of_one_place_are_recorded() -> None:
    dataset = wb.data.Dataset.range(100).batch(10).apply(experimental.latency_stats("total_bytes"))
    dataset, aggregator = _with(dataset)

    elements = [element.tolist() for element in dataset]

    assert elements[-1] == list(range(90, 100))
    found = aggregator.get_summary().histograms["total_bytes"]
    assert found.num == 10
    assert 0 < found.min <= found.percentile(50) <= found.percentile(99) <= found.max
    assert found.min <= found.mean <= found.max


def test_latencies_are_in_microseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(0, 10**9, 5000))
    monkeypatch.setattr("workbench.data.stages.observed.time.perf_counter_ns", lambda: next(now))
    dataset, aggregator = _with(wb.data.Dataset.range(3).apply(experimental.latency_stats("made")))

    list(dataset)

    found = aggregator.get_summary().histograms["made"]
    assert (found.num, found.min, found.max, found.sum) == (3, 5, 5, 15)


def test_latencies_of_all_edges_are_recorded() -> None:
    dataset = wb.data.Dataset.range(6).map(lambda x: x + 1).batch(2)
    dataset, aggregator = _with(dataset, latency_all_edges=True, prefix="train")

    assert [element.tolist() for element in dataset] == [[1, 2], [3, 4], [5, 6]]

    found = aggregator.get_summary().histograms
    assert {name: histogram.num for name, histogram in found.items()} == {
        "train::record_latency::range": 6,
        "train::record_latency::map(<lambda>)": 6,
        "train::record_latency::batch(2)": 3,
    }


def test_elements_of_each_stage_are_counted() -> None:
    dataset = wb.data.Dataset.range(10).filter(lambda x: x % 2 == 0).batch(2)
    dataset, aggregator = _with(dataset, counter_prefix="eval")

    list(dataset)
    list(dataset)

    summary = aggregator.get_summary()
    assert summary.histograms == {}
    assert summary.counters == {
        "eval::range::num_elements": 20,
        "eval::filter(<lambda>)::num_elements": 10,
        "eval::batch(2)::num_elements": 6,
    }


def test_elements_that_are_left_out_are_counted() -> None:
    dataset = wb.data.Dataset.range(10).map(lambda x: 6 // int(x % 4)).ignore_errors(name="mine")
    dataset, aggregator = _with(dataset, counter_prefix="eval")

    assert len(list(dataset)) == 7

    assert aggregator.get_summary().counters["eval::ignore_errors 'mine'::num_left_out"] == 3


def test_sizes_of_elements_are_recorded() -> None:
    dataset = wb.data.Dataset.from_tensor_slices(np.zeros((4, 8), np.float32)).batch(3)
    dataset, aggregator = _with(dataset.apply(experimental.bytes_produced_stats("bytes")))

    list(dataset)

    found = aggregator.get_summary().histograms["bytes"]
    assert (found.num, found.min, found.max, found.sum) == (2, 32, 96, 128)


def test_several_datasets_may_share_an_aggregator() -> None:
    aggregator = experimental.StatsAggregator()
    options = wb.data.Options()
    options.experimental_stats.aggregator = aggregator
    one = wb.data.Dataset.range(3).with_options(options)
    other = wb.data.Dataset.range(4).with_options(options).map(lambda x: x)

    list(one)
    list(other)

    assert aggregator.get_summary().counters["range::num_elements"] == 7


def test_without_an_aggregator_nothing_is_recorded_and_elements_are_the_same() -> None:
    dataset = wb.data.Dataset.range(5).apply(experimental.latency_stats("a"))
    dataset = dataset.apply(experimental.bytes_produced_stats("b"))

    assert list(dataset) == [0, 1, 2, 3, 4]
    assert "latency_stats('a')" in repr(dataset)


def test_an_element_that_fails_is_not_recorded() -> None:
    dataset = (
        wb.data.Dataset.range(3).map(lambda x: 1 // (int(x) - 1)).apply(experimental.latency_stats("made"))
    )
    dataset, aggregator = _with(dataset, latency_all_edges=True)
    iterator = iter(dataset)

    next(iterator)
    with pytest.raises(ZeroDivisionError):
        next(iterator)
    next(iterator)

    assert aggregator.get_summary().histograms["made"].num == 2
    assert aggregator.get_summary().counters["map(<lambda>)::num_elements"] == 2


def test_another_aggregator_is_refused() -> None:
    options = wb.data.Options()
    with pytest.raises(TypeError, match="StatsAggregator"):
        options.experimental_stats.aggregator = {"mine": 1}


def test_copies_of_options_mean_the_same_aggregator_and_other_processes_begin_anew() -> None:
    aggregator = experimental.StatsAggregator()
    aggregator.increment_counter("seen", 3)

    assert copy.deepcopy(aggregator) is aggregator
    assert copy.copy(aggregator) is aggregator
    assert pickle.loads(pickle.dumps(aggregator)).get_summary().counters == {}


def test_threads_report_without_losing_any() -> None:
    aggregator = experimental.StatsAggregator()

    def report() -> None:
        for _ in range(2000):
            aggregator.add_to_histogram("h", 1.0)
            aggregator.increment_counter("c", 1)

    threads = [threading.Thread(target=report) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    summary = aggregator.get_summary()
    assert (summary.histograms["h"].num, summary.counters["c"]) == (8000, 8000)


def test_percentiles_are_right_to_a_tenth() -> None:
    aggregator = experimental.StatsAggregator()
    for value in range(1, 1001):
        aggregator.add_to_histogram("h", value)
    aggregator.add_to_histogram("zero", 0)

    found = aggregator.get_summary().histograms
    assert found["h"].percentile(50) == pytest.approx(500, rel=0.1)
    assert found["h"].percentile(99) == pytest.approx(990, rel=0.1)
    assert found["h"].percentile(100) == 1000
    assert found["zero"].percentile(50) == 0


def test_a_summary_prints_as_a_table() -> None:
    dataset, aggregator = _with(
        wb.data.Dataset.range(3).map(lambda x: x, name="a\x1bb" * 40), latency_all_edges=True
    )
    assert repr(aggregator.get_summary()) == "no statistics yet"
    list(dataset)

    text = repr(aggregator.get_summary())
    assert max(map(len, text.splitlines())) <= 88
    assert "\x1b" not in text
    assert text.splitlines()[0].split() == ["histogram", "num", "mean", "p50", "p99", "max"]
