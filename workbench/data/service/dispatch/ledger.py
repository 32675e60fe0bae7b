"""A dispatcher's decisions: its state, the journal that rebuilds it, and the bytes of datasets."""

from __future__ import annotations

import hashlib
import os

from workbench.data.service.dispatch.journal import Entry, Journal
from workbench.data.service.dispatch.state import Job, Registered, State
from workbench.data.stored.writing import replace_file
from workbench.errors import DataLossError, FailedPreconditionError, NotFoundError, StorageFull
from workbench.io.storage import storage

_MOST_BYTES = 1 << 20
_GROWTH = 4
_OFTEN = ("ack", "deal")
"""Entries that are written with every block of elements."""


class Ledger:
    """State and journal of a dispatcher, whose lock guards them.

    Attributes:
      state: The present state.
    """

    def __init__(self, work_dir: str | None) -> None:
        """Restores the state from the journal in `work_dir`; None keeps everything in memory.

        Raises:
          DataLossError: if the journal is damaged.
          FailedPreconditionError: if another dispatcher has it open.
        """
        self.state = State()
        self._folder = None if work_dir is None else os.path.join(work_dir, "datasets")
        self._bytes: dict[str, bytes] = {}
        self._journal: Journal | None = None
        self._compact_at = _MOST_BYTES
        if work_dir is not None:
            path = os.path.join(work_dir, "journal")
            self._journal = Journal(path)
            try:
                for entry in self._journal.entries:
                    self.state.apply(entry)
            except DataLossError as error:
                self._journal.close()
                raise DataLossError(f"{path!r}: {error}", file=path) from error

    def _compact(self) -> None:
        """Rewrites the journal if it has grown."""
        if self._journal is None or self._journal.size_bytes <= self._compact_at:
            return
        try:
            self._journal.replace(self.state.entries())
        except StorageFull:  # the entries are safe in the old file; there may be room later
            self._compact_at *= 2
            return
        self._compact_at = max(_MOST_BYTES, _GROWTH * self._journal.size_bytes)

    def write(self, entry: Entry) -> None:
        """Makes a change, first in the journal.

        Raises:
          StorageFull: if there is no space left.
        """
        if self._journal is not None:
            self._journal.append(entry, sync=entry["what"] not in _OFTEN)
        self.state.apply(entry)
        self._compact()

    def close(self) -> None:
        """Closes the journal. Idempotent."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def registered(self, dataset: int | str) -> Registered:
        """A dataset by its id.

        Raises:
          NotFoundError: if there is none.
        """
        registered = self.state.datasets.get(dataset)
        if registered is None:
            raise NotFoundError(
                f"no dataset {dataset!r} is registered with this dispatcher; register_dataset gives the id. One "
                "that was started again knows the former ones only with fault_tolerant_mode"
            )
        return registered

    def job(self, job: str) -> Job:
        """A job by its id.

        Raises:
          FailedPreconditionError: if there is none.
        """
        known = self.state.jobs.get(job)
        if known is None:
            raise FailedPreconditionError(
                f"the dispatcher has no job {job!r}: it was started again without fault_tolerant_mode, or nobody read "
                "the job for job_gc_timeout_ms; iterate over the dataset again"
            )
        return known

    def keep(self, digest: str, payload: bytes) -> None:
        """Stores the bytes of a dataset with the SHA-256 `digest`."""
        if self._folder is None:
            self._bytes[digest] = payload
            return
        path = os.path.join(self._folder, digest)
        with storage(path):
            replace_file(path, payload)

    def kept(self, digest: str) -> bytes:
        """The bytes of a dataset.

        Raises:
          DataLossError: if they differ from what was stored.
        """
        if self._folder is None:
            return self._bytes[digest]
        path = os.path.join(self._folder, digest)
        with open(path, "rb") as file:
            payload = file.read()
        if hashlib.sha256(payload).hexdigest() != digest:
            raise DataLossError(
                f"the registered dataset in {path!r} is damaged; register it again", file=path
            )
        return payload
