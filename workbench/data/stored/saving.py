"""`Dataset.save` and `Dataset.load`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from workbench.arguments import function
from workbench.data.failing import raised
from workbench.data.spec import INFINITE_CARDINALITY, is_dataset, required_spec
from workbench.data.stage import Pipeline, Source
from workbench.data.stages.computing import probe
from workbench.data.stored.blocks import check_stored_compression
from workbench.data.stored.manifest import read_manifest
from workbench.data.stored.reading import Stored, StoredShards, with_spec
from workbench.data.stored.writing import Writing
from workbench.data.structure import Structure
from workbench.data.tables import Leaves
from workbench.errors import InvalidArgumentError
from workbench.io.storage import absolute

ShardFunction = Callable[..., Any]


def save(
    dataset: Pipeline,
    path: str | os.PathLike[str],
    compression: str | None,
    shard_func: ShardFunction | None,
) -> None:
    """Stores the elements of one pass, all or none."""
    name = check_stored_compression(compression)
    if shard_func is not None:
        function(shard_func, "save: shard_func")
    if dataset.cardinality() == INFINITE_CARDINALITY:
        raise InvalidArgumentError("save: the dataset is endless; take(n) elements of it first")
    writing = Writing(absolute(path), required_spec(dataset, "save"), name)
    try:
        for run in raised(dataset.open(dataset.next_pass())):
            if shard_func is None:
                writing.add_run(run)
            else:
                for leaves in run.elements():
                    structure = run.table.structure
                    writing.add(leaves, structure, shard_of(shard_func, leaves, structure))
        writing.commit(replace=True)
    except BaseException:
        writing.discard()
        raise


def load(
    make: Callable[[Source], Any],
    path: str | os.PathLike[str],
    element_spec: Any,
    compression: str | None,
    reader_func: Callable[[Any], Any] | None,
) -> Any:
    """The stored dataset, which `make` creates from its source."""
    path = absolute(path)
    manifest = read_manifest(path)
    if compression is not None and check_stored_compression(compression) != manifest.compression:
        raise InvalidArgumentError(
            f"load: the dataset in {path!r} was saved with compression {manifest.compression or None!r}, not "
            f"{compression!r}; leave compression out"
        )
    stored = Stored.of(path, manifest)
    if element_spec is not None:
        stored = with_spec(stored, element_spec)
    return make(stored) if reader_func is None else read_by(reader_func, make, stored)


def read_by(reader_func: Callable[[Any], Any], make: Callable[[Source], Any], stored: Stored) -> Any:
    """What `reader_func` returns for a dataset of one dataset per file.

    Args:
      reader_func: The user's function.
      make: Makes a dataset from a source.
      stored: The files.

    Raises:
      TypeError: if that is not a dataset, or `reader_func` is not a function.
    """
    dataset = function(reader_func, "reader_func")(make(StoredShards(stored)))
    if not is_dataset(dataset):
        raise TypeError(f"reader_func must return a Dataset, got {type(dataset).__name__}")
    return dataset


def shard_of(shard_func: ShardFunction, leaves: Leaves, structure: Structure) -> int:
    """The number of the file that an element belongs to.

    Args:
      shard_func: The user's function.
      leaves: The components of the element.
      structure: Their structure.

    Raises:
      InvalidArgumentError: if the function returns anything other than a number from 0.
    """
    result = probe.call(shard_func, structure.pack(leaves))
    try:
        number = int(result.__index__())
    except (AttributeError, TypeError):
        number = -1
    if number < 0:
        raise InvalidArgumentError(
            f"shard_func must return a number of 0 or more for each element, got {result!r:.60}"
        )
    return number
