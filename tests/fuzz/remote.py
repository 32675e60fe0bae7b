"""Readers of files behind URLs: the same files in fsspec's memory."""

from __future__ import annotations

from typing import Any

from tests.fuzz.targets import Csv, Lines, Parquet, Records, Target

_URL = "memory://fuzz/input"


class _Remote(Target):
    def written(self, data: bytes) -> str:
        """The URL of a file that holds `data`."""
        import fsspec

        files: Any = fsspec.filesystem("memory")
        files.pipe_file(_URL, data)
        return _URL


class RemoteRecords(_Remote, Records):
    """Record files behind a URL."""

    name = "tfrecord-url"


class RemoteLines(_Remote, Lines):
    """Text files behind a URL."""

    name = "text-url"


class RemoteParquet(_Remote, Parquet):
    """Parquet files behind a URL."""

    name = "parquet-url"


class RemoteCsv(_Remote, Csv):
    """CSV files behind a URL."""

    name = "csv-url"
