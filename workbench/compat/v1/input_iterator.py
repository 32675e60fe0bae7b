"""InputIterator: an iterator over a distributed dataset that can be restarted."""

from __future__ import annotations

from typing import Any

from workbench.distribute.input.distributed_dataset import DistributedDataset


class InputIterator:
    """The result of `make_dataset_iterator` (as tf.distribute's InputIterator of TensorFlow 1.15)."""

    def __init__(self, dataset: DistributedDataset) -> None:
        """An iterator at the beginning of `dataset`."""
        self._dataset = dataset
        self._elements = iter(dataset)

    def initialize(self) -> None:
        """Restarts at the first element."""
        self._elements = iter(self._dataset)

    @property
    def initializer(self) -> None:
        """As `initialize`, which sessions ran as an operation."""
        self.initialize()

    def get_next(self) -> Any:
        """The next element, with a component per replica.

        Raises:
          OutOfRangeError: at the end; `initialize` restarts.
        """
        return self._elements.get_next()

    def __iter__(self) -> InputIterator:
        return self

    def __next__(self) -> Any:
        return next(self._elements)
