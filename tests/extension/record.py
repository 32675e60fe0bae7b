"""Records models from real runs, for the tests of the views: `python -m tests.extension.record`, or only some by name.

Two hosts of two replicas on this machine; replica 2 is made slow, one value is NaN, one step stuck, one worker lost.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import workbench as wb
from workbench.data.cost.flow import InputFlow, PipelineFlow, pipeline_flow, replica_waits
from workbench.data.cost.profile import PipelineProfile, QueueProfile, StageProfile, Workers
from workbench.data.explanation import input_flow
from workbench.data.service.overview import ServiceStatus
from workbench.data.sharding.explain import explain_sharding
from workbench.data.sharding.model import Shape
from workbench.distribute.servers.overview import (
    FunctionQueue,
    HeldVariable,
    ServersStatus,
    ServerStatus,
    WorkerFunctions,
)
from workbench.errors import WorkbenchError
from workbench.telemetry.delta import delta
from workbench.telemetry.snapshot import SampledSteps
from workbench.ui.cluster.cluster_model import DeviceHistory, topology_model
from workbench.ui.models.cluster import Topology
from workbench.ui.models.collectives import Collectives
from workbench.ui.models.collectives_model import collectives_model
from workbench.ui.models.sharding import DatasetSharding
from workbench.ui.render.plain_values import plain
from workbench.ui.runs.runs_model import runs_model
from workbench.ui.sharding.array_model import array_model
from workbench.ui.sharding.dataset_model import dataset_model

TARGET = Path(__file__).parents[2] / "extension" / "tests" / "recorded"
ctx = wb.distribute.get_replica_context


def come_late() -> None:
    """Replica 2 takes most of the step, or it would not be named where replicas share cores."""
    if ctx().replica_id_in_sync_group == 2:
        time.sleep(0.1)


def train(size: int) -> np.ndarray:
    """One step: replica 2 comes late."""
    come_late()
    rank = ctx().replica_id_in_sync_group
    ctx().all_reduce("sum", np.ones(size, np.float32))
    ctx().all_reduce("mean", np.ones(4, np.float64))
    if rank == 2 and size == 256:
        print("slow again", file=sys.stderr)
    return np.full(3 + rank, np.nan if rank == 1 else float(rank))


def field() -> np.ndarray:
    """A component of three axes, with a NaN and an infinity on replica 1."""
    rank = ctx().replica_id_in_sync_group
    z, y, x = np.meshgrid(np.arange(2), np.arange(150), np.arange(200), indexing="ij")
    values = np.sin(x / 20 + rank / 50) * np.cos(y / (15 + 5 * z))
    if rank == 1:
        values[1, 40, 120], values[1, 100, 30] = np.nan, np.inf
    return values


def numbers_and_copies(strategy: wb.MirroredStrategy) -> dict[str, Any]:
    """Numbers with a course, one of them NaN on a replica, and copies of which one parts from the others."""
    with strategy.scope():
        table = wb.Variable(np.zeros((20, 64), np.float32), name="table")

    def loss(step: int) -> tuple[np.float32, np.float32]:
        rank = ctx().replica_id_in_sync_group
        value = 2 * np.exp(-step / 8) + 0.05 * np.sin(7 * step * (rank + 1))
        return np.float32(value), np.float32(np.nan if rank == 1 else value)

    def update(step: int) -> None:
        new = np.array(table.read_value())
        if ctx().replica_id_in_sync_group == 2:
            new[8:10, :50] += 0.01 * np.sin(np.arange(50) * step, dtype=np.float32)
        table.assign(new)

    for step in range(24):
        fine, broken = strategy.run(loss, args=(step,))
    numbers = wb.inspect({"loss": fine, "broken": broken}).model
    for step in range(3):
        wb.inspect(table)
        strategy.run(update, args=(step,))
    return {"values_numbers": numbers, "values_apart": wb.inspect(table, elements=..., difference=True).model}


def spread(size: int) -> None:
    """Other collectives than all_reduce, of one size; replica 2 comes late to them, too."""
    come_late()
    ctx().all_gather(np.ones((size // 4, 2), np.float32), axis=0)
    if ctx().replica_id_in_sync_group == 0:
        print("gathered <b>everything</b> & more")


def wait_for(path: str) -> None:
    """Replica 3 does not come to the collective before there is a file."""
    ctx().all_reduce("sum", np.ones(2))
    if ctx().replica_id_in_sync_group == 3:
        ends = time.monotonic() + 60
        while not os.path.exists(path) and time.monotonic() < ends:
            time.sleep(0.01)
    ctx().all_reduce("sum", np.ones(1024, np.float32))


def die() -> None:
    """Replica 1's process ends."""
    if ctx().replica_id_in_sync_group == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def collectives(cluster: wb.Cluster) -> Collectives:
    """What the views of collectives draw now."""
    silent = cluster.flush_telemetry(60)
    return collectives_model(cluster.feed.snapshot(), status=cluster.status, silent=silent)


def while_stuck(
    cluster: wb.Cluster, strategy: wb.MirroredStrategy, folder: Path
) -> tuple[Collectives, Topology]:
    """The models while replicas wait for one that does not come."""
    there = folder / "come"
    step = threading.Thread(target=lambda: strategy.run(wait_for, args=(str(there),)))
    step.start()
    try:
        for _ in range(100):
            time.sleep(0.1)
            found = collectives(cluster)
            stuck = [group.stuck for group in found.snapshot.groups if group.stuck]
            if stuck and all(last.now for last in stuck[0].last):  # its worker has reported its place
                return found, topology_model(cluster)
        raise TimeoutError("nothing got stuck")
    finally:
        there.touch()
        step.join(60)


def datasets(folder: Path) -> dict[str, Any]:
    """Models of datasets: from files, and from memory with a remainder."""
    for number in range(3):
        lines = "".join(f"{number} {line}\n" for line in range(10 + 4 * number))
        (folder / f"part-{number}.txt").write_text(lines)
    files = wb.data.TextLineDataset([str(folder / f"part-{number}.txt") for number in range(3)])
    memory = wb.data.Dataset.from_tensor_slices(np.arange(100)).batch(16)
    return {
        "dataset_files": dataset_model(explain_sharding(files.batch(8), Shape(2, 2), policy="FILE")),
        "dataset_memory": dataset_model(explain_sharding(memory, 4)),
    }


def dataset_running(strategy: wb.MirroredStrategy) -> DatasetSharding:
    """A dataset whose elements are slow to come, while it is gone through."""

    def slow(element: np.ndarray) -> np.ndarray:
        time.sleep(0.002)
        return element

    data = wb.data.Dataset.from_tensor_slices(np.arange(100)).map(slow).batch(16)
    distributed = strategy.distribute_dataset(data)
    batches = iter(distributed)
    for _ in range(4):
        strategy.run(np.sum, args=(next(batches),))
    return dataset_model(wb.explain_sharding(distributed))


def inputs() -> dict[str, InputFlow]:
    """What input pipelines cost, of made-up times: two hosts while they train, and a dataset that combines others."""
    elapsed_seconds = 12.5

    def host(name: str, number: int, slow_seconds: float) -> PipelineFlow:
        queue = QueueProfile(8, chosen=True, fills=4000 - 300 * number, looks=1000, held_bytes=3 << 20)
        read = PipelineProfile(
            (
                _stage("records", 61_000, 244_000_000, 1.1),
                _stage(
                    "map(inflate)",
                    61_000,
                    488_000_000,
                    2.5,
                    block_rows=64,
                    note="computed for 64 rows at a time, which gives the same as row by row",
                ),
            ),
            elapsed_seconds,
        )
        stages = (
            _stage("memory", 16, 1_600, 0.001),
            _stage("interleave(read)", 61_000, 488_000_000, 0.4, workers=Workers(4), inputs=(read,)),
            _stage("shuffle(2000)", 59_000, 472_000_000, 0.3),
            _stage(
                "map(augment)",
                58_900,
                942_000_000,
                slow_seconds,
                failures=12,
                workers=Workers(2, "processes", chosen=True),
            ),
            _stage("batch(128)", 460, 942_000_000, 0.7),
            _stage("prefetch", 456, 934_000_000, 0.01, workers=Workers(1), queue=queue),
            _stage("even_split(2)", 912, 934_000_000, 0.2),
        )
        whole = PipelineProfile(stages, elapsed_seconds)
        return pipeline_flow(whole, _newest(whole), host=number, name=name)

    waits = replica_waits([1.1, 0.9, 5.6, 5.9], [0, 0, 1, 1], elapsed_seconds)
    live = replace(
        input_flow(
            [host("a", 0, 13.0), host("b", 1, 23.5)],
            waits,
            status="live",
            elapsed_seconds=elapsed_seconds,
            limit="epoch 3",
        ),
        sampled=SampledSteps("8d52", "MirroredStrategy/1", tuple(range(200, 264, 2))),
        waited_percent=tuple(round(20 + 30 * (n % 11 == 7) + 25 * n / 32, 1) for n in range(32)),
    )
    sides = [
        PipelineProfile((_stage(name, 1000, None, 0.01), _stage(f"map({fn})", 1000, 8_000, own)), 1.0)
        for name, fn, own in (("text lines", "tokens", 0.12), ("range", "<lambda>", 0.02))
    ]
    zipped = (
        _stage("zip", 1000, 16_000, 0.02, inputs=tuple(sides)),
        _stage("batch(32)", 31, 15_872, 0.63),
    )
    measured = input_flow(
        [pipeline_flow(PipelineProfile(zipped, 1.0))], elapsed_seconds=1.0, limit="the first 1 s of a pass"
    )
    return {"input_starving": live, "input_measured": measured}


def _stage(
    name: str, elements: int, produced_bytes: int | None, own_seconds: float, **more: Any
) -> StageProfile:
    return StageProfile(name, elements, produced_bytes=produced_bytes, own_seconds=own_seconds, **more)


def _newest(pipeline: PipelineProfile) -> PipelineProfile:
    """What was added in the last seconds: less than before, because the input slows down."""
    stages = tuple(
        replace(stage, elements=stage.elements // 3, inputs=tuple(map(_newest, stage.inputs)))
        for stage in pipeline.stages
    )
    return replace(pipeline, stages=stages, elapsed_seconds=5.0)


def services() -> dict[str, ServiceStatus]:
    """A data service with jobs of each kind, and one whose rounds cannot begin; made up."""
    common = {"num_consumers": 0, "missing": (), "cached": False, "moves": 0}
    nothing = {"splits_done": 0, "splits_leased": 0, "splits_left": 0}
    first = {
        **common,
        "name": "training",
        "iteration": 0,
        "processing_mode": "DYNAMIC",
        "consumers": 0,
        "lanes": 2,
        "lanes_complete": 2,
        "splits_done": 128,
        "splits_leased": 0,
        "splits_left": 0,
        "elements": 60_000,
        "elements_per_second": 0.0,
        "complete": True,
    }
    second = {
        **first,
        "iteration": 1,
        "consumers": 4,
        "lanes_complete": 0,
        "moves": 1,
        "splits_done": 90,
        "splits_leased": 6,
        "splits_left": 32,
        "elements": 43_912,
        "elements_per_second": 3410.4,
        "complete": False,
    }
    tuning = {
        **common,
        **nothing,
        "name": "tuning",
        "iteration": 0,
        "processing_mode": "OFF",
        "consumers": 3,
        "cached": True,
        "lanes": 2,
        "lanes_complete": 0,
        "elements": 0,
        "elements_per_second": 0.0,
        "complete": False,
    }
    aligned = {**tuning, "name": "aligned", "cached": False, "consumers": 1} | {
        "num_consumers": 3,
        "missing": (1, 2),
    }
    workers = [
        {"address": f"127.0.0.1:{port}", "lanes": lanes, "elements": elements, "elements_per_second": rate}
        for port, lanes, elements, rate in ((40_511, 3, 88_200, 2790.0), (40_523, 1, 31_004, 1220.5))
    ]
    live = {"jobs": [first, second, tuning], "workers": workers, "datasets": 2}
    waiting = {"jobs": [aligned], "workers": workers, "datasets": 1}
    return {
        "service_live": ServiceStatus.of("grpc://127.0.0.1:5000", live, "live"),
        "service_waiting": ServiceStatus.of("grpc://127.0.0.1:5000", waiting, "live"),
    }


def parameter_servers() -> dict[str, ServersStatus]:
    """Two parameter servers and three workers at work, and after a server was lost; made up."""
    table = [
        HeldVariable(f"table/part_{n}", "float32", (500_000, 64), 128_000_000, 256_000_000, 48_210 - n)
        for n in (0, 1)
    ]
    dense = HeldVariable("dense/kernel", "float32", (64, 32), 8192, 16_384, 24_104)
    bias = HeldVariable("dense/bias", "float32", (32,), 128, 256, 24_104)
    count = HeldVariable("examples", "int64", (), 8, 0, 24_104)
    common = {"host": "node-1", "hidden_variables": 0, "detail": ""}
    first = ServerStatus(
        **common,
        name="ps:0",
        address="127.0.0.1:40511",
        state="live",
        restarts=0,
        variables=(table[0], dense),
        size_bytes=384_024_576,
        updates=72_314,
        updates_per_second=1480.5,
        repeated=0,
        left_out=0,
        newest_staleness=3,
        typical_staleness=2,
    )
    second = ServerStatus(
        **common,
        name="ps:1",
        address="127.0.0.1:40523",
        state="live",
        restarts=1,
        variables=(table[1], bias, count),
        size_bytes=384_000_392,
        updates=96_417,
        updates_per_second=1973.2,
        repeated=4,
        left_out=17,
        newest_staleness=0,
        typical_staleness=1,
    )
    workers = [
        WorkerFunctions("worker:0", "node-1", "live", "", 0, 8131, 168.4, "train_step", 1, 0.0),
        WorkerFunctions("worker:1", "node-1", "live", "", 0, 8090, 166.9, "evaluate", 1, 12.4),
        WorkerFunctions("worker:2", "node-2", "live", "", 1, 7883, 159.2, "train_step", 6, 0.0),
    ]
    queue = FunctionQueue(
        waiting=1204,
        blocked=2,
        running=8,
        done=24_096,
        failed=0,
        cancelled=0,
        run_again=9,
        capacity=262_144,
        error="",
    )
    gone = "worker 4 on node-1 was killed by SIGKILL"
    ended = WorkerFunctions("worker:2", "node-2", "lost", gone, 1, 7883, 0.0, "", 0, 0.0)
    lost = replace(second, state="lost", detail=gone, updates_per_second=0.0)
    failed = replace(queue, waiting=0, blocked=0, running=0, failed=1, cancelled=1206)
    return {
        "servers_live": ServersStatus.of((first, second), tuple(workers), queue, "live"),
        "servers_lost": ServersStatus.of((first, lost), (*workers[:2], ended), failed, "live"),
    }


def record(folder: Path) -> dict[str, Any]:
    """All models by file name."""
    models = datasets(folder)
    with wb.connect(hosts=2, replicas_per_host=2) as cluster:
        strategy = wb.MirroredStrategy()
        history = DeviceHistory(cluster)
        with strategy.scope():
            weights = wb.Variable(np.sin(np.arange(24, dtype=np.float32)).reshape(8, 3), name="weights")
        for name, steps in (("baseline", 60), ("second", 72)):
            with wb.record(folder / f"{name}.parquet"):
                for step in range(steps):
                    losses = strategy.run(train, args=(256 << (2 * (step % 6)),))
                    strategy.run(spread, args=(1 << 12,))
                    if step % 4 == 0:
                        history.model()
        (folder / "damaged.parquet").write_bytes(b"PAR1 not really")
        models["values"] = wb.inspect({"losses": losses, "weights": weights}).model
        models["dataset_running"] = dataset_running(strategy)
        fields = strategy.run(field)
        models["values_elements"] = wb.inspect(fields, name="field", elements=np.s_[1]).model
        models["values_difference"] = wb.inspect(
            fields, name="field", elements=np.s_[1], difference=True
        ).model
        models |= numbers_and_copies(strategy)
        models["array_uneven"] = array_model(losses, name="losses")
        models["array_copies"] = array_model(weights)
        models["collectives"] = collectives(cluster)
        models["topology"] = topology_model(cluster)
        models["devices"] = history.model()
        models["stuck"], models["topology_busy"] = while_stuck(cluster, strategy, folder)
        since = models["collectives"].snapshot.version
        models["change"] = {"since": since} | delta(models["stuck"].snapshot, since)
        try:
            strategy.run(die)
        except WorkbenchError:
            models["lost"], models["topology_lost"] = collectives(cluster), topology_model(cluster)
    models |= inputs() | services() | parameter_servers()
    paths = str(folder / "baseline.parquet"), str(folder / "second.parquet")
    models["runs"] = runs_model(folder, paths)
    return models


def main() -> None:
    """Writes one JSON file per model, without the names of this machine's folders."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.extension.record",
        description="Records models from real runs, for the tests of the views.",
    )
    parser.add_argument("only", nargs="*", metavar="NAME", help="a model to write; default: all")
    only = parser.parse_args().only
    TARGET.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, model in record(Path(folder)).items():
            if only and name not in only:
                continue
            text = json.dumps(
                model if isinstance(model, dict) else plain(model),
                ensure_ascii=False,
                separators=(",", ":"),
                allow_nan=False,
            )
            text = text.replace(folder, "runs")
            (TARGET / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
