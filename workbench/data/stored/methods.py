"""The methods of a dataset that store passes in files."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Self

from workbench.data.stored import saving
from workbench.data.stored.snapshot import Snapshot


class DatasetFiles:
    """Methods for stored passes; only `Dataset` inherits it."""

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        element_spec: Any = None,
        compression: str | None = None,
        reader_func: Callable[[Any], Any] | None = None,
    ) -> Self:
        """The elements that `save` stored in the folder `path`; with several files, one from each in turn.

        Args:
          path: The folder.
          element_spec: The nested spec of an element, if it is to be checked or has named tuples of the caller's.
          compression: The one given to `save`, if it is to be checked; the files name it.
          reader_func: Makes the dataset from a dataset of one dataset per file.

        Raises:
          NotFoundError: if nothing complete is stored there.
          InvalidArgumentError: if `element_spec` or `compression` differs from what was stored.
          DataLossError: if a file is damaged, now or in a pass; the message names file and place.
        """
        return saving.load(cls, path, element_spec, compression, reader_func)  # type: ignore[no-any-return]

    def save(
        self,
        path: str | os.PathLike[str],
        compression: str | None = None,
        shard_func: Callable[..., Any] | None = None,
    ) -> None:
        """Stores the elements of one pass in the folder `path`, for `load`: all of them or none.

        An earlier dataset stays until everything is written; an interrupted `save` starts from the beginning.

        Args:
          path: A folder of its own; a dataset stored there before is replaced.
          compression: "GZIP", "SNAPPY", "AUTO" (as "SNAPPY") or None.
          shard_func: Returns the number of the file that an element goes to; None for a single file.

        Raises:
          InvalidArgumentError: for an endless dataset, or elements that cannot be stored, such as windows.
          FailedPreconditionError: if `path` holds other things.
          StorageFull: if there is no space left.
        """
        saving.save(self, path, compression, shard_func)  # type: ignore[arg-type]

    def snapshot(
        self,
        path: str | os.PathLike[str],
        compression: str | None = "AUTO",
        reader_func: Callable[[Any], Any] | None = None,
        shard_func: Callable[..., Any] | None = None,
        *,
        snapshot_name: str | None = None,
    ) -> Self:
        """Writes the elements of the first complete pass below `path`, and reads them from then on.

        Other runs also read them if their pipeline is the same: stages, values, code of functions and what it refers
        to. The content of files that the pipeline reads does not count, nor do seeds of shuffles and drawn seeds.

        Args:
          path: A folder for the snapshots of any number of pipelines.
          compression: "GZIP", "SNAPPY", "AUTO" (as "SNAPPY") or None.
          reader_func: Makes the elements from a dataset of one dataset per file.
          shard_func: Returns the number of the file that an element goes to; None for a single file.
          snapshot_name: Names the snapshot, which any pipeline that uses this name then shares.

        Raises:
          InvalidArgumentError: for an unknown compression or an invalid name; in a pass, for a pipeline whose functions
            refer to something that cannot be compared, such as a lock.
          StorageFull: in a pass, if there is no space left.
          DataLossError: in a pass, if a file is damaged.
        """
        stage = Snapshot.of(path, compression, reader_func, shard_func, snapshot_name)
        return self.with_stage(stage)  # type: ignore[attr-defined,no-any-return]
