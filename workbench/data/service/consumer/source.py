"""The source whose elements come from a data service."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from workbench import forks, tree
from workbench.data.passes import Pass
from workbench.data.service.consumer.reader import Reader
from workbench.data.service.consumer.reading import Reading
from workbench.data.spec import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from workbench.data.stage import Source
from workbench.data.structure import LEAF, Structure
from workbench.data.tables import Run
from workbench.errors import InvalidArgumentError


class Iterations:
    """Counts the iterations of a dataset, including those of every dataset made from it."""

    def __init__(self, count: int = 0) -> None:
        """Starts with `count`."""
        self._count = count
        self._lock = forks.lock(threading.Lock())

    def next(self) -> int:
        """The number of the next iteration."""
        with self._lock:
            self._count += 1
            return self._count - 1

    def __reduce__(self) -> tuple[Any, ...]:
        return Iterations, (self._count,)


@dataclass(frozen=True, eq=False)
class ServiceSource(Source):
    """Elements from data workers; each opening starts a new job, or joins one that others have started.

    Attributes:
      reading: What to read, and where.
      spec: The nested spec of an element.
      iterations: Numbers the openings.
      known: The number of elements, if their dataset knows it.
    """

    name: ClassVar[str] = "data service"
    reading: Reading
    spec: Any
    iterations: Iterations = field(default_factory=Iterations, compare=False)
    known: int = UNKNOWN_CARDINALITY

    @property
    def is_shared(self) -> bool:
        """See `Source.is_shared`: consumers of a job with a name share it."""
        return bool(self.reading.job_name)

    def open(self, current: Pass) -> Iterator[Run]:
        """Starts one pass."""
        iteration = self.iterations.next()
        if self.reading.trainer and iteration:
            raise InvalidArgumentError(
                "a dataset with cross_trainer_cache has no end, and is iterated over once; this is iteration "
                f"{iteration + 1}. Go on with the first iterator, or make another dataset: distribute(...)"
            )
        return Reader(self.reading, iteration, _structure_of(self.spec)).runs()

    def element_spec(self) -> Any:
        """The nested spec of an element."""
        return self.spec

    def cardinality(self) -> int:
        """Unknown, because workers may join and leave, unless the dataset is infinite or empty."""
        endless = self.reading.num_consumers or self.reading.trainer
        return INFINITE_CARDINALITY if endless else self.known


def _structure_of(element_spec: Any) -> Structure:
    """The structure of elements with this spec."""
    _, spec = tree.flatten_records(element_spec)
    return LEAF if spec == LEAF.spec else Structure(spec)
