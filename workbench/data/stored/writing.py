"""Writes a stored dataset: everything goes to a separate folder, which counts once the manifest names it.

Layout of a stored dataset:

    path/dataset.json       the manifest; names the folder that counts
    path/pass-<id>/         that folder: 0.records, 1.records, ... and `owner`
    path/pass-<id>/owner    locked as long as a process writes
    path/lock               locked while the manifest is replaced

The writer that replaces the manifest removes the folders that it does not name and no process writes to: the replaced
one, and those that killed processes left.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from typing import Any

from workbench import tree
from workbench.backends.numpy import STRING
from workbench.data.stored import blocks
from workbench.data.stored.blocks import Column
from workbench.data.stored.locks import FileLock, locked
from workbench.data.stored.manifest import NAME, Manifest, Shard, read_manifest
from workbench.data.structure import Structure
from workbench.data.tables import ArrayTable, Leaves, RangeTable, Run
from workbench.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)
from workbench.io.checksums import crc32c
from workbench.io.record_writer import TFRecordWriter
from workbench.io.storage import storage

_BLOCK_BYTES = 1 << 20
_BLOCK_ELEMENTS = 8192
_MOST_SHARDS = 256  # each is an open file with a buffer
_PREFIX = "pass-"
_PASS = re.compile(rf"{_PREFIX}[0-9a-f]{{16}}")
_OURS = re.compile(rf"lock|{_PASS.pattern}|{re.escape(NAME)}(\.[0-9a-f]{{16}})?")


class Writing:
    """A dataset that is being stored; `commit` makes it valid, `discard` removes it.

    Attributes:
      path: The folder that it is stored in.
    """

    def __init__(self, path: str, element_spec: Any, compression: str) -> None:
        """Starts writing in the folder `path`, which is created if it is missing.

        Raises:
          InvalidArgumentError: if elements with this spec cannot be stored.
          FailedPreconditionError: if `path` is a file, or a folder with other things in it.
          StorageFull: if there is no space left.
        """
        self._manifest = Manifest(_PREFIX + secrets.token_hex(8), compression, element_spec, ())
        self._manifest.to_bytes()  # rejects what cannot be stored before anything is written
        self._structure = tree.flatten(element_spec)[1]
        self.path = path
        self._shards: dict[int, _ShardFile] = {}
        with storage(path):
            _make_folder(path)
            self._folder = os.path.join(path, self._manifest.folder)
            with locked(
                os.path.join(path, "lock")
            ):  # another process must not consider the folder abandoned before it is locked
                os.mkdir(self._folder)
                self._owner = FileLock(os.path.join(self._folder, "owner"), wait=False)

    def add(self, leaves: Leaves, structure: Structure, shard: int = 0) -> None:
        """Appends one element.

        Args:
          leaves: The components of the element.
          structure: Their structure.
          shard: Number of the file.

        Raises:
          InvalidArgumentError: if its structure differs from the dataset's.
          StorageFull: if there is no space left.
        """
        self._check(structure)
        with storage(self.path):
            self._shard(shard).add(leaves)

    def add_run(self, run: Run) -> None:
        """Appends the elements of a run, whole columns at a time if possible."""
        table = run.table
        if not isinstance(table, ArrayTable | RangeTable):
            for leaves in run.elements():
                self.add(leaves, table.structure)
            return
        self._check(table.structure)
        for start in range(0, len(run), _BLOCK_ELEMENTS):
            columns = table.take(run.rows[start : start + _BLOCK_ELEMENTS])
            with storage(self.path):
                self._shard(0).add_columns(columns)

    def commit(self, *, replace: bool) -> bool:
        """Makes the written elements valid.

        Args:
          replace: Whether to do so even if another dataset has been completed.

        Returns:
          Whether they are valid now.

        Raises:
          StorageFull: if there is no space left.
        """
        if not self._shards:
            self._shard(0)
        with storage(self.path):
            shards = tuple(shard.close() for _, shard in sorted(self._shards.items()))
            _sync(self._folder)
            manifest = Manifest(
                self._manifest.folder, self._manifest.compression, self._manifest.element_spec, shards
            )
            with locked(os.path.join(self.path, "lock")):
                counts = replace or not _is_complete(self.path)
                if counts:
                    replace_file(os.path.join(self.path, NAME), manifest.to_bytes())
                    self._owner.release()
                    _remove_others(self.path, self._manifest.folder)
        if not counts:
            self.discard()
        return counts

    def discard(self) -> None:
        """Removes the written elements, unless they are valid already."""
        for shard in self._shards.values():
            shard.abandon()
        with contextlib.suppress(NotFoundError, DataLossError):
            if read_manifest(self.path).folder == self._manifest.folder:
                self._owner.release()
                return
        shutil.rmtree(self._folder, ignore_errors=True)
        self._owner.release()

    def retract(self) -> None:
        """Undoes `commit`: invalidates and removes the written elements, unless another dataset has replaced them."""
        # Or a damaged one, in the meantime.
        gone = contextlib.suppress(FileNotFoundError, NotFoundError, DataLossError)
        with gone, storage(self.path), locked(os.path.join(self.path, "lock")):
            if read_manifest(self.path).folder == self._manifest.folder:
                os.remove(os.path.join(self.path, NAME))
                shutil.rmtree(self._folder, ignore_errors=True)

    def _check(self, structure: Structure) -> None:
        if structure.spec != self._structure:
            raise InvalidArgumentError(
                f"an element has the structure {structure.spec}, the dataset states {self._manifest.element_spec}; "
                "let its functions always return the same structure"
            )

    def _shard(self, number: int) -> _ShardFile:
        shard = self._shards.get(number)
        if shard is None:
            if len(self._shards) == _MOST_SHARDS:
                raise InvalidArgumentError(
                    f"shard_func gave {number}, and {_MOST_SHARDS} other numbers before; let it give at most "
                    f"{_MOST_SHARDS} different ones, as with number % {_MOST_SHARDS}"
                )
            name = f"{number}.records"
            shard = self._shards[number] = _ShardFile(self._folder, name, self._manifest.compression)
        return shard


def is_being_written(path: str) -> bool:
    """Whether a living process is storing a dataset in the folder `path`."""
    try:
        names = os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    for name in names:
        owner = os.path.join(path, name, "owner")
        if _PASS.fullmatch(name) and os.path.exists(owner):
            try:
                FileLock(owner, wait=False).release()
            except BlockingIOError:
                return True
    return False


class _ShardFile:
    """One file that grows."""

    def __init__(self, folder: str, name: str, compression: str) -> None:
        self._path = os.path.join(folder, name)
        self._name = name
        self._compression = compression
        self._writer = TFRecordWriter(self._path)
        self._held: list[Leaves] = []
        self._held_bytes = 0
        self._kinds: list[Any] = []
        self._blocks = self._elements = self._checksum = 0

    def add(self, leaves: Leaves) -> None:
        kinds = blocks.kinds(leaves)
        if kinds != self._kinds:
            self._flush()
            self._kinds = kinds
        self._held.append(leaves)
        self._held_bytes += sum(len(leaf) if isinstance(leaf, bytes) else leaf.nbytes for leaf in leaves)
        if self._held_bytes >= _BLOCK_BYTES or len(self._held) >= _BLOCK_ELEMENTS:
            self._flush()

    def add_columns(self, columns: Leaves) -> None:
        self._flush()
        count = len(columns[0])
        row_bytes = sum(column.nbytes for column in columns if column.dtype != STRING) // max(count, 1)
        rows = max(1, _BLOCK_BYTES // max(row_bytes, 1))
        for start in range(0, count, rows):
            part = [column[start : start + rows] for column in columns]
            self._write(part, len(part[0]))

    def close(self) -> Shard:
        self._flush()
        self._writer.close()
        _sync(self._path)
        return Shard(self._name, self._blocks, self._elements, self._checksum)

    def abandon(self) -> None:
        self._held = []
        # StorageFull is one; after it, the incomplete files are removed anyway.
        with contextlib.suppress(OSError):
            self._writer.close()

    def _flush(self) -> None:
        held, self._held, self._held_bytes = self._held, [], 0
        if held:
            self._write(list(zip(*held, strict=True)), len(held))

    def _write(self, columns: list[Column], count: int) -> None:
        block = blocks.encoded(columns, count, self._compression)
        self._writer.write(block)
        self._checksum = crc32c(block, self._checksum)
        self._blocks += 1
        self._elements += count


def _make_folder(path: str) -> None:
    try:
        os.makedirs(path, exist_ok=True)
        names = os.listdir(path)
    except (FileExistsError, NotADirectoryError) as error:
        raise FailedPreconditionError(f"{path!r} is not a folder; give another path") from error
    if others := sorted(name for name in names if not _OURS.fullmatch(name)):
        raise FailedPreconditionError(
            f"the folder {path!r} holds other things, such as {others[0]!r}; give a path of its own"
        )


def _is_complete(path: str) -> bool:
    try:
        read_manifest(path)
    except (NotFoundError, DataLossError):
        return False
    return True


def replace_file(path: str, data: bytes) -> None:
    """Replaces the content of a file by `data`; it has its former content until then."""
    beside = f"{path}.{secrets.token_hex(8)}"
    try:
        with open(beside, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise
    _sync(os.path.dirname(path))


def _remove_others(path: str, folder: str) -> None:
    for name in os.listdir(path):
        if name == folder or not _PASS.fullmatch(name):
            continue
        try:
            owner = FileLock(os.path.join(path, name, "owner"), wait=False)
        except OSError:  # another process writes there, or removes it
            continue
        shutil.rmtree(os.path.join(path, name), ignore_errors=True)
        owner.release()


def _sync(path: str) -> None:
    """Makes the system write a file or folder to disk, so that a manifest never precedes the files that it names."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
