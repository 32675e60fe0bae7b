"""Lists of files, and what all readers of files have in common."""

from __future__ import annotations

import glob
import os
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from workbench.backends.numpy import STRING
from workbench.data.failing import guarded, raised
from workbench.data.passes import Pass
from workbench.data.provenance import FILE_SHIFT
from workbench.data.sources.memory import Slices
from workbench.data.sources.remote import remote_files
from workbench.data.sources.urls import Url, file_name
from workbench.data.spec import (
    UNKNOWN_CARDINALITY,
    TensorSpec,
    UnknownSpec,
    is_dataset,
    spec_unread,
)
from workbench.data.stage import Pipeline, Source, Stage
from workbench.data.structure import convert
from workbench.data.tables import Run, items
from workbench.errors import InvalidArgumentError


def matching_files(patterns: Any) -> list[str]:
    """Names of files that match one or several patterns, sorted over all patterns.

    Raises:
      InvalidArgumentError: if nothing matches.
      UnavailableError: if a URL's server cannot be reached.
    """
    texts = [file_name(pattern) for pattern in np.ravel(convert(patterns)).tolist()]
    names = sorted({name for text in texts for name in _matching(text)})
    if not names:
        raise InvalidArgumentError(
            f"list_files: no file matches {texts}; check the pattern and the current folder"
        )
    return names


def _matching(pattern: str) -> list[str]:
    if isinstance(pattern, Url):
        return remote_files(pattern)
    return [name for name in glob.glob(pattern.replace("[^", "[!")) if os.path.isfile(name)]


@dataclass(frozen=True)
class FileReader(Source):
    """A source that reads elements from files, one file after the other.

    Attributes:
      reads: The name for the files in the reasons for sharding.
      files: Names, or a dataset of names.
      compression: "", "GZIP" or "ZLIB".
      block_bytes: Bytes read at a time.
    """

    reads: ClassVar[str] = "files"
    files: tuple[str, ...] | Pipeline
    compression: str = ""
    block_bytes: int = 0

    @abstractmethod
    def read(self, path: str) -> Iterator[Run]:
        """The elements of one file."""

    def open(self, current: Pass) -> Iterator[Run]:
        """Starts one pass."""
        for number, path in self.numbered_files(current):
            row = 0
            for run in guarded(self.read(path)):  # one file's error says nothing about the next
                yield current.numbered(run, (number << FILE_SHIFT) + row)
                row += len(run)

    def numbered_files(self, current: Pass) -> Iterator[tuple[int, str]]:
        """The files in reading order, with their numbers in the undivided list."""
        if isinstance(self.files, tuple):
            yield from enumerate(self.files)
            return
        for position, ((name,), _, ids) in enumerate(
            items(raised(self.files.open(current.inside(0, 1))), current.provenance)
        ):
            yield int(ids[0]) if ids is not None and len(ids) else position, file_name(name)

    def first_file(self) -> str:
        """The file that defines the element spec, for formats with a schema.

        Raises:
          InvalidArgumentError: if there is none.
        """
        if not isinstance(self.files, tuple):
            return file_name(self.files.first())
        if not self.files:
            raise InvalidArgumentError(
                f"{self.name}: the list of files is empty, so their columns are unknown"
            )
        return self.files[0]

    def element_spec(self) -> Any:
        """The nested spec of an element."""
        return TensorSpec((), STRING)

    def cardinality(self) -> int:
        """Number of elements, `INFINITE_CARDINALITY` or `UNKNOWN_CARDINALITY`."""
        return UNKNOWN_CARDINALITY

    def sharded(self, shard: Stage, dataset: Pipeline) -> FileReader:
        """The reader of only the files that `shard` keeps; `dataset` is the one that reads them."""
        if isinstance(self.files, tuple):
            names = dataset.with_source(self._names, (shard,))
        else:
            names = self.files.with_source(self.files.source, (*self.files.stages, shard))
        return replace(self, files=names)

    @cached_property
    def _names(self) -> Slices:
        """The names of the files as a source. Created once, even if many hosts share the files."""
        return Slices.of(["".join(name) for name in self.files])  # type: ignore[union-attr]  # a tuple

    def of_one(self, name: Any) -> FileReader:
        """The reader of a single file."""
        return replace(self, files=(file_name(name),))


def file_names(filenames: Any) -> tuple[str, ...] | Pipeline:
    """Checks what readers take: a name, a list of names, or a dataset of names.

    Raises:
      TypeError: if it is something else.
      InvalidArgumentError: if a URL holds a password or key.
    """
    if is_dataset(filenames):
        spec = spec_unread(filenames)
        if not isinstance(spec, UnknownSpec) and spec != TensorSpec((), STRING):
            raise TypeError(f"filenames: the dataset must hold scalar text, it holds {spec}")
        return filenames  # type: ignore[no-any-return]
    if isinstance(filenames, os.PathLike):
        filenames = os.fspath(filenames)
    if isinstance(filenames, tuple | list):
        filenames = [os.fspath(name) if isinstance(name, os.PathLike) else name for name in filenames]
    array = np.asarray(convert(filenames), object)
    names = array.reshape(-1).tolist()
    if not all(isinstance(name, bytes) for name in names):
        raise TypeError(
            f"filenames must be text, a list of texts or a dataset of texts, got {filenames!r:.80}"
        )
    return tuple(file_name(name) for name in names)
