"""Datasets as those of PyTorch, for its `DataLoader`."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from workbench.data.dataset import Dataset
from workbench.data.exports.random_access import from_position, obstacle
from workbench.data.iterator import DatasetIterator
from workbench.data.passes import Pass
from workbench.data.sharding.autoshard import auto_shard


def to_torch(dataset: Dataset) -> Any:
    """The elements as a `torch.utils.data.IterableDataset` of tensors; text stays bytes.

    The worker processes of a `DataLoader` are treated like hosts: each reads its part, according to the
    `AutoShardPolicy` of the dataset's options, and no element occurs twice; even with OFF, each keeps every n-th
    element. A shuffle has another order in each epoch; `torch.manual_seed` makes it repeatable. Batch in the dataset,
    and pass `batch_size=None` to the loader: this is faster than batching in the loader.

    Raises:
      BackendUnavailable: without PyTorch.
      TypeError: if it is not a dataset.
    """
    from workbench.backends.torch_datasets import IterableStyle

    return IterableStyle(_Passes(_checked(dataset, "to_torch")))


def to_torch_map_style(dataset: Dataset) -> Any:
    """The elements as a map-style `torch.utils.data.Dataset` of tensors, which a `DataLoader` may shuffle.

    Functions of `map` are called when an element is requested.

    Raises:
      BackendUnavailable: without PyTorch.
      TypeError: if it is not a dataset, its number of elements is unknown, or a stage must read earlier elements to
        reach one, as shuffle and filter do.
    """
    from workbench.backends.torch_datasets import MapStyle

    return MapStyle(_Rows(_checked(dataset, "to_torch_map_style"), len(dataset)))


def _checked(dataset: Any, function: str) -> Dataset:
    if not isinstance(dataset, Dataset):
        raise TypeError(f"{function} takes a wb.data.Dataset, got {type(dataset).__name__}")
    return dataset


@dataclass(frozen=True, slots=True)
class _Passes:
    dataset: Dataset
    _parts: dict[tuple[int, int], Dataset] = field(default_factory=dict, compare=False, repr=False)
    """The parts that were read in this process, so that a part's next pass finds its caches."""

    def __len__(self) -> int:
        return len(self.dataset)

    def whole(self) -> Iterator[Any]:
        """Starts the next pass."""
        return iter(self.dataset)

    def part(self, index: int, count: int, seed: int) -> Iterator[Any]:
        """Starts a pass over part `index` of `count`; all parts with the same `seed` share one order."""
        mine = self._parts.get((index, count))
        if mine is None:
            mine = auto_shard(self.dataset, count, index).dataset
            if (mine.source, mine.stages) == (self.dataset.source, self.dataset.stages):
                mine = mine.shard(count, index)
            self._parts[index, count] = mine
        return DatasetIterator(mine, Pass(Dataset, seed))


@dataclass(frozen=True, slots=True)
class _Rows:
    dataset: Dataset
    count: int

    def __post_init__(self) -> None:
        if found := obstacle(self.dataset):
            raise TypeError(
                f"to_torch_map_style: {found} has to go through elements to reach one; use to_torch(dataset), or leave "
                "shuffling to DataLoader(shuffle=True)"
            )

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        position = operator.index(index)
        position += self.count if position < 0 else 0
        if not 0 <= position < self.count:
            raise IndexError(f"element {index} of {self.count}")  # IndexError ends a loop over positions
        return from_position(self.dataset, position).first()
