"""Writes the elements of a dataset into a file, under the names of tf.data.experimental."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator

from workbench.backends.numpy import STRING
from workbench.data.dataset import Dataset
from workbench.data.spec import TensorSpec, required_spec
from workbench.errors import NotFoundError
from workbench.io.record_writer import TFRecordOptions
from workbench.io.record_writer import TFRecordWriter as RecordWriter


class TFRecordWriter:
    """Writes all elements of a dataset as the records of one file, as tf.data.experimental.TFRecordWriter.

    The file gets its name when it is complete: until then, and after a failure, an existing file stays unchanged.

    Args:
      filename: The file.
      compression_type: "GZIP", "ZLIB", or "" (None) for none.

    Raises:
      InvalidArgumentError: if the compression is unknown.
    """

    def __init__(self, filename: str | os.PathLike[str], compression_type: str | None = None) -> None:
        self._path = os.fspath(filename)
        self._options = TFRecordOptions(compression_type)

    def __repr__(self) -> str:
        return f"TFRecordWriter({self._path!r})"

    def write(self, dataset: Dataset) -> None:
        """Writes the elements in their order.

        Args:
          dataset: A dataset of scalar text or bytes.

        Raises:
          TypeError: if it is not a dataset, or has other elements.
          NotFoundError: if the file cannot be created.
          StorageFull: if there is no space left.
        """
        if not isinstance(dataset, Dataset):
            raise TypeError(f"TFRecordWriter.write takes a Dataset, got {type(dataset).__name__}")
        spec = required_spec(dataset, "TFRecordWriter.write")
        if not isinstance(spec, TensorSpec) or spec.dtype != STRING or spec.shape not in ((), None):
            raise TypeError(
                f"records are scalar text or bytes, the elements of this dataset are {spec}; encode them first: "
                "dataset.map(wb.io.serialize_tensor)"
            )
        with _replacing(self._path) as partial, RecordWriter(partial, self._options) as writer:
            for record in dataset:
                writer.write(record)


@contextlib.contextmanager
def _replacing(path: str) -> Iterator[str]:
    """A temporary name beside `path`. The file gets its final name at the end, and is removed after a failure."""
    try:
        target = os.path.realpath(path)
    except ValueError as error:  # the name contains a NUL byte
        raise NotFoundError(f"cannot write {path!r}: {error}; give the name of a file") from error
    if os.path.exists(target) and not os.path.isfile(target):  # a pipe or device is written directly
        yield path
        return
    partial = f"{target}.{secrets.token_hex(4)}.partial"
    try:
        yield partial
        descriptor = os.open(partial, os.O_RDONLY)
        try:
            os.fsync(descriptor)  # the name must not appear before the content is complete
        finally:
            os.close(descriptor)
        os.replace(partial, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)
        raise
