"""Stores a pass while it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any

from workbench.data.passes import Pass
from workbench.data.provenance import OffsetTable
from workbench.data.spec import UNKNOWN_CARDINALITY, UnknownSpec
from workbench.data.stage import Opener
from workbench.data.stored.writing import Writing
from workbench.data.structure import Structure
from workbench.data.tables import (
    ArrayTable,
    Failed,
    Leaves,
    RangeTable,
    Run,
    as_runs,
    attempts,
    single,
    spec_shown_by,
)
from workbench.errors import FailedPreconditionError


def written(
    begin: Callable[[Any], Writing],
    element_spec: Any,
    upstream: Opener,
    current: Pass,
    *,
    shard_of: Callable[[Leaves, Structure], int] | None = None,
    expected: int = UNKNOWN_CARDINALITY,
) -> Iterator[Run]:
    """The elements of a pass; they count as stored once all of them were made and none has failed.

    Args:
      begin: Starts storing elements with a nested spec.
      element_spec: The nested spec of the elements; if unknown, the first element shows it.
      upstream: Starts the upstream, which yields the elements.
      current: The pass.
      shard_of: Returns the number of the file that an element goes to; None for one file.
      expected: How many elements make the pass complete; if unknown, its end does.

    Raises:
      FailedPreconditionError: if there are more than expected.
    """
    if isinstance(element_spec, UnknownSpec):
        element_spec, upstream = _learnt(upstream, current)
        if isinstance(element_spec, UnknownSpec):
            current.meter.note("not stored: there is no element, or the first could not be made")
            yield from upstream()
            return
    writing = begin(element_spec)
    ended = counts = failed = False
    count = 0
    try:
        for run in upstream():
            if not isinstance(run, Failed) and shard_of is None and _is_at_rest(run):
                if ended:
                    raise _too_many(writing, counts, count + len(run), expected)
                writing.add_run(run)
                count += len(run)
                if count == expected and not failed:
                    ended, counts = True, writing.commit(replace=False)
                yield run
                continue
            for item in attempts(iter((run,)), current.provenance):
                if isinstance(item, Failed):
                    failed = True
                    yield item
                    continue
                if ended:
                    raise _too_many(writing, counts, count + 1, expected)
                leaves, structure, ids = item
                writing.add(leaves, structure, 0 if shard_of is None else shard_of(leaves, structure))
                count += 1
                # Before yielding the last element, because the reader may not ask for the end.
                if count == expected and not failed:
                    ended, counts = True, writing.commit(replace=False)
                yield single(leaves, structure, ids)
        if not failed and not ended:
            ended, counts = True, writing.commit(replace=False)
    finally:
        if not ended:
            writing.discard()


def _learnt(upstream: Opener, current: Pass) -> tuple[Any, Opener]:
    """The element spec of the first element, and an opener that yields all elements."""
    attempted = attempts(upstream(), current.provenance)
    first = list(islice(attempted, 1))
    runs = as_runs(chain(first, attempted))
    if not first or isinstance(first[0], Failed):  # a pass in which an element fails is not stored
        return UnknownSpec(), lambda: runs
    return spec_shown_by(first[0]), lambda: runs


def _too_many(writing: Writing, counts: bool, count: int, expected: int) -> FailedPreconditionError:
    if counts:
        writing.retract()  # otherwise the next pass would silently read too few
    return FailedPreconditionError(
        f"the dataset states {expected:,} elements but has at least {count:,}, so {writing.path!r} does not store "
        f"it; let the dataset state its number, as with assert_cardinality(n)"
    )


def _is_at_rest(run: Run) -> bool:
    """Whether the elements exist already, so that reading them twice neither computes anything nor can fail."""
    table = run.table
    while isinstance(table, OffsetTable):
        table = table.table
    return isinstance(table, ArrayTable | RangeTable)
