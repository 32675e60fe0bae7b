"""The models that views draw, from real clusters, datasets, arrays and files."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.until import until
from workbench.data.sharding.explain import explain_sharding
from workbench.data.sharding.model import Shape
from workbench.data.sharding.progress import InputProgress
from workbench.errors import DataCorruption
from workbench.runtime.metrics import WorkerMetrics
from workbench.runtime.process.gpu_use import GpuUse
from workbench.telemetry.limits import Limit
from workbench.ui.cluster import cluster_model
from workbench.ui.cluster.cluster_model import DeviceHistory, busy_replicas, topology_model
from workbench.ui.formatters import cluster_html, strategy_html
from workbench.ui.models.collectives_model import collectives_model
from workbench.ui.render.plain_values import plain
from workbench.ui.runs.runs_model import runs_model
from workbench.ui.sharding.array_model import array_model
from workbench.ui.sharding.dataset_model import dataset_model

replica = wb.distribute.get_replica_context


def reduce_twice() -> np.ndarray:
    for size in (8, 64):
        replica().all_reduce("sum", np.ones(size))
    return np.ones((2 + replica().replica_id_in_sync_group, 3))


def test_what_workbench_asks_of_a_replica_is_no_step_of_the_user() -> None:
    statuses = [
        (7, 0, True, -1, 3, "all_reduce", "waiting", ""),
        (7, 1, False, 4, 0, "", "running", ""),
        (7, 2, True, 4, -1, "", "running", ""),
    ]
    worker: Any = SimpleNamespace(statuses=statuses)
    group: Any = SimpleNamespace(id=7, unreported=[[-1], [], [4]].__getitem__)

    assert busy_replicas(worker, [group]) == {
        (7, 0): "between steps: all_reduce #4, waiting",
        (7, 2): "step 4: running",
    }


def test_a_heartbeat_from_before_the_end_of_a_step_makes_nobody_busy() -> None:
    statuses = [
        (7, 0, True, 4, 0, "all_reduce", "waiting", ""),
        (7, 1, True, 4, 0, "all_reduce", "waiting", ""),
        (7, 2, True, 4, 0, "all_reduce", "waiting", ""),
        (8, 0, True, 4, 0, "", "running", ""),
    ]
    worker: Any = SimpleNamespace(statuses=statuses)
    group: Any = SimpleNamespace(id=7, unreported=[[], [9, 10], [4, 5]].__getitem__)

    assert busy_replicas(worker, [group]) == {
        (7, 1): "step 9: running",
        (7, 2): "step 4: all_reduce #1, waiting",
    }


def test_a_step_is_over_for_the_topology_as_soon_as_it_is_over_for_the_notebook(
    cluster: wb.Cluster, strategy: wb.MirroredStrategy, tmp_path: Path
) -> None:
    go_on = tmp_path / "go_on"

    def step() -> None:
        replica().all_reduce("sum", np.ones(8))
        while not go_on.exists():
            time.sleep(0.005)

    def told() -> set[int]:
        """Replicas for which a heartbeat has reported the present step."""
        return {
            rank
            for worker in cluster.gang.workers.values()
            for group, rank, busy, number, *_ in worker.statuses
            if group == strategy.group.id and busy and number in strategy.group.unreported(rank)
        }

    running = threading.Thread(target=strategy.run, args=(step,))
    running.start()
    try:
        until(lambda: told() == {0, 1}, "a heartbeat that tells of the step")
    finally:
        go_on.touch()
        running.join()

    now = repr(wb.topology(strategy))
    assert "running" not in now
    assert now.count("idle") >= 2
    assert "running" not in cluster_html(cluster) + strategy_html(strategy)


def test_a_topology_has_every_replica_on_its_device(
    cluster: wb.Cluster, strategy: wb.MirroredStrategy
) -> None:
    for _ in range(3):
        strategy.run(reduce_twice)
    until(lambda: cluster.feed.snapshot().groups and cluster.feed.snapshot().groups[0].pace.steps > 1)

    model = topology_model(cluster)

    (host,) = model.hosts
    devices = [device for worker in host.workers for device in worker.devices]
    assert [device.name for device in devices] == ["cpu:0", "cpu:1"]
    ours = [
        [node.replica for node in device.replicas if node.group == strategy.group.label] for device in devices
    ]
    assert [ranks[-1] for ranks in ours] == [0, 1]
    assert {worker.status for worker in host.workers} == {"live"}
    assert all(worker.memory_bytes and worker.memory_bytes > 1 << 20 for worker in host.workers)
    assert strategy.group.label in {node.label for node in model.strategies}
    shares = [node.busy_share for device in devices for node in device.replicas]
    assert [share for share in shares if share is not None and 0 <= share <= 1]
    json.dumps(plain(model), allow_nan=False)


@pytest.mark.parametrize(
    ("limit", "bandwidth"),
    [
        (None, None),
        (Limit({1 << 12: 20.0, 1 << 26: 3.5}), 3.5),  # of memory, not of caches
        (Limit(between_hosts=1.25), 1.25),
    ],
)
def test_a_strategy_has_the_bandwidth_that_was_measured_of_it(
    cluster: wb.Cluster,
    strategy: wb.MirroredStrategy,
    monkeypatch: pytest.MonkeyPatch,
    limit: Limit | None,
    bandwidth: float | None,
) -> None:
    other = wb.MirroredStrategy()
    limits = {strategy.group.name: limit, other.group.name: Limit(between_hosts=99.0)}
    monkeypatch.setattr(type(cluster.feed), "limit", lambda feed, group: limits.get(group))

    nodes = zip(cluster.gang.groups.values(), topology_model(cluster).strategies, strict=True)
    found = {group.name: node.bandwidth for group, node in nodes}

    assert found[strategy.group.name] == bandwidth
    assert found[other.group.name] == 99.0


def test_the_use_of_devices_is_known_and_remembered(cluster: wb.Cluster) -> None:
    history = DeviceHistory(cluster)
    history.model()

    model = history.model()

    assert [device.name for device in model.devices] == ["worker 0", "worker 1"]
    assert all(device.memory_bytes for device in model.devices)
    assert all(device.use_percent is not None for device in model.devices)
    assert {len(device.recent_percent) for device in model.devices} == {2}


@pytest.mark.parametrize(
    "missed", [None, WorkerMetrics(30.0, 1 << 20, None)], ids=["no answer", "nothing of the GPU"]
)
def test_a_missed_answer_leaves_a_gap_in_the_course_of_each_device(
    cluster: wb.Cluster, monkeypatch: pytest.MonkeyPatch, missed: WorkerMetrics | None
) -> None:
    worker = next(iter(cluster.gang.workers.values()))
    gpu = GpuUse(0, "NVIDIA H200", 70.0, 1 << 10, 1 << 12, "NVML")
    known = WorkerMetrics(20.0, 1 << 20, None, (gpu,))
    answers = iter([known, known, missed, known])
    monkeypatch.setattr(
        cluster_model,
        "worker_metrics",
        lambda cluster: {} if (use := next(answers)) is None else {worker.address: use},
    )
    history = DeviceHistory(cluster)
    names = ["worker 0", "NVIDIA H200 of worker 0"]

    models = [history.model() for _ in range(4)]

    of_worker = [[use for use in model.devices if use.name in names] for model in models]
    assert [[use.name for use in uses] for uses in of_worker] == [names] * 4
    assert [use.use_percent for use in of_worker[2]] == [missed and missed.cpu_percent, None]
    assert [use.recent_percent for use in of_worker[3]] == [
        (20.0, 20.0, missed and missed.cpu_percent, 20.0),
        (70.0, 70.0, None, 70.0),
    ]


def test_samples_of_devices_lie_on_the_steps_of_the_strategy_that_ran_last(
    cluster: wb.Cluster, strategy: wb.MirroredStrategy
) -> None:
    history = DeviceHistory(cluster)
    idle = history.model().sampled
    steps = []
    for _ in range(2):
        strategy.run(reduce_twice)
        steps.append(strategy.group.number - 1)
        sampled = history.model().sampled
    cluster.flush_telemetry(60)
    (group, *_) = cluster.feed.snapshot().groups

    assert sampled is not None
    assert (sampled.run_id, sampled.group) == (group.run_id, group.group)
    assert sampled.steps[-2:] == tuple(steps)
    assert group.steps[-1].step == steps[-1]
    assert idle is None or idle.steps[-1] == steps[0] - 1


def test_collectives_of_several_sizes_are_a_sweep(cluster: wb.Cluster, strategy: wb.MirroredStrategy) -> None:
    strategy.run(reduce_twice)
    cluster.flush_telemetry(60)

    model = collectives_model(cluster.feed.snapshot(), status="live")

    sweep = next(one for one in model.sweeps if one.group == strategy.group.name)
    assert [point.size_bytes for point in sweep.points] == [64, 512]


def test_components_of_different_lengths_are_uneven_parts_of_one_array(strategy: wb.MirroredStrategy) -> None:
    model = array_model(strategy.run(reduce_twice), name="parts")

    assert (model.name, model.kind, model.shape, model.dtype) == ("parts", "PerReplica", (5, 3), "float64")
    assert [(part.start, part.stop, part.size_bytes) for part in model.parts] == [
        ((0, 0), (2, 3), 48),
        ((2, 0), (5, 3), 72),
    ]
    assert model.sentence == "axis 0 split 2 ways, unevenly"
    assert model.imbalance_percent == 20.0


def test_a_variable_is_copied_in_full(strategy: wb.MirroredStrategy) -> None:
    with strategy.scope():
        variable = wb.Variable(np.ones((4, 2), np.float32), name="copied")

    model = array_model(variable)

    assert model.sentence == "2 full copies"
    assert {(part.start, part.stop) for part in model.parts} == {((0, 0), (4, 2))}
    assert model.size_bytes == 32


def test_how_a_value_is_divided_is_known_without_asking_replicas(strategy: wb.MirroredStrategy) -> None:
    with strategy.scope():
        variable = wb.Variable(np.zeros(3, np.float32), name="v")
        counter = wb.Variable(0, name="n", synchronization="ON_READ", aggregation="SUM")
    large = strategy.run(lambda: np.ones((100, 100)))
    step = strategy.group.state.committed

    assert array_model(variable).parts[1].device == "cpu:1"
    assert array_model(counter).sentence == "axis 0 split 2 ways"
    assert [part.stop for part in array_model(large).parts] == [(100, 100), (200, 100)]
    assert strategy.group.state.committed == step
    assert not large.handle.is_here(0)


def test_what_holds_no_arrays_cannot_be_divided(strategy: wb.MirroredStrategy) -> None:
    with pytest.raises(TypeError, match="PerReplica words holds no arrays"):
        array_model(strategy.run(lambda: "word"), name="words")
    assert array_model(strategy.run(lambda: 1.5)).shape == (2,)


def test_numbers_lie_side_by_side(strategy: wb.MirroredStrategy) -> None:
    model = array_model(strategy.run(lambda: np.float32(1)))

    assert (model.shape, model.sentence) == ((2,), "axis 0 split 2 ways")


def test_the_sharding_of_an_array_of_jax_is_its_own() -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed: pip install -e '.[jax]'")
    mesh = jax.make_mesh((1,), ("x",))
    array = jax.device_put(
        np.zeros((4, 2), np.float32), jax.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    )

    model = array_model(array, name="x")

    assert (model.shape, model.dtype, model.sentence) == ((4, 2), "float32", "one piece")
    assert (model.parts[0].start, model.parts[0].stop, model.parts[0].size_bytes) == ((0, 0), (4, 2), 32)


def test_an_array_in_the_notebook_is_on_no_device() -> None:
    with pytest.raises(TypeError, match="lies on no replica"):
        array_model(np.ones(3))


def test_a_dataset_model_has_positions_instead_of_ids(tmp_path: Path) -> None:
    for name, lines in (("one.txt", 5), ("two.txt", 3)):
        (tmp_path / name).write_text("x\n" * lines)
    files = wb.data.TextLineDataset([str(tmp_path / name) for name in ("one.txt", "two.txt")])

    model = dataset_model(explain_sharding(files.batch(2), Shape(2, 1), policy="FILE"))

    assert model.positions == 8
    assert [(at, Path(name).name) for at, name in model.marks] == [(0, "one.txt"), (5, "two.txt")]
    assert model.read_by == ("0", "1")
    assert [reading.ranges for reading in model.readers[1].readings][:3] == [((5, 5),), ((6, 6),), ((7, 7),)]
    assert model.readers[0].rows == 5
    assert model.readers[1].empty_steps == 2


def test_a_dataset_model_is_bounded() -> None:
    dataset = wb.data.Dataset.range(20_000).shuffle(20_000, seed=1).batch(1024)

    model = dataset_model(explain_sharding(dataset, Shape(2, 256)))

    assert (len(model.readers), model.hidden_readers, len(model.counts)) == (32, 480, 512)
    more, everyone = model.together
    assert (more.label, everyone.label) == ("480 more", "all replicas")
    assert [reading.rows for reading in everyone.readings] == [1024] * 19 + [544]
    shown = sum(reader.readings[-1].rows for reader in model.readers)
    assert more.readings[-1].rows == 544 - shown
    assert more.rows + sum(reader.rows for reader in model.readers) == everyone.rows == 20_000
    assert len(json.dumps(plain(model))) < 200_000


def test_the_step_that_is_read_is_among_those_shown() -> None:
    sharding = explain_sharding(wb.data.Dataset.range(4000).batch(4), 2)

    progress = InputProgress(0, 702, 1.0, (700, 698), (0.0, 0.0))
    model = dataset_model(sharding, progress=progress)

    readings = model.readers[0].readings
    assert 700 in {reading.step for reading in readings}
    assert model.readers[0].rows_before == 2 * readings[0].step
    assert model.together[-1].rows_before == 4 * readings[0].step


def test_files_that_have_a_mark_together_are_counted(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / f"{number:02}.txt").write_text("x\n")
    files = wb.data.TextLineDataset([str(tmp_path / f"{number:02}.txt") for number in range(99)])

    model = dataset_model(explain_sharding(files.batch(3), 3))

    assert [(at, Path(name).name) for at, name in model.marks][:2] == [
        (0, "00.txt and 1 more"),
        (2, "02.txt and 1 more"),
    ]
    assert (model.marks[-1][0], Path(model.marks[-1][1]).name) == (98, "98.txt")
    assert model.read_by[:3] == ("0–1", "0, 2", "1–2")


def test_runs_are_listed_and_compared(
    cluster: wb.Cluster, strategy: wb.MirroredStrategy, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        with wb.record(tmp_path / f"{name}.parquet"):
            strategy.run(reduce_twice)
    (tmp_path / "bad.parquet").write_bytes(b"nothing")

    model = runs_model(tmp_path, (str(tmp_path / "one.parquet"), str(tmp_path / "two.parquet")))

    found = {run.name: run for run in model.runs}
    assert {name: bool(run.problem) for name, run in found.items()} == {
        "one": False,
        "two": False,
        "bad": True,
    }
    # A recording may start with records that replicas had not sent before it.
    assert found["one"].records >= 4
    assert found["one"].replicas == 2
    assert model.compared == ("one", "two")
    ratios = {(row.op, row.size_bytes): row.ratio for row in model.rows}
    assert all((ratios["all_reduce", size] or 0) > 0 for size in (64, 512))


def test_a_damaged_run_cannot_be_compared(tmp_path: Path) -> None:
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(b"nothing")

    with pytest.raises(DataCorruption, match=r"bad\.parquet"):
        runs_model(tmp_path, (str(bad), str(bad)))


def test_of_a_closed_cluster_everything_is_stopped() -> None:
    with wb.connect(replicas=2, processes=False, replace=True) as own:
        strategy = wb.MirroredStrategy()  # its replicas are shown while it exists
        strategy.run(reduce_twice)
        history = DeviceHistory(own)

    (host,) = topology_model(own).hosts
    assert {worker.status for worker in host.workers} == {"stopped"}
    assert {node.doing for w in host.workers for device in w.devices for node in device.replicas} == {
        "stopped"
    }
    uses = history.model().devices
    assert {(use.status, use.use_percent, use.memory_bytes) for use in uses} == {("stopped", None, None)}
