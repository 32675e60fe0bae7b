"""A pass that is stored while it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from workbench.data.passes import Pass
from workbench.data.provenance import OffsetTable
from workbench.data.spec import UNKNOWN_CARDINALITY
from workbench.data.stage import Opener
from workbench.data.stored.writing import Writing
from workbench.data.structure import Structure
from workbench.data.tables import ArrayTable, Failed, Leaves, RangeTable, Run, attempts, single
from workbench.errors import FailedPreconditionError


def written(
    writing: Writing,
    upstream: Opener,
    current: Pass,
    *,
    shard_of: Callable[[Leaves, Structure], int] | None = None,
    expected: int = UNKNOWN_CARDINALITY,
) -> Iterator[Run]:
    """The elements of a pass, which count as stored once all of them are there and none has failed.

    Args:
      writing: Stores them.
      upstream: Starts what gives them.
      current: The pass.
      shard_of: Gives the number of the file that an element goes to; None for one file.
      expected: How many elements make the pass complete; if unknown, its end does.

    Raises:
      FailedPreconditionError: if there are more than expected.
    """
    complete = failed = False
    count = 0
    try:
        for run in upstream():
            if not isinstance(run, Failed) and shard_of is None and _is_at_rest(run):
                _check_incomplete(complete, writing, count + len(run), expected)
                writing.add_run(run)
                count += len(run)
                if count == expected and not failed:
                    complete = _committed(writing)
                yield run
                continue
            for item in attempts(iter((run,)), current.provenance):
                if isinstance(item, Failed):
                    failed = True
                    yield item
                    continue
                _check_incomplete(complete, writing, count + 1, expected)
                leaves, structure, ids = item
                writing.add(leaves, structure, 0 if shard_of is None else shard_of(leaves, structure))
                count += 1
                if count == expected and not failed:  # before it is given: nobody may ask for the end
                    complete = _committed(writing)
                yield single(leaves, structure, ids)
        if not failed and not complete:
            complete = _committed(writing)
    finally:
        if not complete:
            writing.discard()


def _check_incomplete(complete: bool, writing: Writing, count: int, expected: int) -> None:
    if complete:
        writing.retract()  # else the next pass would read too few, and nobody would know
        raise FailedPreconditionError(
            f"the dataset states {expected:,} elements but has at least {count:,}, so {writing.path!r} does not store "
            f"it; let the dataset state its number, as with assert_cardinality(n)"
        )


def _committed(writing: Writing) -> bool:
    writing.commit(replace=False)
    return True


def _is_at_rest(run: Run) -> bool:
    """Whether the elements exist, so that reading them twice computes nothing twice and cannot fail."""
    table = run.table
    while isinstance(table, OffsetTable):
        table = table.table
    return isinstance(table, ArrayTable | RangeTable)
