"""Arguments of steps that iterators yield again, because they went back to a checkpoint after losing all replicas.

A step that takes such an argument would use it twice. This does not depend on which call noticed the loss: the program
may have taken its batch before.
"""

from __future__ import annotations

from typing import Any, Final

from workbench.data.iterator import DatasetIterator
from workbench.data.stored.position import Place
from workbench.distribute.input.chunk import Chunk
from workbench.distribute.input.distributed_dataset import DistributedIterator
from workbench.distribute.variables.variable import Variable
from workbench.errors import ReplicaLost, StaleGeneration, WorkbenchError
from workbench.runtime.driver.handle import Handle
from workbench.runtime.restorer import GoneBack

_LOST: Final = "all replicas were lost, and training went back to a checkpoint"
_NO_ELEMENTS: Final = (type(None), bool, int, float, complex, str)


def gone_back(iterator: DatasetIterator | DistributedIterator, before: Place) -> GoneBack:
    """An iterator that has gone back from the place `before`."""
    if isinstance(iterator, DatasetIterator):
        return _InNotebook(iterator, before)
    return _OnReplicas(iterator, before)


class _OnReplicas:
    """An iterator over a distributed dataset. Its batches know their iterator."""

    def __init__(self, iterator: DistributedIterator, before: Place) -> None:
        self._iterator = iterator
        self._before = before
        self._refused: set[int] = set()

    @property
    def is_behind(self) -> bool:
        return self._iterator.place < self._before

    def refusal(self, argument: Any) -> WorkbenchError | None:
        handle = _handle_of(argument)
        if handle is None or not isinstance(chunk := handle.step.origin, Chunk):
            return None
        if chunk.request.iterator != self._before.given_by:
            return None
        number = chunk.number_of(handle)
        if Place(chunk.request.epoch, number) < self._iterator.place:
            return None
        told = (
            f"{_LOST} since this step's batch was taken: the iterator gives it, element {number}, again. The step was "
            f"not run: take the next batch of the iterator"
        )
        if number in self._refused:  # of another class, or a loop that tries a lost step again would not end
            return StaleGeneration(told)
        self._refused.add(number)
        return ReplicaLost(told)


class _InNotebook:
    """An iterator over a dataset. Its elements are plain arrays, so any array that a step takes may be one of them."""

    def __init__(self, iterator: DatasetIterator, before: Place) -> None:
        self._iterator = iterator
        self._back_at = iterator.place
        self._told = self._back_at == before

    @property
    def is_behind(self) -> bool:
        return not self._told and self._iterator.place == self._back_at

    def refusal(self, argument: Any) -> WorkbenchError | None:
        if self._told or not _is_from_notebook(argument):
            return None
        self._told = True  # the array may not be the element
        return ReplicaLost(
            f"{_LOST}, and with it went {self._iterator!r}, which was not asked for an element since: this step may "
            f"take one that comes again. The step was not run: take the next element of the iterator. Arguments that "
            f"do not come from it can be passed again"
        )


def _handle_of(argument: Any) -> Handle | None:
    handle = getattr(argument, "handle", argument)
    return handle if type(handle) is Handle else None


def _is_from_notebook(argument: Any) -> bool:
    """Whether an argument comes from the notebook, possibly from an element: not a variable or a step's result."""
    if isinstance(argument, Variable) or type(argument) in _NO_ELEMENTS:
        return False
    handle = _handle_of(argument)
    return handle is None or not (handle.step.origin is None or isinstance(handle.step.origin, Chunk))
