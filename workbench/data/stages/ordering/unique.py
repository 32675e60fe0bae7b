"""First occurrences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from workbench import tree
from workbench.backends.numpy import STRING
from workbench.data.passes import Pass
from workbench.data.spec import UNKNOWN_CARDINALITY, TensorSpec
from workbench.data.stage import Opener, Pipeline, Stage
from workbench.data.tables import Run
from workbench.errors import InvalidArgumentError


@dataclass(frozen=True)
class Unique(Stage):
    """Keeps the first occurrence of each value."""

    name: ClassVar[str] = "unique"

    @staticmethod
    def check(element_spec: Any) -> None:
        """Rejects elements that cannot be compared reliably.

        Raises:
          InvalidArgumentError: for several components.
          TypeError: for dtypes other than int32, int64 and text.
        """
        components = tree.flatten(element_spec)[0]
        if len(components) != 1 or not isinstance(components[0], TensorSpec):
            raise InvalidArgumentError(
                f"unique needs elements of one component, got {element_spec}; map to the one to compare"
            )
        if components[0].dtype not in (np.dtype(np.int32), np.dtype(np.int64), STRING):
            raise TypeError(
                f"unique compares int32, int64 and text, got {components[0].dtype_name}; convert with map"
            )

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over the runs of `upstream()`."""
        seen: set[Any] = set()
        for run in upstream():
            for row in run.indices():
                value = run.table.row(row)[0]
                key = value.tobytes() if isinstance(value, np.ndarray) else value
                if key not in seen:
                    seen.add(key)
                    yield Run(run.table, range(row, row + 1))

    def cardinality(self, upstream: Pipeline) -> int:
        """Number of elements after this stage."""
        return UNKNOWN_CARDINALITY
