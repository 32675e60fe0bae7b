"""Elements with their number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from workbench.data.passes import Pass
from workbench.data.spec import TensorSpec
from workbench.data.stage import Opener, Pipeline, Stage
from workbench.data.structure import Structure, flatten
from workbench.data.tables import Failed, Run, attempts, single


@dataclass(frozen=True)
class Enumerate(Stage):
    """Pairs `(number, element)`, with int64 numbers from `start`; failed elements are counted, too."""

    name: ClassVar[str] = "enumerate"
    sees_failures: ClassVar[bool] = True
    start: int = 0

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over the runs of `upstream()`."""
        inner: Structure | None = None
        outer: Structure | None = None
        for number, item in enumerate(attempts(upstream(), current.provenance), self.start):
            if isinstance(item, Failed):
                yield item
                continue
            leaves, structure, ids = item
            if outer is None or structure is not inner:
                inner, outer = structure, flatten((0, structure.pack(leaves)))[1]
            yield single([np.int64(number), *leaves], outer, ids)

    def element_spec(self, upstream: Pipeline) -> Any:
        """The nested spec of an element after this stage."""
        return TensorSpec((), np.int64), upstream.element_spec
