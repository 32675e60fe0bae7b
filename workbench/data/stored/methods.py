"""The methods of a dataset that keep passes in files."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Self

from workbench.data.stored import saving
from workbench.errors import InvalidArgumentError


class DatasetFiles:
    """Stored passes; `Dataset` is the only one that inherits it."""

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        element_spec: Any = None,
        compression: str | None = None,
        reader_func: Callable[[Any], Any] | None = None,
    ) -> Self:
        """The elements that `save` stored in the folder `path`; of several files, one of each in turn.

        Args:
          path: The folder.
          element_spec: The nested spec of an element, if it is to be checked or has named tuples of the caller's.
          compression: The one given to `save`, if it is to be checked; the files tell it.
          reader_func: Makes the dataset out of a dataset of one dataset per file.

        Raises:
          NotFoundError: if nothing complete is stored there.
          InvalidArgumentError: if `element_spec` or `compression` is given and another was stored.
          DataLossError: when a file proves damaged, now or in a pass; the text names file and place.
        """
        return saving.load(cls, path, element_spec, compression, reader_func)  # type: ignore[no-any-return]

    def save(
        self,
        path: str | os.PathLike[str],
        compression: str | None = None,
        shard_func: Callable[..., Any] | None = None,
        checkpoint_args: None = None,
    ) -> None:
        """Stores the elements of one pass in the folder `path`, for `load`: all of them or none.

        What was stored there before stays until everything is written.

        Args:
          path: A folder of its own; a dataset stored there before is replaced.
          compression: "GZIP", "SNAPPY", "AUTO" (as "SNAPPY") or None.
          shard_func: Gives the number of the file that an element goes to; all go to one if None.
          checkpoint_args: Must be None: an interrupted `save` starts anew.

        Raises:
          InvalidArgumentError: for an endless dataset, or elements that cannot be stored, such as windows.
          FailedPreconditionError: if `path` holds other things.
          StorageFull: if there is no space left.
        """
        if checkpoint_args is not None:
            raise InvalidArgumentError("save: an interrupted save starts anew; leave checkpoint_args out")
        saving.save(self, path, compression, shard_func)  # type: ignore[arg-type]
