"""One-line texts and HTML of clusters, strategies, values and variables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.ui.conftest import Tags
from workbench.device_names import Device
from workbench.runtime.placement_text import one_line, placement, transport
from workbench.ui import formatters
from workbench.ui.widgets.bundle import Bundle


def devices(*places: tuple[str, str]) -> list[Device]:
    return [Device("CPU", index, host, worker, 0) for index, (host, worker) in enumerate(places)]


def test_a_cluster_tells_devices_hosts_and_status(cluster: wb.Cluster) -> None:
    assert repr(cluster) == "<Cluster: 2 devices on 1 host (2×cpu), embedded, live>"
    assert cluster.where == ("2 devices on 1 host (2×cpu)", "embedded")


def test_a_strategy_tells_replicas_how_they_combine_and_status(strategy: wb.MirroredStrategy) -> None:
    assert (
        repr(strategy) == "<MirroredStrategy: 2 replicas on 1 host (2×cpu), all_reduce: shared memory, live>"
    )


@pytest.mark.parametrize(
    ("places", "told"),
    [
        ([("a", "1")], ""),
        ([("a", "1"), ("a", "1")], "threads"),
        ([("a", "1"), ("a", "2")], "shared memory"),
        ([("a", "1"), ("b", "2")], "ring"),
        ([("a", "1"), ("a", "2"), ("b", "3")], "shared memory + ring"),
        ([("a", "1"), ("a", "1"), ("a", "2"), ("b", "3")], "threads + shared memory + ring"),
    ],
)
def test_the_transport_follows_from_where_replicas_are(places: list[tuple[str, str]], told: str) -> None:
    assert transport(devices(*places)) == told


def test_what_tpu_cores_combine_is_part_of_a_program() -> None:
    cores = [Device("TPU", index, "a", "1", 0) for index in range(4)]

    assert transport(cores) == "compiled"
    assert transport(cores[:1]) == ""


def test_one_line_never_exceeds_88_columns_and_keeps_the_status() -> None:
    text = one_line(
        "MultiWorkerMirroredStrategy",
        placement(devices(("a", "1")), "replica"),
        "all_reduce: " + "x" * 60,
        "live",
    )

    assert text == "<MultiWorkerMirroredStrategy: 1 replica on 1 host (1×cpu), live>"


def test_values_tell_their_components_without_fetching_them(strategy: wb.MirroredStrategy) -> None:
    result = strategy.run(lambda: (np.float32(1.5), np.zeros((200, 100)), "text"))

    assert [repr(value) for value in result] == [
        "PerReplica:{\n  0: np.float32(1.5),\n  1: np.float32(1.5)\n}",
        "PerReplica:{\n  0: float64[200,100],\n  1: float64[200,100]\n}",
        "PerReplica:{\n  0: 'text',\n  1: 'text'\n}",
    ]


def test_a_value_whose_step_failed_says_so(strategy: wb.MirroredStrategy) -> None:
    @wb.function
    def divide(x: float) -> float:
        return 1 / x

    strategy.local_results(strategy.run(divide, args=(1,)))
    value = strategy.run(divide, args=(0,))
    with pytest.raises(ZeroDivisionError):
        strategy.local_results(value)

    assert repr(value) == "PerReplica:{2 components, not computed: their step failed}"
    assert "not computed" in Tags(formatters.values_html(value)).text


def test_a_component_whose_repr_raises_is_shown_by_its_type() -> None:
    class Bad:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    assert "<Bad, its repr raised RuntimeError>" in repr(wb.distribute.PerReplica((Bad(), 1)))


def test_every_public_object_has_html_without_scripts(
    strategy: wb.MirroredStrategy, cluster: wb.Cluster
) -> None:
    hostile = "<script>alert(1)</script>"
    with strategy.scope():
        w = wb.Variable(np.zeros(3, np.float32), name=hostile)
    dataset = strategy.distribute_dataset(wb.data.Dataset.range(8).batch(4))
    value: Any = strategy.run(lambda: hostile)
    drawn = [
        Tags(text)
        for text in (
            formatters.cluster_html(cluster),
            formatters.strategy_html(strategy),
            formatters.values_html(value),
            formatters.variable_html(w),
            formatters.variable_html(wb.Variable(1.0, name=hostile)),
            formatters.distributed_dataset_html(dataset),
        )
    ]

    assert all("script" not in tags.tags for tags in drawn)
    assert hostile in drawn[2].text
    assert hostile in drawn[3].text
    assert "AUTO→DATA" in drawn[5].text
    assert repr(dataset) == "<DistributedDataset: 2 replicas on 1 host, policy AUTO→DATA, even split>"


def test_every_class_that_is_drawn_exists() -> None:
    import importlib

    for module, name, function in formatters.DRAWN:
        assert hasattr(importlib.import_module(module), name)
        assert callable(getattr(formatters, function))


class _WithMetadata:
    """Displays itself in the way of workbench's views in Google Colab."""

    def _repr_mimebundle_(self, include: Any = None) -> Bundle:
        return {"text/plain": "shown"}, {"a type": {"a": "fact"}}


def test_the_formats_of_what_is_shown_with_metadata_are_without_it() -> None:
    assert formatters.bundle_of(_WithMetadata()) == {"text/plain": "shown"}
