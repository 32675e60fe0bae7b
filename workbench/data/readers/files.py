"""Datasets that read files, under the names of tf.data."""

from __future__ import annotations

import functools
from typing import Any, ClassVar

from workbench.arguments import count, flag, whole_number
from workbench.data.dataset import Dataset
from workbench.data.sources.files import FileReader, file_names
from workbench.data.sources.fixed import FixedLength
from workbench.data.sources.records import Records
from workbench.data.sources.text import TextLines
from workbench.data.stages.computing.flat import Interleave
from workbench.data.stages.prefetch import check_parallel_calls
from workbench.io.compression import check_compression


class _RecordsOfAnyLength(Dataset):
    """The common arguments of datasets of lines and of records."""

    _reader: ClassVar[type[TextLines | Records]]

    def __init__(
        self,
        filenames: Any,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        *,
        strict: bool = False,
    ) -> None:
        reader = self._reader(
            file_names(filenames),
            check_compression(compression_type),
            _buffer_bytes(buffer_size),
            flag(strict, f"{type(self).__name__}: strict"),
        )
        read_files(self, reader, num_parallel_reads)


class TextLineDataset(_RecordsOfAnyLength):
    """Lines of text files as bytes, without line ends.

    Every carriage return is removed, as in tf.data; one that does not end a line is reported.

    Args:
      filenames: A name or URL, a list of them, or a dataset of them.
      compression_type: "GZIP", "ZLIB", or "" (None) for none.
      buffer_size: Bytes read at a time; None or 0 for the default.
      num_parallel_reads: If above 1, threads read that many files at a time; their lines alternate.
      strict: Whether a lone carriage return is an error instead of a warning.

    Raises:
      TypeError: if the names are not text.
      InvalidArgumentError: if the compression is unknown.
    """

    _reader = TextLines


def read_files(dataset: Dataset, reader: FileReader, num_parallel_reads: int | None) -> None:
    """Makes `dataset` read the reader's files one after the other, or lets threads read several in turn."""
    check_parallel_calls(type(dataset).__name__, num_parallel_reads)
    cycle = num_parallel_reads or 1
    if cycle == 1:
        Dataset.__init__(dataset, reader)
        return
    names = (
        Dataset.from_tensor_slices(list(reader.files)) if isinstance(reader.files, tuple) else reader.files
    )
    turn = Interleave.of(functools.partial(_one_file, reader), cycle, 1, cycle)
    Dataset.__init__(dataset, names.source, (*names.stages, turn))


def _one_file(reader: FileReader, name: Any) -> Dataset:
    return Dataset(reader.of_one(name))


class TFRecordDataset(_RecordsOfAnyLength):
    """Records of TFRecord files as bytes, checksums verified.

    Damage raises a `DataLossError` with `file`, `record` and `offset`. The rest of the file is not read, as in tf.data:
    after a wrong length, the start of the next record is unknown. So `ignore_errors` continues with the next file.

    Args:
      filenames: A name or URL, a list of them, or a dataset of them.
      compression_type: "GZIP", "ZLIB", or "" (None) for none.
      buffer_size: Bytes read at a time; None or 0 for the default.
      num_parallel_reads: If above 1, threads read that many files at a time; their records alternate.
      strict: Whether a file that ends inside a record's header is an error instead of a warning.

    Raises:
      TypeError: if the names are not text.
      InvalidArgumentError: if the compression is unknown.

    >>> with wb.io.TFRecordWriter("words.tfrecord") as writer:
    ...     for word in (b"one", b"two"):
    ...         writer.write(word)
    >>> list(wb.data.TFRecordDataset(["words.tfrecord"]))
    [b'one', b'two']
    """

    _reader = Records


class FixedLengthRecordDataset(Dataset):
    """Pieces of files that all have the same length, as bytes.

    Args:
      filenames: A name or URL, a list of them, or a dataset of them.
      record_bytes: Length of a record.
      header_bytes: Bytes to skip at the start of each file.
      footer_bytes: Bytes to skip at the end of each file.
      buffer_size: Bytes read at a time; None or 0 for the default.
      compression_type: "GZIP", "ZLIB", or "" (None) for none.
      num_parallel_reads: If above 1, threads read that many files at a time; their records alternate.

    Raises:
      TypeError: if the names are not text.
      InvalidArgumentError: if the compression is unknown, or a length is invalid.
    """

    def __init__(
        self,
        filenames: Any,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        buffer_size: int | None = None,
        compression_type: str | None = None,
        num_parallel_reads: int | None = None,
    ) -> None:
        record_bytes = count(record_bytes, "record_bytes")
        header, footer = (
            count(header_bytes or 0, "header_bytes", 0),
            count(footer_bytes or 0, "footer_bytes", 0),
        )
        compression = check_compression(compression_type)
        reader = FixedLength(
            file_names(filenames), compression, _buffer_bytes(buffer_size), int(record_bytes), header, footer
        )
        read_files(self, reader, num_parallel_reads)


def _buffer_bytes(buffer_size: int | None) -> int:
    """Bytes read at a time, 0 for the default."""
    return 0 if buffer_size is None else whole_number(buffer_size, "buffer_size")
