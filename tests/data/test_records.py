"""Dataclasses and classes of attrs as elements."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import attr
import numpy as np
import pytest

import workbench as wb
from workbench.data import Dataset, TensorSpec


@dataclass(frozen=True)
class Point:
    x: Any
    y: Any


@attr.s(slots=True, eq=False)
class Pair:
    a = attr.ib()
    b = attr.ib()


class Masked:
    """Says itself what its components are, as for TensorFlow."""

    def __init__(self, value: Any, name: str) -> None:
        self.value = value
        self.name = name

    def __tf_flatten__(self) -> tuple[Any, Any]:
        return (self.name,), (self.value,)

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: Any) -> Masked:
        return cls(components[0], metadata[0])


def test_the_fields_of_a_dataclass_are_components() -> None:
    dataset = Dataset.from_tensor_slices(Point([1, 2, 3], np.zeros((3, 2))))
    assert dataset.element_spec == Point(TensorSpec((), np.int32), TensorSpec((2,), np.float64))
    batch = dataset.batch(2).first()
    assert isinstance(batch, Point)
    assert batch.x.tolist() == [1, 2]
    assert batch.y.shape == (2, 2)


def test_a_record_is_one_argument_and_may_be_a_result() -> None:
    points = Dataset.range(3).map(lambda x: Point(x, x + 1))
    assert [int(p) for p in points.map(lambda point: point.x + point.y)] == [1, 3, 5]
    assert [int(p.x) for p in points.filter(lambda point: point.y > 1)] == [1, 2]
    pairs = Dataset.range(2).map(lambda x: {"pair": Pair(x, (x, x))}).batch(2).first()["pair"]
    assert type(pairs) is Pair
    assert pairs.a.tolist() == pairs.b[0].tolist() == pairs.b[1].tolist() == [0, 1]


def test_a_class_with_the_methods_of_tensorflow_keeps_its_metadata() -> None:
    element = (
        Dataset.from_tensors(Masked([1, 2], "m"))
        .map(lambda masked: Masked(masked.value * 2, masked.name))
        .first()
    )
    assert (element.value.tolist(), element.name) == ([2, 4], "m")


def test_a_class_of_another_kind_is_refused() -> None:
    with pytest.raises(TypeError, match="a dataset element cannot hold object"):
        Dataset.from_tensors(Point(object(), 1))


def test_specs_are_no_records() -> None:
    with pytest.raises(TypeError, match="a dataset element cannot hold TensorSpec"):
        Dataset.from_tensors(TensorSpec((), np.int32))
    assert Dataset.range(2).batch(2, drop_remainder=True).element_spec == TensorSpec((2,), np.int64)


def test_a_process_that_has_not_seen_the_class_reads_the_dataset(tmp_path: Path) -> None:
    (tmp_path / "d").write_bytes(pickle.dumps(Dataset.from_tensor_slices(Point([1, 2], [3, 4])).batch(2)))
    program = f"import pickle; print(pickle.load(open({str(tmp_path / 'd')!r}, 'rb')).first().y.tolist())"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("[3, 4]\n", "")


@pytest.mark.parametrize("processes", [False, True])
def test_replicas_get_their_part_of_each_record(processes: bool) -> None:
    with wb.connect(replicas=2, processes=processes, replace=True) as cluster:
        strategy = wb.MirroredStrategy(list(cluster.devices))
        dataset = Dataset.from_tensor_slices(Point(np.arange(8), np.arange(8.0)))
        sums = []
        for batch in strategy.distribute_dataset(dataset.batch(4)):
            assert isinstance(batch, Point)
            found = strategy.run(lambda point: point.x.sum() + point.y.sum(), args=(batch,))
            sums.append([float(part) for part in strategy.local_results(found)])
        strategy.group.close()
    assert sums == [[2.0, 10.0], [18.0, 26.0]]
