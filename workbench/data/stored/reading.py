"""Stored elements as sources: all of them, or one dataset per file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from workbench import tree
from workbench.data.passes import Pass
from workbench.data.provenance import FILE_SHIFT
from workbench.data.sources.records import Records
from workbench.data.spec import DatasetSpec, UnknownSpec
from workbench.data.stage import Source
from workbench.data.stored.blocks import decoded
from workbench.data.stored.layout import skeleton, spec_json
from workbench.data.stored.manifest import Manifest, Shard
from workbench.data.structure import LEAF, Structure
from workbench.data.tables import ListTable, Run, attempts, single
from workbench.errors import DataLossError, InvalidArgumentError
from workbench.io.checksums import crc32c


@dataclass(frozen=True)
class Stored(Source):
    """Elements of files: of a single file in order; of several files, one from each in turn.

    Attributes:
      path: The folder of the stored dataset.
      folder: The folder in it that holds the files.
      shards: The files.
      spec: The nested spec of an element.
    """

    name: ClassVar[str] = "stored"
    path: str
    folder: str
    shards: tuple[Shard, ...]
    spec: Any

    @staticmethod
    def of(path: str, manifest: Manifest) -> Stored:
        """All files of a manifest."""
        return Stored(path, manifest.folder, manifest.shards, manifest.element_spec)

    def open(self, current: Pass) -> Iterator[Run]:
        """Starts one pass.

        Raises:
          DataLossError: if a file is damaged, truncated or missing.
        """
        if len(self.shards) == 1:
            yield from self._read(0, current)
            return
        streams = [
            attempts(self._read(number, current), current.provenance) for number in range(len(self.shards))
        ]
        while streams:
            left = []
            for stream in streams:
                item = next(stream, None)
                if item is not None:
                    left.append(stream)
                    yield item if isinstance(item, Run) else single(*item)
            streams = left

    def element_spec(self) -> Any:
        """The nested spec of an element."""
        return self.spec

    def cardinality(self) -> int:
        """Number of elements."""
        return sum(shard.elements for shard in self.shards)

    def _read(self, number: int, current: Pass) -> Iterator[Run]:
        shard = self.shards[number]
        path = os.path.join(self.path, self.folder, shard.file)
        if not os.path.exists(path):
            raise DataLossError(
                f"{path!r} is missing: somebody removed it, or saved the dataset again; load the dataset again",
                file=path,
            )
        structure = _structure(self.spec)
        count = elements = checksum = 0
        for records in Records((path,), strict=True).read(path):
            for (block,) in records.elements():
                run = decoded(block, structure, f"{path!r}: block {count}", file=path, record=count)
                yield current.numbered(run, (number << FILE_SHIFT) + elements)
                checksum = crc32c(block, checksum)
                count += 1
                elements += len(run)
        if (count, elements) != (shard.blocks, shard.elements):
            raise DataLossError(
                f"{path!r} is cut off: it ends after block {count} with {elements:,} elements, the manifest names "
                f"{shard.blocks} blocks with {shard.elements:,}; save the dataset again",
                file=path,
            )
        if checksum != shard.checksum:
            raise DataLossError(
                f"{path!r} has other blocks than those that were saved, such as those of another shard; save the "
                "dataset again",
                file=path,
            )


@dataclass(frozen=True)
class StoredShards(Source):
    """A dataset per file, for a `reader_func`.

    Attributes:
      stored: All files.
    """

    name: ClassVar[str] = "stored shards"
    stored: Stored

    def open(self, current: Pass) -> Iterator[Run]:
        """Starts one pass."""
        whole = self.stored
        datasets: list[list[Any]] = [
            [current.dataset(Stored(whole.path, whole.folder, (shard,), whole.spec))]
            for shard in whole.shards
        ]
        if datasets:
            yield Run(ListTable(datasets, LEAF), range(len(datasets)))

    def element_spec(self) -> Any:
        """The nested spec of an element."""
        return DatasetSpec(self.stored.spec)

    def cardinality(self) -> int:
        """Number of files."""
        return len(self.stored.shards)


def with_spec(stored: Stored, element_spec: Any) -> Stored:
    """The same elements in the structure of `element_spec`, such as one with the caller's named tuples.

    Raises:
      InvalidArgumentError: if the stored elements have another spec.
    """
    if isinstance(element_spec, UnknownSpec):  # the pipeline could not make any element
        return stored
    leaves, structure = tree.flatten_records(element_spec)
    known, stored_structure = tree.flatten(stored.spec)
    same = _shape_of(structure) == _shape_of(stored_structure) and all(
        _covers(asked, spec) for asked, spec in zip(leaves, known, strict=True)
    )
    if not same:
        raise InvalidArgumentError(
            f"load: the dataset in {stored.path!r} has elements {stored.spec}, not {element_spec}; leave "
            "element_spec out, or give that one"
        )
    return Stored(stored.path, stored.folder, stored.shards, element_spec)


def has_classes(element_spec: Any) -> bool:
    """Whether loading had to create new classes."""
    return '"named"' in json.dumps(spec_json(element_spec)["structure"])


def _covers(asked: Any, stored: Any) -> bool:
    if asked.dtype != stored.dtype:
        return False
    if asked.shape is None or stored.shape is None:
        return asked.shape is None
    return len(asked.shape) == len(stored.shape) and all(
        want is None or want == got for want, got in zip(asked.shape, stored.shape, strict=True)
    )


def _shape_of(structure: tree.Spec) -> Any:
    """The structure without the identity of classes, because loading creates new ones."""
    return skeleton(tree.unflatten(structure, list(range(structure.num_leaves))))


def _structure(spec: Any) -> Structure:
    structure = tree.flatten(spec)[1]
    return LEAF if structure == LEAF.spec else Structure(structure)
