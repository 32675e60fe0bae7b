"""Sources that can be cut into splits, which the dispatcher assigns to workers while they work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from workbench.data.failing import guarded
from workbench.data.formats.splits import SplitReader
from workbench.data.passes import Pass
from workbench.data.sources.combine import Chosen, Concatenated, Zipped
from workbench.data.sources.counting import Counter, Counting
from workbench.data.sources.files import FileReader
from workbench.data.sources.memory import Slices, Whole
from workbench.data.spec import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from workbench.data.stage import Pipeline, Source
from workbench.data.tables import Run
from workbench.errors import InvalidArgumentError

ENDLESS = -1
"""The number of splits of an endless source."""
_ROWS = (Counting, Counter, Slices, Whole)
_SPLITS_WANTED = 128
_MOST_ROWS, _ENDLESS_ROWS = 4096, 1024
_FEW_FILES = 16
Ask = Callable[[int, int, int], int | None]
"""`ask(provider, visit, nth)`: the nth split of a lane in one of its visits to a source; None at the end."""


@dataclass(frozen=True)
class Cut:
    """How a source is cut.

    Attributes:
      count: Number of splits, or `ENDLESS`.
      part: The elements of a split, by its number.
    """

    count: int
    part: Callable[[int], Source]


@dataclass(frozen=True)
class _Rows(Source):
    """Some rows of a source that is a table."""

    name: ClassVar[str] = "split"
    source: Any
    rows: range

    def open(self, current: Pass) -> Iterator[Run]:
        """Starts one pass."""
        if isinstance(self.source, Whole):
            yield from self.source.open(current)
        elif self.rows:
            yield Run(self.source.table, self.rows)

    def element_spec(self) -> Any:
        """The nested spec of an element."""
        return self.source.element_spec()

    def cardinality(self) -> int:
        """Number of elements."""
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class Dealt(Source):
    """The splits of a source that one lane gets.

    Attributes:
      source: The whole source.
      cut: How it is cut.
      provider: Number of the source in the dataset.
      ask: Requests splits from the dispatcher.
      visits: A list with one number: how often it was opened, because `repeat` opens it once per repetition.
    """

    name: ClassVar[str] = "splits"
    source: Source
    cut: Cut
    provider: int
    ask: Ask
    visits: list[int]

    def open(self, current: Pass) -> Iterator[Run]:
        """Starts one pass; requests a split when the previous one is used up."""
        visit = self.visits[0]
        self.visits[0] += 1
        nth = 0
        while (split := self.ask(self.provider, visit, nth)) is not None:
            yield from guarded(self.cut.part(split).open(current))
            nth += 1

    def element_spec(self) -> Any:
        """The nested spec of an element."""
        return self.source.element_spec()

    def cardinality(self) -> int:
        """Unknown until the last split was assigned."""
        return UNKNOWN_CARDINALITY


def split_counts(dataset: Pipeline) -> list[int]:
    """How many splits each source of a dataset has.

    Raises:
      InvalidArgumentError: if a source cannot be cut.
    """
    counts: list[int] = []

    def count(cut: Cut, source: Source) -> Source:
        counts.append(cut.count)
        return source

    _rewritten(dataset, count)
    return counts


def dealt(dataset: Pipeline, ask: Ask) -> Pipeline:
    """The dataset of the splits from `ask`."""
    providers = iter(range(1 << 30))
    return _rewritten(dataset, lambda cut, source: Dealt(source, cut, next(providers), ask, [0]))


def _rewritten(dataset: Pipeline, change: Callable[[Cut, Source], Source]) -> Pipeline:
    """The dataset with each source that can be divided replaced by `change(cut, source)`."""
    source: Any = dataset.source
    if isinstance(source, Concatenated) or (isinstance(source, Chosen) and _gives_all(source)):
        source = source.with_inputs(tuple(_rewritten(inner, change) for inner in source.inputs()))
    elif isinstance(source, FileReader) and not isinstance(source.files, tuple):
        source = replace(source, files=_rewritten(source.files, change))
    else:
        source = change(_cut(source), source)
    return dataset.with_source(source, dataset.stages)


def _gives_all(chosen: Chosen) -> bool:
    """Whether choices last until all datasets have ended, for any part of them in a lane."""
    return not chosen.stop_on_empty and chosen.choice.cardinality() == INFINITE_CARDINALITY


def _cut(source: Any) -> Cut:
    if isinstance(source, Counter):
        return Cut(ENDLESS, lambda k: _Rows(source, range(k * _ENDLESS_ROWS, (k + 1) * _ENDLESS_ROWS)))
    if isinstance(source, _ROWS):
        return _rows_cut(source.cardinality(), lambda rows: _Rows(source, rows))
    if isinstance(source, Zipped) and all(
        isinstance(inner.source, (Counting, Slices)) and not inner.stages for inner in source.inputs()
    ):
        return _rows_cut(source.cardinality(), lambda rows: _zipped_rows(source, rows))
    if isinstance(source, SplitReader) and len(source.files) <= _FEW_FILES:  # type: ignore[arg-type]
        paths: Any = source.files
        count = sum(source.count_splits(path) for path in paths)
        return Cut(count, lambda k: replace(source, shares=count, share=k))
    if isinstance(source, FileReader):
        files: Any = source.files
        return Cut(len(files), lambda k: replace(source, files=files[k : k + 1]))
    raise InvalidArgumentError(
        f"'distributed_epoch' deals parts of the source to workers, and a source of the kind {source.text!r} cannot be "
        "divided; start with range, from_tensor_slices, list_files or a reader of files, or choose 'parallel_epochs', "
        "with which every worker reads everything"
    )


def _rows_cut(rows: int, part: Callable[[range], Source]) -> Cut:
    size = max(1, min(_MOST_ROWS, rows // _SPLITS_WANTED))
    return Cut(-(-rows // size), lambda k: part(range(rows)[k * size : (k + 1) * size]))


def _zipped_rows(source: Zipped, rows: range) -> Source:
    parts = tuple(inner.with_source(_Rows(inner.source, rows), ()) for inner in source.inputs())
    return replace(source, datasets=parts, joined=None)
