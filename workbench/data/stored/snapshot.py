"""Stores a pass while it runs; later passes read it, also in other processes with the same pipeline."""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from workbench.arguments import function
from workbench.data.passes import Pass
from workbench.data.spec import UNKNOWN_CARDINALITY, spec_if_learnt
from workbench.data.stage import Opener, Pipeline, Stage
from workbench.data.stored.blocks import check_stored_compression
from workbench.data.stored.fingerprint import fingerprint
from workbench.data.stored.manifest import read_manifest
from workbench.data.stored.reading import Stored, has_classes, with_spec
from workbench.data.stored.saving import ShardFunction, read_by, shard_of
from workbench.data.stored.writing import Writing, is_being_written
from workbench.data.stored.written import written
from workbench.data.tables import Run
from workbench.errors import InvalidArgumentError, NotFoundError
from workbench.io.storage import absolute

_NAME = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_.-]*")


@dataclass(slots=True)
class _Known:
    """The fingerprint that a pipeline had at its first pass in this process; it is not pickled.

    A function may change what it refers to, such as a list that it appends to; the pipeline still counts as the same.
    """

    source: Any = None
    stages: tuple[Any, ...] = ()
    text: str = ""

    def __reduce__(self) -> tuple[type[_Known], tuple[()]]:
        return _Known, ()

    def of(self, pipeline: Pipeline) -> str:
        """The fingerprint of `pipeline`."""
        same = len(self.stages) == len(pipeline.stages) and all(
            a is b for a, b in zip(self.stages, pipeline.stages, strict=True)
        )
        if not (self.text and same and self.source is pipeline.source):
            text = fingerprint(pipeline.source, pipeline.stages, seeds=False)
            self.source, self.stages, self.text = pipeline.source, pipeline.stages, text
        return self.text


@dataclass(frozen=True, eq=False)
class Snapshot(Stage):
    """Writes the first complete pass to files, and reads these from then on.

    A pass that stops early, fails or is killed leaves nothing valid. While one process writes, others make their own
    elements.

    Attributes:
      path: The folder, in which each pipeline has its own folder.
      compression: The compression of the files.
      reader_func: Makes the elements from a dataset of one dataset per file, or None.
      shard_func: Returns the number of the file that an element goes to, or None.
      snapshot_name: Names the folder; "" for the pipeline's fingerprint.
      pipeline: The stages before this one; known once a pass begins.
    """

    name: ClassVar[str] = "snapshot"
    sees_failures: ClassVar[bool] = True
    keeps_elements: ClassVar[bool] = True
    path: str
    compression: str = ""
    reader_func: Callable[[Any], Any] | None = None
    shard_func: ShardFunction | None = None
    snapshot_name: str = ""
    pipeline: Pipeline | None = field(default=None, compare=False)
    known: _Known = field(default_factory=_Known, compare=False)

    @staticmethod
    def of(
        path: str | os.PathLike[str],
        compression: str | None,
        reader_func: Callable[[Any], Any] | None,
        shard_func: ShardFunction | None,
        snapshot_name: str | None,
    ) -> Snapshot:
        """Checks the arguments.

        Raises:
          InvalidArgumentError: for an unknown compression, or a name that a folder cannot have.
          TypeError: if an argument is not a function.
        """
        name = snapshot_name or ""
        if name and not _NAME.fullmatch(name):
            raise InvalidArgumentError(
                f"snapshot_name {name!r} is not a name of a folder; use letters, digits, '_', '-' and '.'"
            )
        for argument, given in (("reader_func", reader_func), ("shard_func", shard_func)):
            if given is not None:
                function(given, f"snapshot: {argument}")
        return Snapshot(absolute(path), check_stored_compression(compression), reader_func, shard_func, name)

    def after(self, pipeline: Pipeline) -> Snapshot:
        """The stage for a pass over `pipeline`."""
        return replace(self, pipeline=pipeline)

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over what `upstream()` starts."""
        if self.pipeline is None:
            raise InvalidArgumentError("snapshot: use it with Dataset.snapshot")
        path = os.path.join(self.path, self.snapshot_name or self.known.of(self.pipeline))
        try:
            manifest = read_manifest(path)
        except NotFoundError:
            if current.keeps and not is_being_written(path):
                yield from self._written(path, upstream, current)
                return
            if not current.keeps:
                current.meter.note("not written while it is measured")
            yield from upstream()
            return
        stored = Stored.of(path, manifest)
        if self.snapshot_name or has_classes(
            stored.spec
        ):  # otherwise, user functions would be called for nothing
            stored = with_spec(stored, spec_if_learnt(self.pipeline))
        if self.reader_func is None:
            yield from stored.open(current)
        else:
            yield from read_by(self.reader_func, current.dataset, stored).open(current)

    def _written(self, path: str, upstream: Opener, current: Pass) -> Iterator[Run]:
        return written(
            lambda spec: Writing(path, spec, self.compression),
            spec_if_learnt(self.pipeline),
            upstream,
            current,
            shard_of=None if self.shard_func is None else functools.partial(shard_of, self.shard_func),
        )

    def cardinality(self, upstream: Pipeline) -> int:
        """Number of elements after this stage; once those under `snapshot_name` are complete, their number.

        Raises:
          DataLossError: if the manifest of the files is damaged.
        """
        if self.reader_func is not None:
            return UNKNOWN_CARDINALITY
        if self.snapshot_name:  # otherwise the files hold this pipeline's elements, which are as many
            path = os.path.join(self.path, self.snapshot_name)
            with contextlib.suppress(NotFoundError):
                return Stored.of(path, read_manifest(path)).cardinality()
        return upstream.cardinality()
