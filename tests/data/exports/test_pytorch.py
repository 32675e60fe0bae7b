"""Datasets in PyTorch's DataLoader, and PyTorch's datasets as sources."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench.data import Dataset, Options, TextLineDataset, from_torch, to_torch, to_torch_map_style
from workbench.errors import BackendUnavailable

if importlib.util.find_spec("torch") is None:
    torch: Any = None
else:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own warning about this machine
        import torch
        import torch.utils.data

needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is not installed: pip install torch")
without_torch = pytest.mark.skipif(torch is not None, reason="PyTorch is installed")


def loader(dataset: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own warning about this machine
        return torch.utils.data.DataLoader(dataset, multiprocessing_context="fork", **options)


def numbers(batches: Any) -> list[int]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own warning about this machine
        return [int(x) for batch in batches for x in np.ravel(batch)]


@without_torch
@pytest.mark.parametrize("function", [to_torch, to_torch_map_style])
def test_without_pytorch_the_error_says_what_to_install(function: Any) -> None:
    with pytest.raises(BackendUnavailable, match="pip install torch"):
        function(Dataset.range(3))


@needs_torch
def test_elements_are_tensors_in_their_structure() -> None:
    dataset = Dataset.from_tensor_slices({"x": np.arange(6.0).reshape(3, 2), "name": ["a", "b", "c"]})
    element = next(iter(to_torch(dataset.map(lambda e: (e, np.int64(7), e["x"][::-1])))))
    assert element[0]["name"] == b"a"
    assert element[0]["x"].tolist() == [0.0, 1.0]
    assert element[0]["x"].dtype == torch.float64
    assert element[1].item() == 7
    assert element[2].tolist() == [1.0, 0.0]
    element[0]["x"][0] = 9.0
    assert dataset.first()["x"][0] == 0.0


@needs_torch
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_workers_share_the_elements(workers: int) -> None:
    dataset = Dataset.range(23).shuffle(23).batch(2)
    found = numbers(loader(to_torch(dataset), batch_size=None, num_workers=workers))
    assert sorted(found) == list(range(23))
    options = Options()
    options.experimental_distribute.auto_shard_policy = "OFF"  # type: ignore[assignment]
    off = loader(to_torch(dataset.with_options(options)), batch_size=None, num_workers=workers)
    assert sorted(numbers(off)) == list(range(23))


@needs_torch
def test_what_a_worker_caches_is_there_in_its_next_epoch(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("1\n2\n")
    seen = tmp_path / "seen"

    def slow(line: bytes) -> int:
        with open(seen, "a") as file:
            file.write(".")
        return int(line)

    lines = to_torch(TextLineDataset([str(tmp_path / "lines")] * 2).map(slow).cache())
    batches = loader(lines, batch_size=None, num_workers=2, persistent_workers=True)
    assert [sorted(numbers(batches)) for _ in range(2)] == [[1, 1, 2, 2]] * 2
    calls = len(seen.read_text())
    assert sorted(numbers(batches)) == [1, 1, 2, 2]
    assert len(seen.read_text()) == calls


@needs_torch
@pytest.mark.parametrize("persistent", [False, True])
def test_each_epoch_has_an_order_of_its_own_which_a_seed_repeats(persistent: bool) -> None:
    def epochs() -> list[list[int]]:
        torch.manual_seed(5)
        batches = loader(
            to_torch(Dataset.range(40).shuffle(40, seed=1)),
            batch_size=4,
            num_workers=2,
            persistent_workers=persistent,
        )
        found = [numbers(batches) for _ in range(3)]
        if persistent:
            batches._iterator._shutdown_workers()
        return found

    first = epochs()
    assert all(sorted(epoch) == list(range(40)) for epoch in first)
    assert len({tuple(epoch) for epoch in first}) == 3
    assert epochs() == first


@needs_torch
def test_without_workers_the_loader_gives_the_elements_in_order() -> None:
    batches = torch.utils.data.DataLoader(to_torch(Dataset.range(5)), batch_size=2)
    assert len(batches) == 3
    assert [batch.tolist() for batch in batches] == [[0, 1], [2, 3], [4]]


@needs_torch
def test_workers_share_files(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text("".join(f"{name}{i}\n" for i in range(4)))
    dataset = TextLineDataset(sorted(map(str, tmp_path.iterdir())))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = list(loader(to_torch(dataset), batch_size=None, num_workers=2))
    assert sorted(lines) == [f"{name}{i}".encode() for name in "abc" for i in range(4)]


@needs_torch
def test_a_map_style_dataset_is_shuffled_by_the_loader() -> None:
    dataset = to_torch_map_style(Dataset.range(50).skip(3).map(lambda x: x * 2))
    assert len(dataset) == 47
    assert dataset[0].item() == 6
    assert dataset[-1].item() == 98
    with pytest.raises(IndexError):
        dataset[47]
    assert sorted(numbers(loader(dataset, batch_size=5, shuffle=True, num_workers=2))) == list(
        range(6, 100, 2)
    )


@needs_torch
@pytest.mark.parametrize(
    ("dataset", "named"),
    [
        (Dataset.range(5).shuffle(5), "shuffle"),
        (Dataset.range(5).filter(lambda x: x > 1).assert_cardinality(3), "filter"),
        (Dataset.from_generator(lambda: [1], output_types=np.int64).assert_cardinality(1), "generator"),
    ],
)
def test_what_has_to_be_gone_through_is_no_map_style_dataset(dataset: Dataset, named: str) -> None:
    with pytest.raises(TypeError, match=rf"{named}.* go through elements.*DataLoader\(shuffle=True\)"):
        to_torch_map_style(dataset)


@needs_torch
def test_a_length_that_is_unknown_is_told() -> None:
    with pytest.raises(TypeError, match="unknown"):
        to_torch_map_style(Dataset.range(5).filter(lambda x: x > 1))
    with pytest.raises(TypeError, match="unknown"):
        len(to_torch(Dataset.range(5).filter(lambda x: x > 1)))
    with pytest.raises(TypeError, match=r"wb\.data\.Dataset, got list"):
        to_torch([1, 2])  # type: ignore[arg-type]


@needs_torch
def test_pytorchs_datasets_are_sources() -> None:
    x, y = torch.arange(12.0).reshape(6, 2), torch.arange(6)
    dataset = from_torch(torch.utils.data.TensorDataset(x, y))
    assert [(a.tolist(), int(b)) for a, b in dataset] == list(zip(x.tolist(), range(6), strict=True))
    subset = from_torch(torch.utils.data.Subset(torch.utils.data.TensorDataset(x, y), [4, 1]))
    assert [batch[1].tolist() for batch in subset.batch(2)] == [[4, 1]]

    class Stream(torch.utils.data.IterableDataset):  # type: ignore[misc, name-defined, unused-ignore]
        def __iter__(self) -> Iterator[Any]:
            return iter(y)

        def __len__(self) -> int:
            return 6

    stream = from_torch(Stream())
    assert len(stream) == 6
    assert [int(value) for value in stream.shard(2, 1)] == [1, 3, 5]


@needs_torch
def test_there_and_back_gives_the_same_elements() -> None:
    dataset = Dataset.range(10).map(lambda x: (x, x * 2))
    assert (
        list(from_torch(to_torch(dataset))) == list(from_torch(to_torch_map_style(dataset))) == list(dataset)
    )
