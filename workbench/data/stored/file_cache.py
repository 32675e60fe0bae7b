"""Keeps the elements of the first complete pass in files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

from workbench.data.passes import Pass
from workbench.data.spec import spec_if_learnt
from workbench.data.stage import Opener, Pipeline, Stage
from workbench.data.stored.manifest import read_manifest
from workbench.data.stored.reading import Stored, has_classes, with_spec
from workbench.data.stored.writing import Writing, is_being_written
from workbench.data.stored.written import written
from workbench.data.tables import Run
from workbench.errors import InvalidArgumentError, NotFoundError
from workbench.io.storage import absolute


@dataclass(frozen=True, eq=False)
class FileCache(Stage):
    """Stores the elements of the first complete pass, and reads them from then on.

    A pass is complete with its last element if the number of elements is known beforehand, and otherwise with its end.
    A pass that stops early, or in which an element failed, stores nothing. While one pass stores its elements, others
    make their own.

    Attributes:
      path: The folder. It stays, and is used even if the pipeline has changed.
      pipeline: The stages before this one; known once a pass begins.
    """

    name: ClassVar[str] = "cache"
    sees_failures: ClassVar[bool] = True
    keeps_elements: ClassVar[bool] = True
    keeps_batches: ClassVar[bool] = True
    path: str
    pipeline: Pipeline | None = field(default=None, compare=False)

    @staticmethod
    def of(filename: str | os.PathLike[str]) -> FileCache:
        """A cache in the folder `filename.cache`."""
        return FileCache(f"{absolute(filename)}.cache")

    def after(self, pipeline: Pipeline) -> FileCache:
        """The stage for a pass over `pipeline`."""
        return replace(self, pipeline=pipeline)

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over what `upstream()` starts."""
        if self.pipeline is None:
            raise InvalidArgumentError("cache: use it with Dataset.cache")
        try:
            stored = Stored.of(self.path, read_manifest(self.path))
        except NotFoundError:
            if not current.keeps:
                current.meter.note("not filled while it is measured")
            if not current.keeps or is_being_written(self.path):
                yield from upstream()
                return
            yield from written(
                lambda spec: Writing(self.path, spec, ""),
                spec_if_learnt(self.pipeline),
                upstream,
                current,
                expected=self.pipeline.cardinality(),
            )
            return
        if has_classes(stored.spec):
            with contextlib.suppress(InvalidArgumentError):  # the pipeline has changed
                stored = with_spec(stored, spec_if_learnt(self.pipeline))
        yield from stored.open(current)

    def describe(self) -> str:
        """The stage as a short text."""
        return "cache(file)"

    def cardinality(self, upstream: Pipeline) -> int:
        """Number of elements after this stage; once the files are complete, the number in them.

        Raises:
          DataLossError: if the manifest of the files is damaged.
        """
        with contextlib.suppress(NotFoundError):
            return Stored.of(self.path, read_manifest(self.path)).cardinality()
        return upstream.cardinality()
