"""What is saved comes back: by every strategy, to another one, and to another number of replicas."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

import workbench as wb
from workbench.data import Dataset
from workbench.errors import CheckpointInvalid, InvalidArgumentError, NotFoundError

pytestmark = pytest.mark.usefixtures("three")
CENTRAL = wb.distribute.experimental.CentralStorageStrategy
STRATEGIES: dict[str, Callable[[], Any]] = {
    "one": lambda: wb.OneDeviceStrategy("CPU:0"),
    "mirrored-2": lambda: wb.MirroredStrategy(["CPU:0", "CPU:1"]),
    "mirrored-3": lambda: wb.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"]),
    "central-2": lambda: CENTRAL(["CPU:0", "CPU:1"]),
    "default": wb.distribute.get_strategy,
    "jax-2": lambda: wb.MirroredStrategy(["CPU:0", "CPU:1"], backend="jax"),
}


def variables_of(strategy: Any, start: float) -> dict[str, Any]:
    with strategy.scope():
        return {
            "w": wb.Variable(np.full((5, 3), start, np.float32), name="w", aggregation="MEAN"),
            "count": wb.Variable(int(start), name="count", synchronization="ON_READ", aggregation="SUM"),
            "mean": wb.Variable(start, name="mean", synchronization="ON_READ", aggregation="MEAN"),
            "empty": wb.Variable(np.zeros((0, 4)), name="empty"),
        }


@pytest.mark.parametrize("saved_by", STRATEGIES)
@pytest.mark.parametrize("restored_to", ["mirrored-3", "central-2", "default", "jax-2"])
def test_variables_come_back_with_any_strategy(tmp_path: Path, saved_by: str, restored_to: str) -> None:
    before = variables_of(STRATEGIES[saved_by](), 1.0)
    before["w"].assign(np.arange(15, dtype=np.float32).reshape(5, 3))
    before["count"].assign(np.int32(6))
    path = wb.Checkpoint(variables=before).save(tmp_path / "x")

    after = variables_of(STRATEGIES[restored_to](), 9.0)
    wb.Checkpoint(variables=after).restore(path).assert_consumed()

    assert after["w"].numpy().tolist() == np.arange(15).reshape(5, 3).tolist()
    assert (after["count"].numpy(), after["mean"].numpy()) == (6, 1.0)
    assert after["empty"].numpy().shape == (0, 4)


def test_strategies_on_the_same_workers_share_a_checkpoint(tmp_path: Path) -> None:
    variables = [
        variables_of(STRATEGIES[name](), 1.0 + n) for n, name in enumerate(("mirrored-2", "central-2", "one"))
    ]
    for number, each in enumerate(variables):
        each["w"].assign(np.full((5, 3), 10.0 + number, np.float32))
    checkpoint = wb.Checkpoint(variables=variables)

    path = checkpoint.save(tmp_path / "x")
    for each in variables:
        each["w"].assign(np.zeros((5, 3), np.float32))
        each["mean"].assign(0.0)
    checkpoint.restore(path).assert_consumed()

    for number, each in enumerate(variables):
        assert each["w"].numpy().tolist() == np.full((5, 3), 10.0 + number).tolist()
        assert each["mean"].numpy() == 1.0 + number


def test_a_total_that_replicas_cannot_share_evenly_stays_exact(tmp_path: Path) -> None:
    strategy = STRATEGIES["mirrored-3"]()
    variables = variables_of(strategy, 0.0)

    def count() -> None:
        variables["count"].assign_add(np.int32(wb.distribute.get_replica_context().replica_id_in_sync_group))

    for _ in range(7):
        strategy.run(count)
    checkpoint = wb.Checkpoint(variables=variables)
    path = checkpoint.save(tmp_path / "x")
    strategy.run(count)
    checkpoint.restore(path)

    assert variables["count"].numpy() == 21
    strategy.run(count)
    assert variables["count"].numpy() == 24


def test_components_without_a_common_value_come_back_one_by_one(tmp_path: Path) -> None:
    strategy = STRATEGIES["mirrored-3"]()
    with strategy.scope():
        own = wb.Variable([0.0, 0.0], synchronization="ON_READ", aggregation="NONE")

    def number() -> None:
        own.assign_add([1.0, wb.distribute.get_replica_context().replica_id_in_sync_group])

    strategy.run(number)
    checkpoint = wb.Checkpoint(own=own)
    path = checkpoint.save(tmp_path / "x")
    strategy.run(number)
    checkpoint.restore(path)

    assert [part.numpy().tolist() for part in strategy.local_results(own)] == [[1, 0], [1, 1], [1, 2]]
    with STRATEGIES["mirrored-2"]().scope():
        two = wb.Variable([0.0, 0.0], synchronization="ON_READ", aggregation="NONE")
    with pytest.raises(
        InvalidArgumentError, match=r"own: float32\[3,2\] in the checkpoint, float32\[2,2\] in the"
    ):
        wb.Checkpoint(own=two).restore(path)


@pytest.mark.parametrize("shards", [1, 2])
def test_variables_on_servers_come_back_in_other_shards_and_elsewhere(tmp_path: Path, shards: int) -> None:
    partitioners = wb.distribute.experimental.partitioners

    def table_on(servers: int, shards: int) -> Any:
        strategy = wb.distribute.ParameterServerStrategy(
            servers=servers, variable_partitioner=partitioners.FixedShardsPartitioner(shards)
        )
        with strategy.scope():
            return strategy, wb.Variable(np.zeros((6, 2), np.float32), name="table")

    strategy, table = table_on(2, 2)
    assert len(table.variables) == 2
    table.assign(np.arange(12, dtype=np.float32).reshape(6, 2))
    path = wb.Checkpoint(table=table).save(tmp_path / "x")
    strategy.close()

    strategy, other = table_on(1, shards)
    wb.Checkpoint(table=other).restore(path)
    assert other.numpy().tolist() == np.arange(12).reshape(6, 2).tolist()
    strategy.close()
    with STRATEGIES["mirrored-2"]().scope():
        mirrored = wb.Variable(np.zeros((6, 2), np.float32))
    wb.Checkpoint(table=mirrored).restore(path)
    assert mirrored.numpy().tolist() == np.arange(12).reshape(6, 2).tolist()


def test_replicas_write_their_variables_themselves_and_share_the_work(tmp_path: Path) -> None:
    strategy = STRATEGIES["mirrored-3"]()
    with strategy.scope():
        weights = [wb.Variable(np.full(1000, number, np.float64)) for number in range(6)]
    path = Path(wb.Checkpoint(weights=weights).save(tmp_path / "x"))

    files = sorted(path.glob("*.safetensors"))
    sizes = [file.stat().st_size for file in files]
    assert len(files) == 3
    assert max(sizes) < 2 * min(sizes)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float64", "complex64", "complex128"])
def test_arrays_and_scalars_keep_dtype_and_value(tmp_path: Path, dtype: str) -> None:
    value = np.array([[1, 0], [3, 4]], dtype)
    checkpoint = wb.Checkpoint(array=value, scalar=value[1, 1], when=np.array("2026-11-25", "M8[D]"))
    path = checkpoint.save(tmp_path / "x")
    checkpoint.array, checkpoint.scalar = np.zeros_like(value), np.dtype(dtype).type(0)
    checkpoint.when = np.array("1970-01-01", "M8[D]")
    checkpoint.restore(path)

    assert checkpoint.array.dtype == dtype
    assert checkpoint.array.tolist() == value.tolist()
    assert type(checkpoint.scalar) is np.dtype(dtype).type
    assert checkpoint.scalar == value[1, 1]
    assert str(checkpoint.when) == "2026-11-25"


def test_bfloat16_and_jax_arrays_stay_what_they_are(tmp_path: Path) -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed: pip install -e '.[jax]'")
    params = {"layer": {"w": jax.numpy.arange(4, dtype="bfloat16")}}
    checkpoint = wb.Checkpoint(params=params)
    path = checkpoint.save(tmp_path / "x")
    params["layer"]["w"] = jax.numpy.zeros(4, dtype="bfloat16")
    checkpoint.restore(path)

    assert isinstance(params["layer"]["w"], jax.Array)
    assert params["layer"]["w"].astype("float32").tolist() == [0, 1, 2, 3]


class Optimizer:
    """An object that gives its state itself."""

    def __init__(self) -> None:
        self.moments = [np.zeros(2), np.zeros(3)]
        self.lock = object()

    def state_dict(self) -> dict[str, Any]:
        return {"moments": list(self.moments), "step": 1}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.moments = state["moments"]
        self.step = state["step"]


def test_nested_python_state_comes_back_in_place(tmp_path: Path) -> None:
    history, optimizer = [1.5, math.inf], Optimizer()
    settings = {"rate": 0.1, "names": ["a", None], "exact": 2**70}
    checkpoint = wb.Checkpoint(history=history, settings=settings, optimizer=optimizer, pair=(1, "é"))
    optimizer.moments[1][:] = 7
    path = checkpoint.save(tmp_path / "x")
    history.clear()
    settings["rate"], settings["new"] = 9.0, 1
    optimizer.moments = [np.ones(2), np.ones(3)]
    checkpoint.pair = (5, "")
    checkpoint.restore(path)

    assert history == [1.5, math.inf]
    assert settings == {"rate": 0.1, "names": ["a", None], "exact": 2**70}
    assert checkpoint.pair == (1, "é")
    assert [moment.tolist() for moment in optimizer.moments] == [[0, 0], [7, 7, 7]]


def test_every_difference_is_told_at_once_and_nothing_changes(tmp_path: Path) -> None:
    path = wb.Checkpoint(w=wb.Variable([1.0, 2.0]), b=wb.Variable(1.0), gone=1, kind=2).save(tmp_path / "x")
    w, b = wb.Variable([5.0, 5.0, 5.0]), wb.Variable(np.int64(5))
    checkpoint = wb.Checkpoint(w=w, b=b, new=0, kind=wb.Variable(0.0), same=None)
    with pytest.raises(InvalidArgumentError) as caught:
        checkpoint.restore(path)

    lines = str(caught.value).splitlines()[1:]
    assert [line.strip() for line in lines] == [
        "different: w: float32[2] in the checkpoint, float32[3] in the program",
        "different: b: float32[] in the checkpoint, int64[] in the program",
        "different: kind: value in the checkpoint, variable in the program",
        "only in the program: new",
        "only in the program: same",
        "only in the checkpoint: gone",
    ]
    assert w.numpy().tolist() == [5, 5, 5]


def test_what_both_have_is_restored_where_a_part_is_expected(tmp_path: Path) -> None:
    path = wb.Checkpoint(w=wb.Variable(1.0), gone=1).save(tmp_path / "x")
    w, other = wb.Variable(5.0), wb.Variable(5.0)
    status = wb.Checkpoint(w=w, other=other).restore(path, expect_partial=True).expect_partial()

    assert (w.numpy(), other.numpy()) == (1.0, 5.0)
    assert (status.missing, status.unexpected) == (("other",), ("gone",))
    with pytest.raises(AssertionError, match="'other'"):
        status.assert_existing_objects_matched()
    with pytest.raises(InvalidArgumentError, match=r"restore\(path, expect_partial=True\)"):
        wb.Checkpoint(w=w, other=other).restore(path)


def test_what_a_checkpoint_cannot_hold_is_refused_by_its_path(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"'model/0/key', a builtin_function_or_method"):
        wb.Checkpoint(model=[{"key": print}]).save(tmp_path / "x")
    with pytest.raises(TypeError, match=r"'texts'.*safetensors has no dtype"):
        wb.Checkpoint(texts=np.array(["a"])).save(tmp_path / "x")
    with pytest.raises(TypeError, match="the path of a checkpoint is a text or a Path, got None"):
        wb.Checkpoint(w=1).save(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="the key"):
        wb.Checkpoint(d={(1, 2): 3}).save(tmp_path / "x")
    loop: list[Any] = [wb.Variable(1.0)]
    loop.append(loop)
    with pytest.raises(ValueError, match="contains itself"):
        wb.Checkpoint(loop=loop).save(tmp_path / "x")
    assert not list(tmp_path.iterdir())


def test_names_of_parts_are_attributes_and_never_those_of_the_class() -> None:
    checkpoint = wb.Checkpoint(epoch=1)
    checkpoint.epoch += 1
    assert checkpoint.epoch == 2
    with pytest.raises(
        AttributeError, match=r"'save' belongs to Checkpoint itself; give this part .* another"
    ):
        checkpoint.save = 1
    with pytest.raises(AttributeError, match=r"'root' belongs to Checkpoint itself; give it as Checkpoint\("):
        checkpoint.root = [wb.Variable(1.0)]
    with pytest.raises(AttributeError, match="no 'other'; it has epoch"):
        checkpoint.other
    del checkpoint.epoch
    assert repr(checkpoint) == "Checkpoint()"


def test_safetensors_alone_reads_the_arrays(tmp_path: Path) -> None:
    with STRATEGIES["mirrored-2"]().scope():
        w = wb.Variable(np.arange(6, dtype=np.float16).reshape(2, 3))
    path = Path(wb.Checkpoint(model={"w": w, "a/b": np.ones(3)}).save(tmp_path / "x"))
    found = {}
    for file in path.glob("*.safetensors"):
        with safe_open(file, "np") as tensors:
            found |= {name: tensors.get_tensor(name).tolist() for name in tensors.keys()}  # noqa: SIM118

    assert found == {"model/w": [[0, 1, 2], [3, 4, 5]], "model/a~1b": [1, 1, 1]}
    assert (
        json.loads((path / "checkpoint.json").read_text().splitlines()[0])["format"] == "workbench checkpoint"
    )


def test_an_iterator_goes_on_in_the_middle_of_its_epoch(tmp_path: Path) -> None:
    def batches() -> Any:
        return Dataset.range(64).shuffle(64, seed=3).map(lambda x: x * 2).batch(4)

    iterator = iter(batches())
    first = [next(iterator).tolist() for _ in range(5)]
    path = wb.Checkpoint(iterator=iterator).save(tmp_path / "x")
    rest = [batch.tolist() for batch in iterator]

    another = iter(batches())
    wb.Checkpoint(iterator=another).restore(path)
    assert [batch.tolist() for batch in another] == rest
    assert sorted(x for batch in first + rest for x in batch) == list(range(0, 128, 2))


@pytest.mark.parametrize("restored_to", ["mirrored-2", "mirrored-3", "one"])
def test_a_distributed_iterator_goes_on_with_other_replicas(tmp_path: Path, restored_to: str) -> None:
    def iterator_of(strategy: Any) -> Any:
        return iter(strategy.distribute_dataset(Dataset.range(60).shuffle(60, seed=5).batch(6)))

    def batch_of(strategy: Any, batch: Any) -> list[int]:
        return list(map(int, np.concatenate(strategy.local_results(batch))))

    strategy = STRATEGIES["mirrored-2"]()
    iterator = iterator_of(strategy)
    for _ in range(3):
        next(iterator)
    path = wb.Checkpoint(iterator=iterator).save(tmp_path / "x")
    rest = [batch_of(strategy, batch) for batch in iterator]

    other = STRATEGIES[restored_to]()
    another = iterator_of(other)
    wb.Checkpoint(iterator=another).restore(path)
    assert len(rest) == 7
    assert [batch_of(other, batch) for batch in another] == rest


def test_later_epochs_of_a_distributed_dataset_are_what_they_would_have_been(tmp_path: Path) -> None:
    def epochs_of(strategy: Any, dataset: Any, count: int) -> list[list[int]]:
        return [
            [int(x) for batch in dataset for part in strategy.local_results(batch) for x in part]
            for _ in range(count)
        ]

    def distributed(strategy: Any) -> Any:
        return strategy.distribute_dataset(Dataset.range(12).shuffle(12, seed=5).batch(4))

    strategy = STRATEGIES["mirrored-2"]()
    dataset = distributed(strategy)
    epochs_of(strategy, dataset, 1)
    iterator = iter(dataset)
    next(iterator)
    path = wb.Checkpoint(iterator=iterator).save(tmp_path / "x")
    later = epochs_of(strategy, dataset, 2)

    again = distributed(strategy)
    wb.Checkpoint(iterator=iter(again)).restore(path)
    assert epochs_of(strategy, again, 2) == later
    assert later[0] != later[1]


def test_the_position_in_another_dataset_is_a_difference(tmp_path: Path) -> None:
    path = wb.Checkpoint(iterator=iter(Dataset.range(8).batch(2))).save(tmp_path / "x")
    with pytest.raises(InvalidArgumentError, match=r"different: iterator: .*a dataset other than"):
        wb.Checkpoint(iterator=iter(Dataset.range(9).batch(2))).restore(path)


def test_the_save_counter_goes_on_where_it_was(tmp_path: Path) -> None:
    checkpoint = wb.Checkpoint(w=wb.Variable(1.0))
    checkpoint.save(tmp_path / "x")
    path = checkpoint.save(tmp_path / "x")
    assert (Path(path).name, checkpoint.save_counter) == ("x-2", 2)

    another = wb.Checkpoint(w=wb.Variable(0.0))
    another.read(path)
    assert another.save_counter == 0
    another.restore(path)
    assert Path(another.save(tmp_path / "x")).name == "x-3"


def test_a_path_may_be_bytes(tmp_path: Path) -> None:
    path: Any = os.fsencode(tmp_path / "x")
    assert wb.Checkpoint(count=1).save(path) == str(tmp_path / "x-1")
    assert wb.Checkpoint(count=2).write(path) == str(tmp_path / "x")
    counted = wb.Checkpoint(count=0)
    counted.restore(path + b"-1")
    assert counted.count == 1
    counted.read(path)
    assert counted.count == 2


def test_what_is_no_checkpoint_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(
        NotFoundError, match=r"there is no checkpoint .*: cannot open .*: No such file"
    ) as caught:
        wb.Checkpoint().restore(tmp_path / "x")
    assert caught.value.__suppress_context__  # its text contains all of it


def test_a_replica_function_can_neither_save_nor_restore(tmp_path: Path) -> None:
    strategy = STRATEGIES["one"]()
    with pytest.raises(RuntimeError, match=r"outside of strategy\.run"):
        strategy.run(lambda: wb.Checkpoint().save("nowhere"))


@pytest.mark.parametrize("protocol", ["memory://checkpoints", "file://"])
def test_checkpoints_are_written_to_urls(tmp_path: Path, protocol: str) -> None:
    with STRATEGIES["mirrored-2"]().scope():
        w = wb.Variable(np.arange(1000.0))
    checkpoint = wb.Checkpoint(w=w, epoch=4)
    path = checkpoint.save(f"{protocol}{tmp_path}/x")
    checkpoint.epoch = 0
    w.assign(np.zeros(1000))
    path = checkpoint.write(path)
    checkpoint.save(f"{protocol}{tmp_path}/x")
    checkpoint.restore(path)
    assert (w.numpy().sum(), checkpoint.epoch) == (0, 0)
    assert path.startswith(protocol)


def test_a_damaged_file_changes_no_variable_wherever_it_is(tmp_path: Path) -> None:
    strategy = STRATEGIES["mirrored-3"]()
    variables = variables_of(strategy, 1.0)
    checkpoint = wb.Checkpoint(variables=variables, epoch=1)
    path = Path(checkpoint.save(tmp_path / "x"))
    for variable in variables.values():
        variable.assign(np.full(variable.shape, 6, variable.dtype))
    checkpoint.epoch = 6
    for shard in sorted(path.glob("*.safetensors")):
        whole = shard.read_bytes()
        shard.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(CheckpointInvalid, match=shard.name):
            checkpoint.restore(path)
        shard.write_bytes(whole)
        shard.rename(tmp_path / "elsewhere")
        with pytest.raises(CheckpointInvalid, match=shard.name):
            checkpoint.restore(path)
        (tmp_path / "elsewhere").rename(shard)

    assert [float(part.numpy()[0, 0]) for part in strategy.local_results(variables["w"])] == [6, 6, 6]
    assert (variables["count"].numpy(), variables["mean"].numpy(), checkpoint.epoch) == (6, 6, 6)
    checkpoint.restore(path)
    assert [float(part.numpy()[0, 0]) for part in strategy.local_results(variables["w"])] == [1, 1, 1]
    assert strategy.run(lambda: variables["w"].read_value().sum()).values == (15, 15, 15)


def test_without_a_checkpoint_nothing_is_restored(tmp_path: Path) -> None:
    checkpoint = wb.Checkpoint(w=wb.Variable(1.0), epoch=3)
    status = checkpoint.restore(wb.latest_checkpoint(tmp_path))
    assert (checkpoint.epoch, float(checkpoint.w), status.matched) == (3, 1.0, ())
    assert status.expect_partial() is status
    for method in ("assert_consumed", "assert_existing_objects_matched", "assert_nontrivial_match"):
        with pytest.raises(AssertionError, match="no checkpoint was given"):
            getattr(status, method)()


def test_a_status_tells_whether_anything_was_restored(tmp_path: Path) -> None:
    path = wb.Checkpoint(a=1, b=2).write(tmp_path / "saved")
    status = wb.Checkpoint(b=0, c=0).restore(path, expect_partial=True)
    assert (status.matched, status.missing, status.unexpected) == (("b",), ("c",), ("a",))
    assert status.assert_nontrivial_match() is status
    for other in (wb.Checkpoint(c=0), wb.Checkpoint()):
        with pytest.raises(AssertionError, match="have no path alike"):
            other.restore(path, expect_partial=True).assert_nontrivial_match()


class _Model:
    def __init__(self, value: float) -> None:
        self.w = wb.Variable(value)
        self.layers = [wb.Variable(value)]
        self.epoch = int(value)


def test_the_parts_of_a_root_are_at_the_top(tmp_path: Path) -> None:
    path = wb.Checkpoint(_Model(1.0), rate=0.5).write(tmp_path / "saved")
    model = _Model(7.0)
    checkpoint = wb.Checkpoint(root=model, rate=0.1)
    checkpoint.restore(path).assert_consumed()
    assert (float(model.w), float(model.layers[0]), model.epoch) == (1.0, 1.0, 1)
    assert checkpoint.root is model
    assert checkpoint.rate == 0.5
    assert wb.Checkpoint(w=wb.Variable(0.0)).restore(path, expect_partial=True).matched == ("w",)
    for root in (wb.Variable(1.0), 3, {"epoch": 3}):
        with pytest.raises(TypeError, match="give a single value by its name"):
            wb.Checkpoint(root)
    with pytest.raises(ValueError, match="have the path 'w'"):
        wb.Checkpoint(model, w=1).write(tmp_path / "twice")


def test_a_checkpoint_may_be_a_part_of_another(tmp_path: Path) -> None:
    inner = wb.Checkpoint(_Model(1.0), v=wb.Variable(2.0), n=4)
    inner.save(tmp_path / "inner")
    path = wb.Checkpoint(inner=inner, w=wb.Variable(3.0)).write(tmp_path / "outer")
    other = wb.Checkpoint(_Model(8.0), v=wb.Variable(8.0), n=8)
    outer = wb.Checkpoint(inner=other, w=wb.Variable(8.0))
    status = outer.restore(path).assert_consumed()
    assert set(status.matched) == {
        "inner/root/w",
        "inner/root/layers/0",
        "inner/root/epoch",
        "inner/v",
        "inner/n",
        "w",
    }
    assert (float(other.v), other.n, other.root.epoch, other.save_counter) == (2.0, 4, 1, 0)
