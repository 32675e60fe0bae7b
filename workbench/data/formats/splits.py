"""Files that consist of splits, such as row groups: hosts share the splits, so one large file is enough for all."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from workbench.data.failing import guarded
from workbench.data.passes import Pass
from workbench.data.provenance import FILE_SHIFT
from workbench.data.sources.files import FileReader
from workbench.data.stage import Pipeline, Stage
from workbench.data.stages.ordering.select import Shard
from workbench.data.structure import Array
from workbench.data.tables import ArrayTable, Failed, Rows, Run, row_numbers
from workbench.errors import InvalidArgumentError

_File = tuple[int, str, int | Failed]


@dataclass(frozen=True, eq=False)
class SplitReader(FileReader):
    """A source that reads files split by split.

    `AutoShardPolicy.FILE` assigns the splits of all files to hosts in turn: split k to host k mod hosts.

    Attributes:
      split_names: The name for splits in texts.
      shares: How many hosts share the splits.
      share: Which host's share this source reads.
    """

    split_names: ClassVar[str] = "splits"
    shares: int = 1
    share: int = 0

    @abstractmethod
    def count_splits(self, path: str) -> int:
        """How many splits a file has; reads no elements."""

    @abstractmethod
    def read_splits(self, path: str, splits: Sequence[int]) -> Iterator[Run]:
        """The elements of some splits; their ids are their positions in the file."""

    def read(self, path: str) -> Iterator[Run]:
        """The elements of one file."""
        return self.read_splits(path, range(self.count_splits(path)))

    def open(self, current: Pass) -> Iterator[Run]:
        """Starts one pass."""
        position = 0
        for number, path, count in self._enough(self._counted(current)):
            if isinstance(count, Failed):
                yield count
                continue
            splits = range((self.share - position) % self.shares, count, self.shares)
            position += count
            if splits:
                for run in guarded(self.read_splits(path, splits)):
                    yield current.numbered(run, number << FILE_SHIFT)

    def sharded(self, shard: Stage, dataset: Pipeline) -> FileReader:
        """The reader of only the splits that `shard` keeps."""
        if not isinstance(shard, Shard):
            return super().sharded(shard, dataset)
        return replace(
            self, shares=self.shares * shard.num_shards, share=self.share + self.shares * shard.index
        )

    def _counted(self, current: Pass) -> Iterator[_File]:
        for number, path in self.numbered_files(current):
            try:
                yield number, path, self.count_splits(path)
            except Exception as error:  # one file's error says nothing about the next
                yield number, path, Failed(error)

    def _enough(self, files: Iterator[_File]) -> Iterator[_File]:
        """The files, if there is a split for each host. Otherwise, the hosts report it, as with whole files."""
        held: list[_File] = []
        count = failed = 0
        while count < self.shares and (file := next(files, None)) is not None:
            held.append(file)
            if isinstance(file[2], Failed):
                failed += 1
            else:
                count += file[2]
        if not failed and self.share < count < self.shares:
            raise InvalidArgumentError(
                f"{count} {self.split_names} of {len(held)} file(s) cannot be divided among {self.shares} hosts; write "
                f"files with at least {self.shares}, or use AutoShardPolicy.DATA or AutoShardPolicy.OFF"
            )
        return itertools.chain(held, files)


@dataclass(slots=True, eq=False)
class PositionedTable(ArrayTable):
    """Columns of rows from a file.

    Attributes:
      positions: The positions of the rows in the file.
    """

    positions: Rows

    def ids(self, rows: Rows) -> Array:
        """Numbers of the source elements behind `rows`."""
        if isinstance(self.positions, range):
            return row_numbers(rows) + np.int64(self.positions.start)
        return self.positions[row_numbers(rows)]


class Positions:
    """The positions in a file of the rows of some splits, taken a few at a time."""

    def __init__(self, splits: Sequence[range]) -> None:
        self._splits = list(reversed(splits))

    def take(self, count: int) -> Rows:
        """The positions of the next `count` rows."""
        taken: list[range] = []
        while count:
            split = self._splits.pop()
            if len(split) > count:
                self._splits.append(split[count:])
            taken.append(split[:count])
            count -= len(taken[-1])
        if len(taken) == 1:
            return taken[0]
        return np.concatenate([row_numbers(part) for part in taken]) if taken else range(0)
