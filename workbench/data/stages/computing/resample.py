"""Resampling: drops elements at random so that classes have the requested proportions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from workbench.data.passes import Pass
from workbench.data.spec import UNKNOWN_CARDINALITY
from workbench.data.stage import Opener, Pipeline, Stage
from workbench.data.stages.computing import probe
from workbench.data.stages.computing.functions import Map, note_function, note_place
from workbench.data.structure import Array, flatten_result
from workbench.data.tables import Failed, Run, items, single
from workbench.errors import InvalidArgumentError


@dataclass(frozen=True, eq=False)
class RejectionResample(Stage):
    """Pairs of class and element, with each class as often as `target` says.

    An element of class c is kept with probability (target_c / share_c) / max(target / share), the highest that gives
    the requested proportions. Unless the shares are given, they are those of the elements so far. All elements of a
    requested class with a given share of 0 are kept; it does not affect the others.

    Attributes:
      fn: Returns an element's class, a whole number; a tuple element is unpacked over its arguments.
      target: The requested share of each class.
      initial: The share that each class has; None to count.
      seed: The seed of the choices.
    """

    name: ClassVar[str] = "rejection_resample"
    calls_functions: ClassVar[bool] = True
    fn: Callable[..., Any]
    target: tuple[float, ...]
    initial: tuple[float, ...] | None
    seed: int

    @staticmethod
    def of(fn: Callable[..., Any], target: Any, initial: Any, seed: int) -> RejectionResample:
        """Checks the distributions.

        Args:
          fn: Returns an element's class.
          target: The requested share of each class.
          initial: The share that each class has; None to estimate it.
          seed: Seed of the choices.

        Raises:
          InvalidArgumentError: if they are not distributions over the same classes.
        """
        wanted = _shares("target_dist", target)
        known = None if initial is None else _shares("initial_dist", initial)
        if known is not None and len(known) != len(wanted):
            raise InvalidArgumentError(
                f"rejection_resample: target_dist has {len(wanted)} classes, initial_dist has {len(known)}"
            )
        return RejectionResample(fn, wanted, known, seed)

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over the runs of `upstream()`."""
        generator = current.generator(self.seed, reshuffle=True)
        target = np.array(self.target)
        counts = np.zeros(len(target))
        kept = None if self.initial is None else self._kept()
        for index, (leaves, structure, ids) in enumerate(items(upstream(), current.provenance)):
            element = structure.pack(leaves)
            failed = None
            try:
                number = self._class_of(element)
            except Exception as error:
                note_place(error, self.text, index)
                failed = Failed(error)
            if failed is not None:
                yield failed
                continue
            if kept is None:
                counts[number] += 1
            chance = (_acceptance(target, counts) if kept is None else kept)[number]
            if generator.random() < chance:
                yield single(*flatten_result((number, element)), ids)

    def element_spec(self, upstream: Pipeline) -> Any:
        """The nested spec of an element after this stage."""
        return Map(self.fn).element_spec(upstream), upstream.element_spec

    def cardinality(self, upstream: Pipeline) -> int:
        """Number of elements after this stage."""
        keeps_all = self.initial is not None and bool((self._kept() == 1).all())
        return upstream.cardinality() if keeps_all else UNKNOWN_CARDINALITY

    def _kept(self) -> Array:
        return _acceptance(np.array(self.target), np.array(self.initial))

    def _class_of(self, element: Any) -> Any:
        returned = probe.call(self.fn, element)
        try:
            return self._checked(returned)
        except Exception as error:
            note_function(error, self.fn)
            raise

    def _checked(self, returned: Any) -> Any:
        leaves, _ = flatten_result(returned)
        if len(leaves) != 1 or np.shape(leaves[0]) != () or np.asarray(leaves[0]).dtype.kind not in "iu":
            raise InvalidArgumentError(f"class_func must return a whole number, got {leaves!r:.80}")
        if not 0 <= leaves[0] < len(self.target):
            raise InvalidArgumentError(
                f"class_func returned {leaves[0]}, but target_dist has classes 0 to {len(self.target) - 1}"
            )
        return leaves[0]


def _shares(what: str, given: Any) -> tuple[float, ...]:
    shares = np.asarray(given, np.float64)
    if shares.ndim != 1 or not len(shares) or not (shares >= 0).all() or not 0 < shares.sum() < np.inf:
        raise InvalidArgumentError(
            f"rejection_resample: {what} must be one share of at least 0 per class, with a positive sum, got {given!r}"
        )
    values: Sequence[float] = (shares / shares.sum()).tolist()
    return tuple(values)


def _acceptance(target: Array, shares: Array) -> Array:
    """The probability of keeping an element, for each class."""
    ratio = np.divide(target, shares, out=np.zeros_like(target), where=shares > 0)
    most = ratio.max()
    result: Array = np.where(shares > 0, ratio / most if most else ratio, target > 0)
    return result
