"""What is placed where stands in the log, while somebody asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import workbench as wb


@pytest.fixture(autouse=True)
def logged() -> Iterator[None]:
    assert not wb.debugging.get_log_device_placement()
    wb.debugging.set_log_device_placement(True)
    yield
    wb.debugging.set_log_device_placement(False)


@pytest.fixture(scope="module", params=["threads", "processes"])
def cluster(request: pytest.FixtureRequest) -> Iterator[wb.Cluster]:
    with wb.connect(replicas=2, processes=request.param == "processes", replace=True) as cluster:
        yield cluster


def test_the_flag_is_a_bool() -> None:
    wb.debugging.set_log_device_placement(np.False_)  # type: ignore[arg-type]
    assert wb.debugging.get_log_device_placement() is False
    for wrong in (1.0, "yes", None, np.array([1, 2])):
        with pytest.raises(TypeError, match="takes a bool"):
            wb.debugging.set_log_device_placement(wrong)  # type: ignore[arg-type]


def _placements(cluster: wb.Cluster, before: int) -> list[str]:
    events = cluster.feed.snapshot().events[before:]
    return [event.message for event in events if event.name == "placement"]


def _double(x: object) -> object:
    return x * 2  # type: ignore[operator]


def test_variables_functions_and_datasets_are_told(cluster: wb.Cluster) -> None:
    strategy = wb.MirroredStrategy(["CPU:0", "CPU:1"])
    before = len(cluster.feed.snapshot().events)
    with strategy.scope():
        wb.Variable(np.zeros((2, 3), np.float32), name="w")
    strategy.distribute_dataset(wb.data.Dataset.range(4).batch(2))
    held = strategy.run(_double, args=(np.ones(2),))
    strategy.run(_double, args=(np.ones(2),))
    strategy.run(lambda x, y: x + y, args=(held, np.ones(2)))

    variable, dataset, first, second = _placements(cluster, before)
    assert variable == "MirroredStrategy: variable 'w:0' float32[2,3] is on CPU:0, CPU:1"
    assert dataset.startswith("MirroredStrategy: a distributed dataset is read by")
    assert dataset.endswith("for CPU:0, CPU:1")
    assert first == (
        "MirroredStrategy: _double runs on CPU:0, CPU:1; of 1 arrays that it is given, 1 from the notebook"
    )
    assert second.endswith(
        "<lambda> runs on CPU:0, CPU:1; of 2 arrays that it is given, 1 already there and 1 from the notebook"
    )
    assert "_double runs on CPU:0, CPU:1" in repr(wb.log(cluster))


def test_setting_it_again_tells_functions_again_and_central_storage_names_its_device(
    cluster: wb.Cluster,
) -> None:
    strategy = wb.distribute.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"])
    before = len(cluster.feed.snapshot().events)
    strategy.run(_double, args=(1,))
    wb.debugging.set_log_device_placement(True)
    strategy.run(_double, args=(1,))
    with strategy.scope():
        wb.Variable(1.0, name="v")

    told = _placements(cluster, before)
    assert told[:2] == ["CentralStorageStrategy: _double runs on CPU:0, CPU:1"] * 2
    assert told[2] == "CentralStorageStrategy: variable 'v:0' float32[] is on CPU:0"


def test_hosts_are_named_where_there_are_several() -> None:
    with wb.connect(hosts=2, replicas_per_host=1, processes=False, replace=True) as cluster:
        strategy = wb.MultiWorkerMirroredStrategy()
        hosts = [device.host for device in strategy.devices]
        strategy.run(_double, args=(1,))

        (told,) = _placements(cluster, 0)
    assert told.endswith(f"runs on CPU:0 of host {hosts[0]}; CPU:0 of host {hosts[1]}")


def test_nothing_is_told_when_it_is_off(cluster: wb.Cluster) -> None:
    wb.debugging.set_log_device_placement(False)
    strategy = wb.MirroredStrategy(["CPU:0", "CPU:1"])
    before = len(cluster.feed.snapshot().events)
    strategy.run(_double, args=(1,))

    assert _placements(cluster, before) == []
