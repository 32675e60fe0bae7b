"""`copy_to_device` and `prefetch_to_device`: arrays of JAX, and of a simulated CuPy; no GPU runs these tests."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from workbench import DeviceSpec
from workbench.backends import cupy
from workbench.data import Dataset, InputOptions
from workbench.data.experimental import copy_to_device, prefetch_to_device
from workbench.data.sharding.distributed import distribute_for_host
from workbench.errors import BackendUnavailable, InvalidArgumentError

ELEMENTS = Dataset.from_tensor_slices({"x": np.arange(6.0).reshape(3, 2), "label": [b"a", b"b", b"c"]})


class GpuArray:
    """What the simulated CuPy has in place of its arrays."""

    def __init__(self, value: Any, device: int) -> None:
        self.value = np.array(value)
        self.device = device
        self.thread = threading.current_thread().name
        self.nbytes = self.value.nbytes


class SimulatedCupy:
    """Two GPUs; a new array is on the current one."""

    def __init__(self) -> None:
        self.current = 0
        self.cuda = SimpleNamespace(Device=self._device, runtime=SimpleNamespace(getDeviceCount=lambda: 2))

    @contextmanager
    def _device(self, ordinal: int) -> Iterator[None]:
        before, self.current = self.current, ordinal
        yield
        self.current = before

    def array(self, value: Any) -> GpuArray:
        return GpuArray(value, self.current)


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    simulated = SimulatedCupy()
    monkeypatch.setattr(cupy, "namespace", lambda: simulated)


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize(
    "name", ["gpu:1", "/device:GPU:1", "/job:worker/task:0/device:GPU:1", DeviceSpec.from_string("GPU:1")]
)
def test_arrays_are_on_the_gpu_and_texts_stay(name: Any) -> None:
    found = list(ELEMENTS.apply(copy_to_device(name)))
    assert [element["x"].device for element in found] == [1, 1, 1]
    assert [element["x"].value.tolist() for element in found] == [[0, 1], [2, 3], [4, 5]]
    assert [element["label"] for element in found] == [b"a", b"b", b"c"]


@pytest.mark.usefixtures("gpus")
def test_prefetching_copies_on_a_thread() -> None:
    found = list(Dataset.range(5).apply(prefetch_to_device("/gpu:0", 2)))
    assert [int(element.value) for element in found] == [0, 1, 2, 3, 4]
    assert {element.thread for element in found} == {"wb-prefetch"}
    assert {element.thread for element in Dataset.range(5).apply(copy_to_device("/gpu:0"))} == {"MainThread"}


@pytest.mark.usefixtures("gpus")
def test_a_gpu_that_is_not_there_is_named() -> None:
    with pytest.raises(BackendUnavailable, match=r"there is no GPU:2; this process sees GPU:0 to GPU:1"):
        next(iter(ELEMENTS.apply(copy_to_device("GPU:2"))))


@pytest.mark.usefixtures("gpus")
def test_elements_that_fail_keep_their_places() -> None:
    def fails_at_1(x: Any) -> Any:
        if x == 1:
            raise LookupError("nothing at one")
        return x

    elements = iter(Dataset.range(3).map(fails_at_1).apply(copy_to_device("GPU:0")))
    assert int(next(elements).value) == 0
    with pytest.raises(LookupError, match="nothing at one"):
        next(elements)
    assert int(next(elements).value) == 2


@pytest.mark.usefixtures("gpus")
def test_replicas_get_batches_as_without_it() -> None:
    options = InputOptions(experimental_fetch_to_device=True)
    assert options.experimental_fetch_to_device
    plain = Dataset.range(8).batch(4)
    for dataset in (plain.apply(copy_to_device("GPU:0")), plain.apply(prefetch_to_device("GPU:0", 1))):
        steps = distribute_for_host(dataset, replicas_per_host=2).values_for([0, 1])
        assert [value.tolist() for value in next(steps)] == [[0, 1], [2, 3]]  # type: ignore[union-attr]


def test_the_cpu_is_where_elements_are_already() -> None:
    dataset = ELEMENTS.apply(copy_to_device("/cpu:0"))
    assert dataset.element_spec == ELEMENTS.element_spec
    assert dataset.cardinality() == 3
    assert all(type(element["x"]) is np.ndarray for element in dataset)
    assert "to_device(CPU:0)" in repr(dataset)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: copy_to_device("gpu0"), "unknown part 'gpu0'"),
        (lambda: copy_to_device(""), "names no device; write 'GPU:0'"),
        (lambda: copy_to_device("/task:0"), "names no device"),
        (lambda: copy_to_device("/task:1/device:GPU:0"), "is a device of another machine; a strategy copies"),
        (lambda: copy_to_device("GPU:0", source_device="GPU:1"), "elements of a dataset are on the CPU"),
        (lambda: prefetch_to_device(3), "unknown part '3'"),
    ],
)
def test_what_is_no_device_of_this_machine_is_refused_at_once(make: Any, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        ELEMENTS.apply(make())


def test_arrays_of_jax_are_on_the_device_that_was_given() -> None:
    pytest.importorskip("jaxlib", reason="JAX is not installed: pip install -e '.[jax]'")
    program = """
        import jax, numpy as np, pytest
        from workbench.data import Dataset
        from workbench.data.experimental import copy_to_device, prefetch_to_device
        from workbench.errors import BackendUnavailable, InvalidArgumentError

        second = jax.devices()[1]
        data = Dataset.from_tensor_slices((np.arange(6, dtype=np.float32).reshape(3, 2), np.arange(3, dtype=np.int32)))
        for apply in (copy_to_device(second), prefetch_to_device(second, 2)):
            for number, (x, label) in enumerate(data.batch(1).apply(apply)):
                assert isinstance(x, jax.Array) and x.devices() == {second} == label.devices()
                assert x.tolist() == [[2 * number, 2 * number + 1]] and label.tolist() == [number]
        elements = iter(Dataset.from_tensor_slices(np.array([1 << 40, 1])).apply(copy_to_device(second)))
        with pytest.raises(InvalidArgumentError, match="do not fit into the 32 bits that JAX makes of int64"):
            next(elements)
        with pytest.warns(UserWarning, match="JAX narrows int64"):
            assert int(next(elements)) == 1
        with pytest.raises(BackendUnavailable, match="JAX finds no device of tpu"):
            next(iter(data.apply(copy_to_device("TPU:0"))))
        print("all as expected")
    """
    environment = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, **environment},
    )
    assert done.stdout.strip() == "all as expected", done.stderr
