"""Rows of batches as elements again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from workbench import tree
from workbench.data.blocks.table import is_block
from workbench.data.passes import Pass
from workbench.data.spec import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, TensorSpec, spec_unread
from workbench.data.stage import Opener, Pipeline, Stage
from workbench.data.tables import ArrayTable, Failed, ListTable, Run
from workbench.errors import InvalidArgumentError


@dataclass(frozen=True)
class Unbatch(Stage):
    """Splits each element along its first dimension; batches without rows yield nothing."""

    name: ClassVar[str] = "unbatch"

    @staticmethod
    def check(element_spec: Any) -> None:
        """Rejects scalars, and components that are known to have different numbers of rows.

        Raises:
          InvalidArgumentError: for these.
        """
        sizes = {
            spec.shape[0]
            for spec in tree.flatten(element_spec)[0]
            if isinstance(spec, TensorSpec) and spec.shape
        }
        if len(sizes - {None}) > 1:
            raise InvalidArgumentError(
                f"unbatch cuts along the first dimension, but the components of {element_spec} differ in it"
            )
        check_rows(element_spec, "unbatch")

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over the runs of `upstream()`."""
        for run in upstream():
            structure = run.table.structure
            for row in run.indices():
                segment = run.segment(row)
                if isinstance(segment, Failed) or (isinstance(segment, Run) and not is_block(segment)):
                    yield segment
                elif len(segment):
                    leaves = segment.gather()
                    if not current.provenance:
                        yield Run(ArrayTable(leaves, structure), range(len(segment)))
                        continue
                    rows = [[leaf[index] for leaf in leaves] for index in range(len(segment))]
                    ids = segment.ids()
                    known = (
                        [ids[index : index + 1] for index in range(len(rows))]
                        if len(ids) == len(rows)
                        else None
                    )
                    yield Run(ListTable(rows, structure, known), range(len(rows)))

    def element_spec(self, upstream: Pipeline) -> Any:
        """The nested spec of an element after this stage."""
        return tree.map(lambda spec: spec.unbatched(), upstream.element_spec)

    def cardinality(self, upstream: Pipeline) -> int:
        """Number of elements after this stage."""
        known = upstream.cardinality()
        if known in (0, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY):
            return known
        rows = _rows(upstream)
        return UNKNOWN_CARDINALITY if rows is None else known * rows


def _rows(upstream: Pipeline) -> int | None:
    """How many rows each element has; None if that may differ. Reads no element."""
    first = next(iter(tree.flatten(spec_unread(upstream))[0]), None)
    if isinstance(first, TensorSpec):
        return first.shape[0] if first.shape else None
    for stage in reversed(upstream.stages):
        if getattr(stage, "drop_remainder", False):
            return getattr(stage, "batch_size", None)
        if not stage.keeps_batches:
            break
    return None


def check_rows(element_spec: Any, stage: str) -> None:
    """Rejects elements without rows.

    Raises:
      InvalidArgumentError: if components are scalars, or there are none.
    """
    leaves = tree.flatten(element_spec)[0]
    if not leaves or any(isinstance(spec, TensorSpec) and spec.shape == () for spec in leaves):
        raise InvalidArgumentError(
            f"{stage} cuts along the first dimension, but elements are {element_spec}; batch first"
        )
